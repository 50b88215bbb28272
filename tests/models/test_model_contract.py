"""Every entry of MODELS keeps the same promises; a new model is tested by its lines below."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick_models import quick_jit

from ib_bench.models import MODELS, Model, make_model, num_parameters, settings_of

SETTINGS = {
    "dense_ssm": {"hidden": 8},
    "lstm": {"hidden": 8},
    "transformer": {"hidden": 8, "layers": 1, "heads": 2},
}

# Input vocabularies that reach every branch of a model: past 128 tokens are gathered, and the
# dense SSM applies every matrix up to 16.
VOCABULARIES = {
    "dense_ssm": (3, 20, 200),
    "lstm": (3, 200),
    "transformer": (3, 200),
}
NUM_OUTPUTS = 5
MAX_POSITIONS = 16
ROWS = 32  # of every batch, so that a model is compiled once for each length


# Key 0, tokens 0 1 2 2 1 0 1: the logits at the first and at the last position.
GOLDEN = {
    "dense_ssm": [
        [-0.0049, -0.9854, -0.282, 1.2906, -1.4392],
        [1.1191, 0.5265, -0.1292, -1.3056, 1.4801],
    ],
    "lstm": [[0.289, -0.454, -0.0773, 0.3792, -0.0997], [0.2861, -0.4752, 0.0057, 0.5788, -0.0909]],
    "transformer": [
        [0.1132, 0.014, -0.0131, -0.0318, 0.0228],
        [-0.005, 0.0357, -0.0009, 0.0083, -0.0087],
    ],
}
GOLDEN_CHANGED = (
    "The same key gives other numbers than it used to: the initialisation, the order in which "
    "parameters are drawn, the architecture or the random number generator changed. Results from "
    "before and after cannot be mixed. If this is intended, raise PROTOCOL_VERSION, add a "
    "[Protocol] entry to CHANGELOG.md, and write the new numbers down here."
)


# Parameters by hand, with V inputs, O outputs, P positions.
def count_lstm(V, O, P, *, hidden):  # noqa: E741
    """Embedding; two 4-gate matrices and two biases; head."""
    return V * hidden + 2 * 4 * hidden**2 + 2 * 4 * hidden + (hidden + 1) * O


def count_dense_ssm(V, O, P, *, hidden):  # noqa: E741
    """Embedding; W_1..W_D, each H x H; h_0; head."""
    return V * hidden + hidden**3 + hidden + (hidden + 1) * O


def count_transformer(V, O, P, *, hidden, layers, heads):  # noqa: E741
    """Tokens, positions; per block qkv, out, two of the MLP and two norms; last norm; head."""
    block = (3 * hidden**2 + 3 * hidden) + (hidden**2 + hidden)
    block += (4 * hidden**2 + 4 * hidden) + (4 * hidden**2 + hidden)
    block += 2 * 2 * hidden
    return (V + P) * hidden + layers * block + 2 * hidden + hidden * O


COUNTS = {
    "dense_ssm": count_dense_ssm,
    "lstm": count_lstm,
    "transformer": count_transformer,
}

# As in the paper.
LARGE = [
    ("dense_ssm", {"hidden": 256}),
    ("lstm", {"hidden": 256}),
    ("lstm", {"hidden": 768}),
    ("transformer", {"hidden": 256, "layers": 2, "heads": 4}),
    ("transformer", {"hidden": 256, "layers": 6, "heads": 4}),
]

every_model = pytest.mark.parametrize("name", SETTINGS)
every_case = pytest.mark.parametrize(
    ("name", "num_inputs"), [(name, size) for name, sizes in VOCABULARIES.items() for size in sizes]
)


class Case(NamedTuple):
    model: Model
    params: Any  # none at zero, as biases are at initialisation
    apply: Any  # jitted; any number of rows up to ROWS
    loss: Any  # jitted: (params, tokens, weights) -> loss, gradient


def build(name, num_inputs):
    sizes = {"num_inputs": num_inputs, "num_outputs": NUM_OUTPUTS, "max_positions": MAX_POSITIONS}
    return make_model(name, **sizes, **SETTINGS[name])


@functools.cache
def initialised(name, seed):
    return compiled_init(name)(jax.random.key(seed), jnp.zeros((1, 4), jnp.int32))


@functools.cache
def compiled_init(name):
    return quick_jit(build(name, 3).init)


@functools.cache
def case(name, num_inputs):
    model, generator = build(name, num_inputs), np.random.RandomState(0)
    shapes = jax.eval_shape(model.init, jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
    params = jax.tree.map(
        lambda leaf: (0.3 * generator.randn(*leaf.shape)).astype(leaf.dtype), shapes
    )

    def loss(params, tokens_BT, weights_BT):
        # Every output counts, and none cancels another.
        logits_BTV = model.apply(params, tokens_BT)
        return jnp.sum(weights_BT[..., None] * jnp.sin(logits_BTV + jnp.arange(NUM_OUTPUTS)))

    compiled = quick_jit(model.apply)

    def apply(params, tokens_BT):
        filled_BT = np.resize(tokens_BT, (ROWS, tokens_BT.shape[1]))
        return np.asarray(compiled(params, filled_BT))[: len(tokens_BT)]

    return Case(model, params, apply, quick_jit(jax.value_and_grad(loss)))


def random_tokens(num_inputs, shape, seed=0):
    return np.random.RandomState(seed).randint(num_inputs, size=shape).astype(np.int32)


def test_every_model_has_its_lines_in_these_tables():
    for table in (SETTINGS, VOCABULARIES, COUNTS, GOLDEN):
        assert table.keys() == MODELS.keys()
    assert {name for name, _ in LARGE} == MODELS.keys()
    assert list(MODELS) == sorted(MODELS)


@every_model
def test_settings_are_the_keys_that_the_maker_names(name):
    assert settings_of(name) == tuple(SETTINGS[name])


# --- outputs ------------------------------------------------------------------------------------


@every_case
@pytest.mark.parametrize("num_positions", [1, 2, 3, 7])
def test_logits_are_finite_floats_for_every_position_and_output(name, num_inputs, num_positions):
    one = case(name, num_inputs)
    logits_BTV = one.apply(one.params, random_tokens(num_inputs, (ROWS, num_positions)))
    assert logits_BTV.shape == (ROWS, num_positions, NUM_OUTPUTS)
    assert logits_BTV.dtype == jnp.float32
    assert np.isfinite(logits_BTV).all()
    assert np.std(logits_BTV) > 0


@every_case
def test_a_shorter_input_gives_the_first_logits_of_a_longer_one(name, num_inputs):
    """What pads a sequence, and how far, does not show: forward."""
    one = case(name, num_inputs)
    tokens_BT = random_tokens(num_inputs, (ROWS, 7))
    logits_BTV = one.apply(one.params, tokens_BT)
    for length in (1, 2, 3):
        short = one.apply(one.params, tokens_BT[:, :length])
        np.testing.assert_allclose(short, logits_BTV[:, :length], rtol=1e-5, atol=1e-6)


@every_model
@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_shorter_input_gives_the_gradient_of_a_longer_one(name, length):
    """What pads a sequence, and how far, does not show: backward."""
    one = case(name, 3)
    tokens_BT = random_tokens(3, (ROWS, 7))
    weights_BT = (np.arange(7) < length) * np.ones((ROWS, 1), np.float32)
    long_loss, long_grads = one.loss(one.params, tokens_BT, weights_BT)
    short_loss, short_grads = one.loss(one.params, tokens_BT[:, :length], weights_BT[:, :length])
    np.testing.assert_allclose(short_loss, long_loss, rtol=1e-5)
    for short, long in zip(jax.tree.leaves(short_grads), jax.tree.leaves(long_grads), strict=True):
        assert np.isfinite(short).all()
        np.testing.assert_allclose(short, long, rtol=1e-4, atol=1e-5)


@every_case
def test_a_row_does_not_depend_on_the_others_of_its_batch(name, num_inputs):
    one = case(name, num_inputs)
    tokens_BT = random_tokens(num_inputs, (ROWS, 7))
    others_BT = np.concatenate([tokens_BT[:1], random_tokens(num_inputs, (ROWS - 1, 7), seed=1)])
    logits_BTV = one.apply(one.params, tokens_BT)
    np.testing.assert_allclose(
        one.apply(one.params, others_BT)[0], logits_BTV[0], rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        one.apply(one.params, tokens_BT[::-1]), logits_BTV[::-1], rtol=1e-5, atol=1e-6
    )


@every_case
def test_every_token_leaves_its_own_trace(name, num_inputs):
    one = case(name, num_inputs)
    size = min(num_inputs, ROWS)
    tokens_BT = np.zeros((size, 7), np.int32)
    tokens_BT[:, 3] = np.random.RandomState(0).permutation(num_inputs)[:size]
    logits_BV = one.apply(one.params, tokens_BT)[:, -1]
    distances_BB = np.abs(logits_BV[:, None] - logits_BV[None]).max(axis=-1)
    assert (distances_BB + np.eye(size) > 1e-6).all()


# --- causality ----------------------------------------------------------------------------------


@every_case
def test_changing_the_future_leaves_the_past_alone(name, num_inputs):
    one = case(name, num_inputs)
    tokens_T = random_tokens(num_inputs, (7,))
    # Row k keeps positions 0..k and changes all that follow.
    changed_TT = np.where(
        np.arange(7) <= np.arange(7)[:, None], tokens_T, (tokens_T + 1) % num_inputs
    )
    logits_TTV = one.apply(one.params, changed_TT)
    logits_TV = logits_TTV[6]
    for k in range(6):
        np.testing.assert_allclose(logits_TTV[k, : k + 1], logits_TV[: k + 1], rtol=1e-5, atol=1e-6)
        assert np.abs(logits_TTV[k, k + 1] - logits_TV[k + 1]).max() > 1e-5


@every_case
def test_no_gradient_flows_from_the_past_to_the_future(name, num_inputs):
    """d logits[k] / d embedding of the token at t is zero for t > k, and for no t <= k."""
    one = case(name, num_inputs)
    size = min(num_inputs, 6)
    tokens_T = np.random.RandomState(1).permutation(num_inputs)[:size].astype(np.int32)
    mix_V = np.array([1.0, -0.5, 0.25, 2.0, -1.5], np.float32)

    def outputs(embedding):
        params = one.params | {"embedding": embedding}
        return one.model.apply(params, tokens_T[None])[0] @ mix_V

    jacobian_TVH = np.asarray(quick_jit(jax.jacrev(outputs))(one.params["embedding"]))
    reaches_TT = np.abs(jacobian_TVH[:, tokens_T]).max(axis=-1)
    past = np.tril(np.ones((size, size), bool))
    assert (reaches_TT[~past] == 0).all()
    assert (reaches_TT[past] > 0).all()
    unread = np.setdiff1d(np.arange(num_inputs), tokens_T)
    assert (jacobian_TVH[:, unread] == 0).all()


# --- gradients ----------------------------------------------------------------------------------


@every_case
def test_every_parameter_has_a_finite_gradient(name, num_inputs):
    one = case(name, num_inputs)
    # Every token occurs, so every row of the embedding has a gradient.
    tokens_BT = np.resize(np.arange(num_inputs), (ROWS, 7)).astype(np.int32)
    _, grads = one.loss(one.params, tokens_BT, np.ones((ROWS, 7), np.float32))
    for path, grad in jax.tree_util.tree_leaves_with_path(grads):
        where = jax.tree_util.keystr(path)
        assert np.isfinite(grad).all(), where
        assert np.abs(grad).max() > 0, where
    assert (np.abs(grads["embedding"]).max(axis=1) > 0).all()


@every_model
def test_the_gradient_is_the_slope_of_the_loss(name):
    """Every parameter array in turn moves in a random direction; slopes are taken in 64 bits."""
    one = case(name, 3)
    tokens_BT, weights_BT = random_tokens(3, (ROWS, 7)), np.ones((ROWS, 7), np.float32) / ROWS
    generator = np.random.RandomState(0)
    _, grads = one.loss(one.params, tokens_BT, weights_BT)
    with jax.enable_x64(True):
        params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), one.params)
        for path, grad in jax.tree_util.tree_leaves_with_path(grads):
            direction, step = generator.randn(*grad.shape), 1e-5

            def loss_at(step, path=path, direction=direction):
                moved = jax.tree_util.tree_map_with_path(
                    lambda other, leaf: leaf + step * direction if other == path else leaf, params
                )
                return float(one.loss(moved, tokens_BT, weights_BT)[0])

            slope = (loss_at(step) - loss_at(-step)) / (2 * step)
            expected = float(np.vdot(grad, direction))
            where = jax.tree_util.keystr(path)
            assert slope == pytest.approx(expected, rel=1e-3, abs=1e-4), where


# --- initialisation and sizes -------------------------------------------------------------------


@every_model
def test_a_key_gives_the_same_model_and_another_key_another(name):
    first, other = initialised(name, seed=0), initialised(name, seed=1)
    again = compiled_init(name)(jax.random.key(0), jnp.zeros((1, 4), jnp.int32))
    for a, b, c in zip(*map(jax.tree.leaves, (first, again, other)), strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_array_equal(a, b)
        assert np.std(a) == 0 or (a != c).any()


@every_model
def test_a_new_model_has_finite_logits_and_gradients(name):
    tokens_BT, weights_BT = random_tokens(3, (ROWS, 7)), np.ones((ROWS, 7), np.float32)
    value, grads = case(name, 3).loss(initialised(name, seed=0), tokens_BT, weights_BT)
    for leaf in (value, *jax.tree.leaves(grads)):
        assert np.isfinite(leaf).all()
        assert np.abs(leaf).max() > 0


@every_model
def test_a_fixed_key_gives_the_numbers_written_down(name):
    tokens_BT = np.array([[0, 1, 2, 2, 1, 0, 1]], np.int32)
    logits_TV = case(name, 3).apply(initialised(name, seed=0), tokens_BT)[0]
    np.testing.assert_allclose(logits_TV[[0, 6]], GOLDEN[name], atol=2e-4, err_msg=GOLDEN_CHANGED)


@every_model
def test_a_model_gives_the_same_logits_twice(name):
    one, tokens_BT = case(name, 3), random_tokens(3, (ROWS, 7))
    first, again = one.apply(one.params, tokens_BT), one.apply(one.params, tokens_BT)
    np.testing.assert_array_equal(first, again)


@every_model
def test_the_shapes_of_parameters_do_not_depend_on_the_tokens(name):
    one, key = case(name, 3), jax.random.key(0)
    shapes = jax.tree.map(jnp.shape, one.params)
    for tokens_BT in (jnp.zeros((1, 1), jnp.int32), jnp.ones((3, 9), jnp.int32)):
        drawn = jax.eval_shape(one.model.init, key, tokens_BT)
        assert jax.tree.map(jnp.shape, drawn) == shapes


@every_case
def test_the_number_of_parameters_is_the_formulas(name, num_inputs):
    count = COUNTS[name](num_inputs, NUM_OUTPUTS, MAX_POSITIONS, **SETTINGS[name])
    one = case(name, num_inputs)
    assert num_parameters(one.model) == count
    assert sum(leaf.size for leaf in jax.tree.leaves(one.params)) == count
    assert {leaf.dtype for leaf in jax.tree.leaves(one.params)} == {jnp.dtype("float32")}


@pytest.mark.parametrize(("name", "settings"), LARGE)
def test_the_number_of_parameters_of_the_papers_models_is_the_formulas(name, settings):
    model = make_model(name, num_inputs=121, num_outputs=120, max_positions=60, **settings)
    assert num_parameters(model) == COUNTS[name](121, 120, 60, **settings)


# --- what is refused ----------------------------------------------------------------------------


@every_model
def test_more_positions_than_the_model_was_built_for_are_refused(name):
    one = case(name, 3)
    assert one.apply(one.params, random_tokens(3, (1, MAX_POSITIONS))).shape[1] == MAX_POSITIONS
    message = f"model {name}: {MAX_POSITIONS + 1} positions exceed max_positions={MAX_POSITIONS}"
    for apply in (one.model.apply, one.apply):
        with pytest.raises(ValueError, match=message):
            apply(one.params, random_tokens(3, (1, MAX_POSITIONS + 1)))


def test_an_unknown_model_is_refused_with_the_nearest_name():
    message = "model.name: 'lstn' is unknown; did you mean 'lstm'\\? \\(valid: dense_ssm, lstm, "
    with pytest.raises(ValueError, match=message):
        settings_of("lstn")
    with pytest.raises(ValueError, match=message):
        make_model("lstn", num_inputs=2, num_outputs=2, max_positions=2, hidden=2)


def test_heads_that_do_not_divide_the_width_are_refused():
    message = "model.heads: 3 heads do not divide model.hidden=8; use a divisor"
    with pytest.raises(ValueError, match=message):
        make_model(
            "transformer",
            num_inputs=2,
            num_outputs=2,
            max_positions=2,
            hidden=8,
            layers=1,
            heads=3,
        )
