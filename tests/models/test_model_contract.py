"""Every entry of MODELS keeps the same promises; a new model is tested by its lines below."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ib_bench.configs import base
from quick_models import quick_jit, random_params

from ib_bench.models import MODELS, Model, make_model, num_parameters, settings_of


class Variant(NamedTuple):
    name: str  # of MODELS
    settings: dict[str, Any]
    # Input vocabularies that reach every branch of a model: past 128 tokens are gathered, and the
    # dense SSM applies every matrix up to 16.
    vocabularies: tuple[int, ...] = (3,)
    scale: float = 0.3  # of random parameters: signals neither grow nor vanish much in 7 steps


def decoder(positions, **settings):
    return {"hidden": 8, **settings, "heads": 2, "positions": positions}


def bilinear(structure, additive=False, unit_state=False):
    settings = {"hidden": 8, "structure": structure, "rank": 4, "block": 2}
    settings |= {"additive": additive, "unit_state": unit_state}
    return Variant("bilinear", settings, scale=0.3 if structure == "rotation" else 0.5)


def mamba(eigenvalues):
    settings = {"hidden": 6, "layers": 1, "state": 3, "expand": 2, "conv": 4}
    return Variant("mamba", {**settings, "eigenvalues": eigenvalues})


# The first variant of a model gets every test, the others those that are not about shared code.
VARIANTS = {
    "dense_ssm": Variant("dense_ssm", {"hidden": 8}, (3, 20, 200)),
    "bilinear, block": bilinear("block"),
    "bilinear, cp": bilinear("cp"),
    "bilinear, diagonal": bilinear("diagonal"),
    "bilinear, positive diagonal": bilinear("positive_diagonal"),
    "bilinear, rotation": bilinear("rotation"),
    "bilinear, diagonal and additive": bilinear("diagonal", additive=True),
    "bilinear, full and additive": bilinear("full", additive=True),
    "bilinear, block and unit state": bilinear("block", unit_state=True),
    "lstm": Variant("lstm", {"hidden": 8}, (3, 200)),
    "gru": Variant("gru", {"hidden": 8}),
    "rnn": Variant("rnn", {"hidden": 8}),
    "mamba": mamba("signed"),
    "mamba, positive": mamba("positive"),
    "delta_product": Variant(
        "delta_product",
        {"hidden": 8, "layers": 1, "heads": 2, "householders": 2, "eigenvalues": "signed"},
    ),
    "deltanet": Variant(
        "deltanet", {"hidden": 8, "layers": 1, "heads": 2, "eigenvalues": "positive"}
    ),
    "transformer": Variant("transformer", decoder("learned", layers=1), (3, 200)),
    "transformer, sinusoidal": Variant("transformer", decoder("sinusoidal", layers=1)),
    "transformer, rotary": Variant("transformer", decoder("rotary", layers=1)),
    "transformer, alibi": Variant("transformer", decoder("alibi", layers=1)),
    "transformer, none": Variant("transformer", decoder("none", layers=1)),
    "looped_transformer": Variant("looped_transformer", decoder("learned") | {"loops": 3}),
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
    "bilinear, block": [
        [-0.4276, 0.011, 1.4301, -3.0106, 1.4463],
        [3.7739, 0.7395, -4.4389, 6.7922, -2.0577],
    ],
    "bilinear, cp": [
        [-0.1941, -0.3407, -0.2199, -0.8103, 0.4504],
        [-0.6042, 17.1283, 1.859, 54.232, -9.0623],
    ],
    "bilinear, diagonal": [
        [2.8072, 0.9002, -0.1688, -2.1488, 2.6019],
        [-76.655, 12.8277, 38.8872, 47.1713, -29.0181],
    ],
    "bilinear, positive diagonal": [
        [1.9552, 0.9399, 0.0197, -0.2097, 1.8426],
        [0.5955, 0.4802, -0.0298, 0.865, 0.3428],
    ],
    "bilinear, rotation": [
        [-1.3093, -0.1089, 0.6202, 1.0382, -0.2112],
        [-0.0844, -1.5781, -0.436, -0.8017, -0.7426],
    ],
    "bilinear, diagonal and additive": [
        [3.752, 1.0962, -0.4596, -3.9646, 3.807],
        [-166.6944, 31.4297, 85.8442, 100.5637, -59.9533],
    ],
    "bilinear, full and additive": [
        [0.94, -0.7893, -0.5729, -0.5252, -0.2341],
        [0.3371, 10.6391, -0.3985, -0.8054, 9.5706],
    ],
    "bilinear, block and unit state": [
        [-0.1191, 0.0031, 0.3983, -0.8385, 0.4028],
        [0.3411, 0.0668, -0.4013, 0.614, -0.186],
    ],
    "lstm": [[0.289, -0.454, -0.0773, 0.3792, -0.0997], [0.2861, -0.4752, 0.0057, 0.5788, -0.0909]],
    "gru": [
        [-0.0167, -0.5241, -0.2347, 0.3951, 0.1883],
        [0.4362, -0.5928, 0.1423, 0.3814, -0.2143],
    ],
    "rnn": [[0.3317, -0.3309, -0.4646, 0.0639, 0.099], [0.0883, 0.1356, 0.8575, 0.3827, -0.5872]],
    "mamba": [
        [-0.483, -0.0509, 0.9554, -0.0678, 0.1589],
        [0.9411, 0.2946, -0.6985, -0.5318, 0.4888],
    ],
    "mamba, positive": [
        [-0.483, -0.0509, 0.9554, -0.0678, 0.1589],
        [0.9411, 0.2946, -0.6985, -0.5318, 0.4888],
    ],
    "delta_product": [
        [-0.0683, 0.1014, 0.0956, 0.0037, 0.0372],
        [-0.0035, 0.1013, 0.0313, 0.0031, 0.0586],
    ],
    "deltanet": [
        [0.0012, 0.1156, 0.0661, -0.0153, 0.0787],
        [0.0192, 0.0801, 0.004, -0.0065, 0.0776],
    ],
    "transformer": [
        [0.1132, 0.014, -0.0131, -0.0318, 0.0228],
        [-0.005, 0.0357, -0.0009, 0.0083, -0.0087],
    ],
    "transformer, sinusoidal": [
        [-0.0341, 0.0168, 0.0945, -0.0017, 0.0273],
        [-0.0374, 0.0632, 0.0055, 0.0185, 0.0672],
    ],
    "transformer, rotary": [
        [-0.0236, -0.0003, 0.0901, 0.0001, 0.0004],
        [-0.023, 0.0584, 0.0042, 0.0132, 0.035],
    ],
    "transformer, alibi": [
        [-0.0236, -0.0003, 0.0901, 0.0001, 0.0004],
        [-0.023, 0.0584, 0.0042, 0.0132, 0.035],
    ],
    "transformer, none": [
        [-0.0236, -0.0003, 0.0901, 0.0001, 0.0004],
        [-0.023, 0.0584, 0.0042, 0.0132, 0.035],
    ],
    "looped_transformer": [
        [0.1209, 0.014, -0.0226, -0.0304, 0.0414],
        [0.0207, 0.0257, -0.0348, 0.013, 0.0225],
    ],
}
GOLDEN_CHANGED = (
    "The same key gives other numbers than it used to: the initialisation, the order in which "
    "parameters are drawn, the architecture or the random number generator changed. Results from "
    "before and after cannot be mixed. If this is intended, raise PROTOCOL_VERSION, add a "
    "[Protocol] entry to CHANGELOG.md, and write the new numbers down here."
)


# Parameters by hand, with V inputs, O outputs, P positions.
def count_recurrent(V, O, P, *, hidden, gates):  # noqa: E741
    """Embedding; two matrices and two biases for each gate; head."""
    return V * hidden + 2 * gates * hidden**2 + 2 * gates * hidden + (hidden + 1) * O


def count_dense_ssm(V, O, P, *, hidden):  # noqa: E741
    """Embedding; W_1..W_D, each H x H; h_0; head."""
    return V * hidden + hidden**3 + hidden + (hidden + 1) * O


def count_bilinear(V, O, P, *, hidden, structure, rank, block, additive, unit_state):  # noqa: E741
    """As the dense SSM, with the weights of its structure, and B."""
    del unit_state
    weights = {
        "full": hidden**3,
        "cp": 3 * hidden * rank,
        "block": hidden * hidden * block,
        "rotation": hidden * hidden // 2,
    }
    total = V * hidden + weights.get(structure, hidden**2) + hidden + (hidden + 1) * O
    return total + (hidden**2 if additive else 0)


def count_feed_forward(hidden):
    """Two dense layers and the norm before them."""
    return (4 * hidden**2 + 4 * hidden) + (4 * hidden**2 + hidden) + 2 * hidden


def count_transformer(V, O, P, *, hidden, heads, positions, layers=1, loops=None):  # noqa: E741
    """Tokens, positions; per block qkv, out, MLP and two norms; last norm; head."""
    block = (3 * hidden**2 + 3 * hidden) + (hidden**2 + hidden) + 2 * hidden
    block += count_feed_forward(hidden)
    table = V + (P if positions == "learned" else 0)
    return table * hidden + layers * block + 2 * hidden + hidden * O


def count_mamba(V, O, P, *, hidden, layers, state, expand, conv, eigenvalues):  # noqa: E741
    """Tokens; per layer norm, in, convolution, selection, steps, A, D, out; last norm; head."""
    inside, rank = expand * hidden, (hidden + 15) // 16
    layer = hidden + hidden * 2 * inside + (conv + 1) * inside + inside * (rank + 2 * state)
    layer += (rank + 1) * inside + inside * state + inside + inside * hidden
    return V * hidden + layers * layer + hidden + hidden * O


def count_delta_product(V, O, P, *, hidden, layers, heads, householders=1, **_):  # noqa: E741
    """Tokens; per layer query, keys, values and betas, out, MLP and three norms; norm; head."""
    columns = hidden + householders * (2 * hidden + heads)
    layer = (hidden + 1) * columns + (hidden + 1) * hidden + 2 * hidden + hidden // heads
    layer += count_feed_forward(hidden)
    return V * hidden + layers * layer + 2 * hidden + hidden * O


COUNTS = {
    "bilinear": count_bilinear,
    "delta_product": count_delta_product,
    "deltanet": count_delta_product,
    "dense_ssm": count_dense_ssm,
    "gru": functools.partial(count_recurrent, gates=3),
    "looped_transformer": count_transformer,
    "lstm": functools.partial(count_recurrent, gates=4),
    "mamba": count_mamba,
    "rnn": functools.partial(count_recurrent, gates=1),
    "transformer": count_transformer,
}

# As in the paper.
LARGE = [
    ("dense_ssm", {"hidden": 256}),
    ("lstm", {"hidden": 256}),
    ("lstm", {"hidden": 768}),
    ("transformer", {"hidden": 256, "layers": 2, "heads": 4, "positions": "learned"}),
    ("transformer", {"hidden": 256, "layers": 6, "heads": 4, "positions": "learned"}),
]

FIRST = {one.name: key for key, one in reversed(VARIANTS.items())}  # of each model
every_model = pytest.mark.parametrize("name", [key for key in VARIANTS if key in FIRST.values()])
every_variant = pytest.mark.parametrize("name", VARIANTS)
every_case = pytest.mark.parametrize(
    ("name", "num_inputs"),
    [(name, size) for name, one in VARIANTS.items() for size in one.vocabularies],
)
every_case_of_a_model = pytest.mark.parametrize(
    ("name", "num_inputs"),
    [(name, size) for name in FIRST.values() for size in VARIANTS[name].vocabularies],
)


class Case(NamedTuple):
    model: Model
    params: Any  # none at zero, as biases are at initialisation
    apply: Any  # jitted; any number of rows up to ROWS
    loss: Any  # jitted: (params, tokens, weights) -> loss, gradient


def build(name, num_inputs):
    sizes = {"num_inputs": num_inputs, "num_outputs": NUM_OUTPUTS, "max_positions": MAX_POSITIONS}
    return make_model(VARIANTS[name].name, **sizes, **VARIANTS[name].settings)


@functools.cache
def initialised(name, seed):
    return compiled_init(name)(jax.random.key(seed), jnp.zeros((1, 4), jnp.int32))


@functools.cache
def compiled_init(name):
    return quick_jit(build(name, 3).init)


@functools.cache
def case(name, num_inputs):
    model = build(name, num_inputs)
    params = random_params(model, VARIANTS[name].scale)

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
    assert FIRST.keys() == COUNTS.keys() == MODELS.keys()
    assert VARIANTS.keys() == GOLDEN.keys()
    assert list(MODELS) == sorted(MODELS)


@every_model
def test_settings_are_the_keys_that_the_maker_names(name):
    one = VARIANTS[name]
    declared = {key: options[0] for key, options in base.get_config().model.items()}
    assert settings_of(one.name, declared).keys() == one.settings.keys()


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


@every_case_of_a_model
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


@every_variant
def test_a_key_gives_the_same_model_and_another_key_another(name):
    first, other = initialised(name, seed=0), initialised(name, seed=1)
    again = compiled_init(name)(jax.random.key(0), jnp.zeros((1, 4), jnp.int32))
    for a, b, c in zip(*map(jax.tree.leaves, (first, again, other)), strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_array_equal(a, b)
        # What is not drawn is the same in every row.
        assert np.ptp(a, axis=0).max() == 0 or (a != c).any()


@every_variant
def test_a_new_model_has_finite_logits_and_gradients(name):
    tokens_BT, weights_BT = random_tokens(3, (ROWS, 7)), np.ones((ROWS, 7), np.float32)
    value, grads = case(name, 3).loss(initialised(name, seed=0), tokens_BT, weights_BT)
    for leaf in (value, *jax.tree.leaves(grads)):
        assert np.isfinite(leaf).all()
        assert np.abs(leaf).max() > 0


@every_variant
def test_a_fixed_key_gives_the_numbers_written_down(name):
    tokens_BT = np.array([[0, 1, 2, 2, 1, 0, 1]], np.int32)
    logits_TV = case(name, 3).apply(initialised(name, seed=0), tokens_BT)[0]
    np.testing.assert_allclose(
        logits_TV[[0, 6]], GOLDEN[name], rtol=1e-4, atol=2e-4, err_msg=GOLDEN_CHANGED
    )


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
    variant, one = VARIANTS[name], case(name, num_inputs)
    count = COUNTS[variant.name](num_inputs, NUM_OUTPUTS, MAX_POSITIONS, **variant.settings)
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
    message = f"{MAX_POSITIONS + 1} positions exceed max_positions={MAX_POSITIONS}"
    message = f"model {VARIANTS[name].name}: {message}"
    for apply in (one.model.apply, one.apply):
        with pytest.raises(ValueError, match=message):
            apply(one.params, random_tokens(3, (1, MAX_POSITIONS + 1)))


def test_an_unknown_model_is_refused_with_the_nearest_name():
    message = "model.name: 'lstn' is unknown; did you mean 'lstm'\\? \\(valid: bilinear, "
    with pytest.raises(ValueError, match=message):
        settings_of("lstn", {})
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
            positions="learned",
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"positions": "learnt"}, "model.positions: 'learnt' is unknown; did you mean 'learned'"),
        ({"positions": "rotary", "heads": 8}, "model.positions: 'rotary' turns pairs, and 8 heads"),
    ],
)
@pytest.mark.parametrize("name", ["transformer", "looped_transformer"])
def test_positions_that_are_unknown_or_do_not_fit_are_refused(name, settings, message):
    sizes = {"num_inputs": 2, "num_outputs": 2, "max_positions": 2}
    with pytest.raises(ValueError, match=message):
        make_model(name, **sizes, **(VARIANTS[name].settings | settings))


def test_a_maker_gets_the_sizes_that_it_names(monkeypatch):
    sizes = {"num_inputs": 2, "num_outputs": 3, "max_positions": 4, "trained_positions": 5}
    received = []

    def make_few(*, num_inputs, num_outputs, own):
        received.append((num_inputs, num_outputs, own))
        return len, len

    def make_all(*, num_inputs, num_outputs, max_positions, trained_positions, own):
        received.append((num_inputs, num_outputs, max_positions, trained_positions, own))
        return len, len

    for name, maker in (("few", make_few), ("all", make_all)):
        monkeypatch.setitem(MODELS, name, maker)
        make_model(name, **sizes, own=6)
        assert settings_of(name, {"own": 6, "other": 7}) == {"own": 6}
    assert received == [(2, 3, 6), (2, 3, 4, 5, 6)]
