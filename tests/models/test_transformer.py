"""The transformer is GPT-2's form: its equations, its initialisation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick_models import init, quick_jit, random_params
from scipy import stats

from ib_bench.models import make_model
from ib_bench.models.transformer import attend


def make(layers, num_inputs=7, num_outputs=5, hidden=8, heads=2, max_positions=12):
    return make_model(
        "transformer",
        num_inputs=num_inputs,
        num_outputs=num_outputs,
        max_positions=max_positions,
        hidden=hidden,
        layers=layers,
        heads=heads,
    )


def naive_attention(query_Td, key_Td, value_Td):
    """One head of one sequence: every query in turn looks at what came before."""
    mixed = np.zeros_like(value_Td)
    for q in range(len(query_Td)):
        scores = [query_Td[q] @ key_Td[k] / np.sqrt(len(query_Td[q])) for k in range(q + 1)]
        weights = np.exp(np.array(scores) - max(scores))
        weights /= weights.sum()
        for k in range(q + 1):
            mixed[q] += weights[k] * value_Td[k]
    return mixed


def naive_transformer(params, tokens_T, layers, heads):
    """One sequence in numpy and 64 bits."""
    p = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)

    def dense(name, x):
        return x @ p[name]["kernel"] + p[name].get("bias", 0)

    def norm(name, x):
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)
        return x * p[name]["scale"] + p[name]["bias"]

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    x = p["embedding"][tokens_T] + p["position"][: len(tokens_T)]
    for k in range(layers):
        query, key, value = np.split(dense(f"qkv_{k}", norm(f"norm_attention_{k}", x)), 3, axis=1)
        parts = zip(*(np.split(part, heads, axis=1) for part in (query, key, value)), strict=True)
        mixed = np.concatenate([naive_attention(*part) for part in parts], axis=1)
        x = x + dense(f"attention_out_{k}", mixed)
        x = x + dense(f"mlp_out_{k}", gelu(dense(f"mlp_in_{k}", norm(f"norm_mlp_{k}", x))))
    return dense("head", norm("norm_out", x))


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


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (2, 4)])
def test_logits_equal_a_naive_transformer(layers, heads):
    model = make(layers, heads=heads)
    params = random_params(model)
    tokens_BT = np.random.RandomState(1).randint(7, size=(2, 9)).astype(np.int32)
    logits_BTV = quick_jit(model.apply)(params, tokens_BT)
    expected = [naive_transformer(params, row, layers, heads) for row in tokens_BT]
    np.testing.assert_allclose(logits_BTV, expected, rtol=1e-3, atol=1e-4)


def test_position_matters():
    model = make(layers=1)
    logits_BTV = quick_jit(model.apply)(random_params(model), jnp.zeros((1, 4), jnp.int32))
    assert np.abs(np.diff(logits_BTV[0], axis=0)).max() > 1e-3


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


@pytest.mark.parametrize("num_positions", [1, 2, 7])
def test_the_gradient_of_attention_is_that_of_its_formula(num_positions):
    B, heads, size = 2, 3, 4
    draw = np.random.RandomState(num_positions)
    qkv = draw.randn(B, num_positions, 3, heads, size).astype(np.float32)
    pull = draw.randn(B, num_positions, heads, size).astype(np.float32)

    def formula(qkv):
        query, key, value = jnp.moveaxis(qkv, 2, 0)
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(size)
        causal = np.tril(np.ones((num_positions, num_positions), bool))
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9))
        return jnp.einsum("bhqk,bkhd->bqhd", weights, value)

    def loss(attention):
        return lambda qkv: jnp.sum(attention(qkv) * pull)

    found = quick_jit(jax.value_and_grad(loss(attend)))(qkv)
    expected = quick_jit(jax.value_and_grad(loss(formula)))(qkv)
    for part, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-4, atol=1e-5)
