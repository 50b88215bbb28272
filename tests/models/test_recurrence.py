"""Associative == sequential == step by step, values and gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick_models import quick_jit

from ib_bench.models import recurrence
from ib_bench.models.recurrence import MAX_COMPOSED_BLOCK, linear_recurrence, sequential

BATCH, HIDDEN = 2, 8


SHAPES = {  # of A_t, beside [T, B]
    "diagonal": (HIDDEN,),
    "blocks of 2": (HIDDEN // 2, 2, 2),
    "blocks of 4": (HIDDEN // 4, 4, 4),
    "full": (1, HIDDEN, HIDDEN),
}
SCALES = {"diagonal": 1.0, "blocks of 2": 0.7, "blocks of 4": 0.5, "full": 0.35}


def make_inputs(kind, num_steps, seed=0):
    generator = np.random.RandomState(seed)
    transition = SCALES[kind] * generator.randn(num_steps, BATCH, *SHAPES[kind])
    start_BH = generator.randn(BATCH, HIDDEN)
    additive_TBH = generator.randn(num_steps, BATCH, HIDDEN)
    cotangent_TBH = generator.randn(num_steps, BATCH, HIDDEN)
    return [part.astype(np.float32) for part in (transition, start_BH, additive_TBH, cotangent_TBH)]


def full_matrices(transition):
    """[T, B, H, H] in 64 bits, zeros off the blocks."""
    if transition.ndim == 3:
        transition = transition[..., None, None]
    num_blocks, size = transition.shape[2:4]
    full = np.zeros((*transition.shape[:2], HIDDEN, HIDDEN))
    for k in range(num_blocks):
        place = slice(k * size, (k + 1) * size)
        full[:, :, place, place] = transition[:, :, k]
    return full


def blocks_of(full, shape):
    """The entries of [T, B, H, H] that a transition of this shape holds."""
    if len(shape) == 1:
        return np.diagonal(full, axis1=2, axis2=3)
    num_blocks, size = shape[:2]
    places = [slice(k * size, (k + 1) * size) for k in range(num_blocks)]
    return np.stack([full[:, :, place, place] for place in places], axis=2)


def step_by_step(transition, start_BH, additive_TBH, cotangent_TBH):
    """Returns states and gradients (transition, start, additive), by a loop and its reverse."""
    matrices = full_matrices(transition)
    states = [start_BH.astype(np.float64)]
    for t in range(len(matrices)):
        states.append(np.einsum("bij,bj->bi", matrices[t], states[-1]) + additive_TBH[t])
    grad_BH = np.zeros_like(states[0])
    grad_matrices, grad_additive = np.zeros_like(matrices), np.zeros(additive_TBH.shape)
    for t in reversed(range(len(matrices))):
        grad_BH = grad_BH + cotangent_TBH[t]
        grad_additive[t] = grad_BH
        grad_matrices[t] = np.einsum("bi,bj->bij", grad_BH, states[t])
        grad_BH = np.einsum("bij,bi->bj", matrices[t], grad_BH)
    grads = blocks_of(grad_matrices, transition.shape[2:]), grad_BH, grad_additive
    return np.stack(states[1:]), grads


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("method", ["associative", "sequential"])
@pytest.mark.parametrize("num_steps", [1, 2, 3, 7, 16])
def test_values_and_gradients_equal_a_loop(kind, method, num_steps):
    transition, start_BH, additive_TBH, cotangent_TBH = make_inputs(kind, num_steps)

    def run(*operands):
        return linear_recurrence(*operands, method=method)

    @quick_jit
    def both(transition, start_BH, additive_TBH):
        # With an additive term and without one, in one program.
        with_term, pull_with = jax.vjp(run, transition, start_BH, additive_TBH)
        without, pull_without = jax.vjp(run, transition, start_BH)
        return (with_term, pull_with(cotangent_TBH)), (without, pull_without(cotangent_TBH))

    with_term, without = both(transition, start_BH, additive_TBH)
    zeros_TBH = np.zeros_like(additive_TBH)
    for (states, grads), additive in ((with_term, additive_TBH), (without, zeros_TBH)):
        assert states.shape == (num_steps, BATCH, HIDDEN)
        assert states.dtype == jnp.float32
        expected, expected_grads = step_by_step(transition, start_BH, additive, cotangent_TBH)
        np.testing.assert_allclose(states, expected, rtol=1e-4, atol=1e-4)
        for grad, expected_grad in zip(grads, expected_grads, strict=False):  # without: no additive
            np.testing.assert_allclose(grad, expected_grad, rtol=1e-4, atol=2e-4)


def is_sequential(transition, method="auto"):
    """A scan over time is a loop in the program; the associative form is unrolled."""
    start_BH = jnp.zeros((BATCH, transition.shape[2] * (transition.shape + (1,))[3]))

    def run(transition, start_BH):
        return linear_recurrence(transition, start_BH, method=method)

    equations = jax.make_jaxpr(run)(transition, start_BH).eqns
    return any(equation.primitive.name in ("scan", "while") for equation in equations)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((8,), False),
        ((4, 2, 2), False),
        ((2, MAX_COMPOSED_BLOCK, MAX_COMPOSED_BLOCK), False),
        ((1, MAX_COMPOSED_BLOCK + 1, MAX_COMPOSED_BLOCK + 1), True),
        ((1, 8, 8), True),
        ((8, 1, 1), False),
    ],
)
def test_auto_composes_in_parallel_only_small_blocks_on_an_accelerator(
    monkeypatch, shape, expected
):
    transition = jnp.zeros((6, BATCH, *shape))
    assert is_sequential(transition)  # this is a CPU
    monkeypatch.setattr(recurrence, "PARALLEL_PLATFORMS", ("cpu",))
    assert is_sequential(transition) is expected
    assert is_sequential(transition, "sequential")
    assert not is_sequential(transition, "associative")


def test_an_unknown_method_is_refused_with_the_nearest_name():
    transition, start_BH, _, _ = make_inputs("diagonal", 2)
    with pytest.raises(ValueError, match="method: 'assoc' is unknown; did you mean 'associative'"):
        linear_recurrence(transition, start_BH, method="assoc")


def test_sequential_returns_all_states_of_any_pytree():
    def step(state, value):
        return {"sum": state["sum"] + value["x"], "last": value["x"]}

    values = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    states = sequential(step, {"sum": jnp.ones(2), "last": jnp.zeros(2)}, {"x": values})
    assert states["sum"].tolist() == [[2.0, 3.0], [5.0, 7.0], [10.0, 13.0]]
    np.testing.assert_array_equal(states["last"], values)
