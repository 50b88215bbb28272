"""The bilinear hierarchy: one recurrence, transitions of six structures."""

import re

import jax
import numpy as np
import pytest
from quick_models import init, quick_jit, random_params

from ib_bench.models import make_model, recurrence
from ib_bench.models.structures import STRUCTURES

HIDDEN, RANK, BLOCK = 8, 5, 4
COMPOSED = ("block", "diagonal", "positive_diagonal", "rotation")  # in parallel
# So that the state neither grows nor shrinks much where every parameter is drawn with this scale.
SCALES = {
    "block": 0.42,
    "cp": 0.42,
    "diagonal": 0.55,
    "full": 0.35,
    "positive_diagonal": 0.5,
    "rotation": 0.5,
}


def make(
    structure, additive=False, num_inputs=5, hidden=HIDDEN, rank=RANK, unit_state=False, **sizes
):
    return make_model(
        "bilinear",
        **{"num_inputs": num_inputs, "num_outputs": 5, "max_positions": 500, **sizes},
        hidden=hidden,
        structure=structure,
        rank=rank,
        block=BLOCK,
        additive=additive,
        unit_state=unit_state,
    )


def matrix(structure, p, token):
    """A(x) of one token, H x H, in 64 bits."""
    x = p["embedding"][token]
    if structure == "full":  # W acts on row vectors
        return sum(x[k] * p["weights"][k] for k in range(HIDDEN)).T
    if structure == "cp":
        return p["w1"] @ np.diag(p["wx"].T @ x) @ p["w2"].T
    entries = sum(x[k] * p["weights"][k] for k in range(HIDDEN))
    if structure == "diagonal":
        return np.diag(entries)
    if structure == "positive_diagonal":
        return np.diag(1 / (1 + np.exp(-entries - 3)))
    if structure == "rotation":
        entries = [[[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]] for a in entries]
    result, place = np.zeros((HIDDEN, HIDDEN)), 0
    for part in np.array(entries):
        size = len(part)
        result[place : place + size, place : place + size] = part
        place += size
    return result


def states_of(structure, p, tokens_T, trained_positions=None):
    """All states of one sequence in numpy and 64 bits."""
    state, states = p["start"], []
    for t, token in enumerate(tokens_T):
        new = matrix(structure, p, token) @ state
        if "additive" in p:
            new = new + p["embedding"][token] @ p["additive"]
        if trained_positions is not None and t >= trained_positions:
            new = new * np.linalg.norm(state) / np.linalg.norm(new)
        state = new
        states.append(state)
    return np.stack(states)


def step_by_step(structure, params, tokens_T, trained_positions=None):
    p = {name: np.asarray(leaf, np.float64) for name, leaf in params.items()}
    return states_of(structure, p, tokens_T, trained_positions) @ p["head"] + p["head_bias"]


def random_case(structure, additive, shape, num_inputs=5):
    model = make(structure, additive, num_inputs)
    params = random_params(model, SCALES[structure])
    tokens_BT = np.random.RandomState(1).randint(num_inputs, size=shape).astype(np.int32)
    return model, params, tokens_BT


@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_logits_equal_a_loop_step_by_step(structure, additive):
    model, params, tokens_BT = random_case(structure, additive, (3, 9))
    assert ("additive" in params) == additive
    logits_BTV = quick_jit(model.apply)(params, tokens_BT)
    expected = np.stack([step_by_step(structure, params, row) for row in tokens_BT])
    np.testing.assert_allclose(logits_BTV, expected, rtol=1e-3, atol=1e-4)


def test_a_unit_state_is_read_at_length_one_and_remembered_as_it_is():
    model = make("full", unit_state=True, trained_positions=6)
    params = random_params(model, SCALES["full"])
    tokens_BT = np.random.RandomState(1).randint(5, size=(3, 9)).astype(np.int32)
    p = {name: np.asarray(leaf, np.float64) for name, leaf in params.items()}
    states_BTH = np.stack([states_of("full", p, row, trained_positions=6) for row in tokens_BT])
    units_BTH = states_BTH / np.linalg.norm(states_BTH, axis=-1, keepdims=True)
    logits_BTV = quick_jit(model.apply)(params, tokens_BT)
    np.testing.assert_allclose(logits_BTV, units_BTH @ p["head"] + p["head_bias"], 1e-3, 1e-4)


def test_a_unit_state_of_zeros_has_a_gradient():
    model = make("full", unit_state=True)
    params = random_params(model, SCALES["full"])
    params = params | {"start": np.zeros(HIDDEN, np.float32)}
    tokens_BT = np.zeros((2, 3), np.int32)
    grads = quick_jit(jax.grad(lambda params: model.apply(params, tokens_BT).sum()))(params)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(grads))


@pytest.mark.parametrize("num_inputs", [16, 17, 129])
def test_a_full_transition_with_an_additive_term_equals_a_loop_at_every_threshold(num_inputs):
    model, params, tokens_BT = random_case("full", True, (3, 9), num_inputs)
    expected = np.stack([step_by_step("full", params, row) for row in tokens_BT])
    logits_BTV = quick_jit(model.apply)(params, tokens_BT)
    np.testing.assert_allclose(logits_BTV, expected, rtol=1e-3, atol=1e-4)


def program_of(model):
    """What is computed for 6 positions, without the addresses of functions."""
    program = jax.make_jaxpr(model.apply)(random_params(model), np.zeros((2, 6), np.int32))
    return re.sub("0x[0-9a-f]+", "", str(program))


def values_and_gradients(model, params, tokens_BT, cotangent_BTV):
    @quick_jit
    def both(params):
        logits_BTV, pull = jax.vjp(lambda params: model.apply(params, tokens_BT), params)
        return logits_BTV, pull(cotangent_BTV)[0]

    return both(params)


@pytest.mark.parametrize("num_positions", [1, 6])
@pytest.mark.parametrize(
    ("structure", "additive"),
    [("block", True), *((structure, False) for structure in COMPOSED)],
)
def test_parallel_and_sequential_forms_agree_in_values_and_gradients(
    monkeypatch, structure, additive, num_positions
):
    cotangent_BTV = np.random.RandomState(2).randn(3, num_positions, 5).astype(np.float32)
    results = []
    for platforms in (("cpu",), ()):
        monkeypatch.setattr(recurrence, "PARALLEL_PLATFORMS", platforms)
        # A new model each time: what was traced before is kept.
        model, params, tokens_BT = random_case(structure, additive, (3, num_positions))
        assert ("scan[" in program_of(model)) == (not platforms)
        results.append(values_and_gradients(model, params, tokens_BT, cotangent_BTV))
    (logits, grads), (others, other_grads) = results
    np.testing.assert_allclose(logits, others, rtol=1e-4, atol=1e-5)
    for name, grad in grads.items():
        np.testing.assert_allclose(grad, other_grads[name], rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_step_keeps_the_norm_of_the_state_in_expectation(structure):
    hidden = 32
    params = init(make(structure, num_inputs=400, hidden=hidden, rank=24))
    model = make(structure, num_inputs=400, hidden=hidden, rank=24, num_outputs=hidden)
    # The head hands the state out as it is.
    params = params | {"head": np.eye(hidden, dtype=np.float32), "head_bias": np.zeros(hidden)}
    states_BTH = quick_jit(model.apply)(params, np.arange(400, dtype=np.int32)[:, None])
    ratio = (states_BTH[:, 0] ** 2).sum(axis=1).mean() / (params["start"] ** 2).sum()
    if structure == "rotation":
        assert ratio == pytest.approx(1, rel=1e-4)
    elif structure == "positive_diagonal":
        assert 0.8 < ratio < 1
    else:
        assert ratio == pytest.approx(1, rel=0.3)


# --- beyond the length of training --------------------------------------------------------------


@pytest.mark.parametrize("name", [*STRUCTURES, "dense_ssm"])
def test_past_the_length_of_training_the_state_keeps_its_norm_and_its_direction(name):
    """At 500 positions logits are finite, and the state points where a loop in 64 bits does."""
    trained = 10
    structure = "full" if name == "dense_ssm" else name
    sizes = {"num_outputs": HIDDEN, "max_positions": 500, "trained_positions": trained}
    if name == "dense_ssm":  # with so many symbols that their matrices are looked up
        model = make_model("dense_ssm", num_inputs=20, hidden=HIDDEN, **sizes)
    else:
        model = make(structure, **sizes)
    params = random_params(model, SCALES[structure])
    params |= {"head": np.eye(HIDDEN, dtype=np.float32), "head_bias": np.zeros(HIDDEN, np.float32)}
    tokens_BT = np.random.RandomState(1).randint(5, size=(2, 500)).astype(np.int32)
    found = np.asarray(quick_jit(model.apply)(params, tokens_BT))
    assert np.isfinite(found).all()
    expected = np.stack([step_by_step(structure, params, row, trained) for row in tokens_BT])
    lengths_BT = np.linalg.norm(found, axis=-1)
    kept_BT = np.broadcast_to(lengths_BT[:, [trained - 1]], (2, 500 - trained))
    np.testing.assert_allclose(lengths_BT[:, trained:], kept_BT, rtol=1e-3)
    np.testing.assert_allclose(
        found / lengths_BT[..., None],
        expected / np.linalg.norm(expected, axis=-1, keepdims=True),
        atol=5e-3,
    )


@pytest.mark.parametrize("structure", ["block", "full"])
def test_up_to_the_length_of_training_it_is_the_same_program(structure):
    default, same, other = (
        program_of(make(structure, trained_positions=size)) for size in (None, 6, 5)
    )
    assert default == same != other


def test_an_additive_term_leaves_the_norm_alone():
    one, other = (make("block", additive=True, trained_positions=size) for size in (None, 3))
    assert program_of(one) == program_of(other)


def test_a_state_that_vanishes_stays_finite():
    model = make("diagonal", trained_positions=1)
    params = random_params(model) | {"weights": np.zeros((HIDDEN, HIDDEN), np.float32)}
    assert np.isfinite(quick_jit(model.apply)(params, np.zeros((1, 4), np.int32))).all()


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("structure", "hidden", "message"),
    [
        ("ful", 8, "model.structure: 'ful' is unknown; did you mean 'full'"),
        ("block", 6, "model.block: blocks of 4 do not divide model.hidden=6; use a divisor"),
        (
            "rotation",
            7,
            "model.hidden: 7 is odd, structure=.rotation. turns pairs; use an even number",
        ),
    ],
)
def test_sizes_that_do_not_fit_are_refused(structure, hidden, message):
    with pytest.raises(ValueError, match=message):
        make(structure, hidden=hidden)
