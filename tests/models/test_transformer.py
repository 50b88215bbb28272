"""The transformer is GPT-2's form: its equations, its initialisation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_transformer import (
    attention,
    embed,
    feed_forward,
    in_64_bits,
    naive_attention,
    read_out,
)
from quick_models import init, quick_jit, random_params
from scipy import stats

from ib_bench.models import make_model
from ib_bench.models.attention import attend
from ib_bench.models.positions import POSITIONS, alibi_slopes, rotate


def make(
    layers,
    num_inputs=7,
    num_outputs=5,
    hidden=8,
    heads=2,
    max_positions=12,
    positions="learned",
):
    return make_model(
        "transformer",
        num_inputs=num_inputs,
        num_outputs=num_outputs,
        max_positions=max_positions,
        hidden=hidden,
        layers=layers,
        heads=heads,
        positions=positions,
    )


def naive_transformer(params, tokens_T, layers, heads, positions):
    """One sequence in numpy and 64 bits."""
    p = in_64_bits(params)
    x = embed(p, tokens_T, positions)
    for k in range(layers):
        x = attention(p, x, heads, positions, f"_{k}")
        x = feed_forward(p, x, f"_{k}")
    return read_out(p, x)


@pytest.mark.parametrize("num_positions", [1, 2, 7])
@pytest.mark.parametrize("heads", [1, 3])
def test_attention_equals_a_loop_over_queries_and_keys(num_positions, heads):
    shape = (2, num_positions, 3, heads, 4)
    qkv = np.random.RandomState(0).randn(*shape).astype(np.float32) * 2
    mixed = quick_jit(attend)(qkv)
    assert mixed.shape == (2, num_positions, heads, 4)
    for b in range(2):
        for h in range(heads):
            expected = naive_attention(
                *(qkv[b, :, part, h].astype(np.float64) for part in range(3))
            )
            np.testing.assert_allclose(mixed[b, :, h], expected, rtol=1e-4, atol=1e-5)


def test_attention_with_huge_scores_stays_finite():
    qkv = np.full((1, 5, 3, 1, 2), 1e4, np.float32)
    total, gradient = quick_jit(jax.value_and_grad(lambda qkv: attend(qkv).sum()))(qkv)
    assert np.isfinite(total)
    assert np.isfinite(gradient).all()


def test_the_first_position_can_only_attend_to_itself():
    qkv = np.random.RandomState(0).randn(2, 5, 3, 2, 4).astype(np.float32)
    np.testing.assert_allclose(quick_jit(attend)(qkv)[:, 0], qkv[:, 0, 2], rtol=1e-6)


@pytest.mark.parametrize(
    ("layers", "heads", "positions"),
    [(1, 1, "learned"), (2, 4, "learned"), *((1, 2, positions) for positions in POSITIONS)],
)
def test_logits_equal_a_naive_transformer(layers, heads, positions):
    model = make(layers, heads=heads, positions=positions)
    params = random_params(model)
    tokens_BT = np.random.RandomState(1).randint(7, size=(2, 9)).astype(np.int32)
    logits_BTV = quick_jit(model.apply)(params, tokens_BT)
    expected = [naive_transformer(params, row, layers, heads, positions) for row in tokens_BT]
    np.testing.assert_allclose(logits_BTV, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_added_positions_tell_equal_tokens_apart(positions):
    model = make(layers=1, positions=positions)
    logits_BTV = quick_jit(model.apply)(random_params(model), jnp.zeros((1, 4), jnp.int32))
    assert np.abs(np.diff(logits_BTV[0], axis=0)).max() > 1e-3


@pytest.mark.parametrize("positions", ["rotary", "alibi", "none"])
def test_positions_within_attention_do_not_tell_equal_tokens_apart(positions):
    """Where all values are equal, no weighting of them tells where they stand."""
    model = make(layers=1, positions=positions)
    logits_BTV = quick_jit(model.apply)(random_params(model), jnp.zeros((1, 4), jnp.int32))
    np.testing.assert_allclose(logits_BTV - logits_BTV[:, :1], 0, atol=1e-5)


@pytest.mark.parametrize("positions", ["none", "rotary", "alibi"])
def test_order_shows_in_one_layer_unless_there_are_no_positions(positions):
    """The last token sees the others as a set where nothing says where they stand."""
    model = make(layers=1, positions=positions)
    apply, params = quick_jit(model.apply), random_params(model)
    one, other = (apply(params, jnp.array([row]))[0, -1] for row in ([1, 2, 3, 4], [2, 3, 1, 4]))
    assert np.allclose(one, other, atol=1e-5) == (positions == "none")


def test_rotated_scores_depend_on_the_distance_alone():
    """The same query and key at every position: the score of q and k is that of q - k."""
    qkv = np.tile(np.random.RandomState(0).randn(1, 1, 3, 2, 6), (1, 5, 1, 1, 1))
    turned = rotate(qkv.astype(np.float32))
    scores_TT = np.einsum("qd,kd->qk", turned[0, :, 0, 1], turned[0, :, 1, 1])
    for distance in range(-4, 5):
        assert np.ptp(np.diagonal(scores_TT, distance)) < 1e-4
    assert np.std(scores_TT[0]) > 0.1
    np.testing.assert_array_equal(turned[:, :, 2], qkv[:, :, 2].astype(np.float32))


def test_the_slopes_of_alibi_are_those_of_its_authors():
    assert alibi_slopes(8) == tuple(2.0**-k for k in range(1, 9))
    assert alibi_slopes(1) == (2.0**-8,)
    assert alibi_slopes(3) == (2.0**-4, 2.0**-8, 2.0**-2)


def test_parameters_are_drawn_as_in_gpt2():
    layers = 2
    params = init(make(layers, num_inputs=200, num_outputs=200, hidden=32, max_positions=64))
    leaves = {
        jax.tree_util.keystr(path, simple=True, separator="/"): np.asarray(leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(params)
    }
    for name, leaf in leaves.items():
        if name.endswith("/bias"):
            assert not leaf.any(), name
        elif name.endswith("/scale"):
            assert (leaf == 1).all(), name
        else:
            into_stream = name.startswith(("attention_out_", "mlp_out_"))
            scale = 0.02 / np.sqrt(2 * layers) if into_stream else 0.02
            fit = stats.kstest(leaf.ravel(), stats.norm(scale=scale).cdf)
            assert fit.pvalue > 1e-4, name


@pytest.mark.parametrize("slopes", [(), (1.0, 0.25, 0.0)])
@pytest.mark.parametrize("num_positions", [1, 2, 7])
def test_the_gradient_of_attention_is_that_of_its_formula(num_positions, slopes):
    B, heads, size = 2, 3, 4
    draw = np.random.RandomState(num_positions)
    qkv = draw.randn(B, num_positions, 3, heads, size).astype(np.float32)
    pull = draw.randn(B, num_positions, heads, size).astype(np.float32)

    def formula(qkv):
        query, key, value = jnp.moveaxis(qkv, 2, 0)
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(size)
        if slopes:
            steps = np.arange(num_positions)
            scores -= np.array(slopes)[:, None, None] * (steps[:, None] - steps)
        causal = np.tril(np.ones((num_positions, num_positions), bool))
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9))
        return jnp.einsum("bhqk,bkhd->bqhd", weights, value)

    def loss(attention):
        return lambda qkv: jnp.sum(attention(qkv) * pull)

    found = quick_jit(jax.value_and_grad(loss(lambda qkv: attend(qkv, slopes))))(qkv)
    expected = quick_jit(jax.value_and_grad(loss(formula)))(qkv)
    for part, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-4, atol=1e-5)
