"""Recurrences in one call each: a sequential scan, or `jax.lax.associative_scan` where it pays.

Knows arrays only. Sequences are time-major here: [T, B, ...].
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ib_bench.lookup import lookup

# Composing two b x b blocks costs b times as much as applying one; past this size the parallel
# form's log2(T) depth no longer pays.
MAX_COMPOSED_BLOCK = 4

MAX_UNROLLED = 8  # steps of `recurrent`; longer loops would compile for too long


def sequential(step: Callable, start, inputs) -> jax.Array:
    """Runs state = step(state, input) over time and returns all states.

    Args:
      step: (state, input) -> state.
      start: the state before the first input, a pytree.
      inputs: a pytree of [T, ...].

    Returns:
      States after each input: `start`'s pytree with a leading T.
    """

    def body(state, value):
        state = step(state, value)
        return state, state

    return jax.lax.scan(body, start, inputs)[1]


Step = Callable[[jax.Array, Any], tuple[jax.Array, Any]]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def recurrent(step: Step, weights_HG: jax.Array, cell: Any, inputs_TBG: jax.Array) -> jax.Array:
    """Runs h_t, c_t = step(h_{t-1} W + x_t, c_{t-1}) over time from h_0 = 0; returns all h_t.

    As `sequential`, and cheaper to train: h_0 is never multiplied, and the gradient of W is one
    product after the loop instead of one a step.

    Args:
      step: elementwise, (sum_BG, c) -> (h_BH, c); closes over no traced value. What its own
        derivative keeps is kept for every t.
      weights_HG: W.
      cell: c_0, a pytree of [B, ...].
      inputs_TBG: x_1..x_T.

    Returns:
      float32[T, B, H].
    """
    return _recurrent_forward(step, weights_HG, cell, inputs_TBG)[0]


def _recurrent_forward(step, weights_HG, cell, inputs_TBG):
    def body(state, input_BG):
        hidden_BH, cell = state
        state, pull = jax.vjp(step, hidden_BH @ weights_HG + input_BG, cell)
        return state, (state[0], pull)

    state, first_pull = jax.vjp(step, inputs_TBG[0], cell)
    _, (hidden_SBH, pulls) = _scan(body, state, inputs_TBG[1:])
    hidden_TBH = jnp.concatenate([state[0][None], hidden_SBH])
    return hidden_TBH, (weights_HG, hidden_TBH, state[1], first_pull, pulls)


def _recurrent_backward(step, kept, grad_TBH):
    del step
    weights_HG, hidden_TBH, cell, first_pull, pulls = kept

    def body(grads, now):
        (grad_BH, grad_cell), (add_BH, pull) = grads, now
        # The barrier keeps XLA from computing the chain of grad_cell anew for every step.
        pulled = pull((grad_BH + add_BH, grad_cell))
        grad_BG, grad_cell = jax.lax.optimization_barrier(pulled)
        return (grad_BG @ weights_HG.T, grad_cell), grad_BG

    nothing = jax.tree.map(jnp.zeros_like, (hidden_TBH[0], cell))
    (grad_BH, grad_cell), grad_SBG = _scan(body, nothing, (grad_TBH[1:], pulls), reverse=True)
    grad_BG, grad_cell = first_pull((grad_BH + grad_TBH[0], grad_cell))
    H, G = weights_HG.shape
    grad_HG = hidden_TBH[:-1].reshape(-1, H).T @ grad_SBG.reshape(-1, G)
    return grad_HG, grad_cell, jnp.concatenate([grad_BG[None], grad_SBG])


recurrent.defvjp(_recurrent_forward, _recurrent_backward)


def _scan(body, start, inputs, reverse=False):
    """A scan whose loop is unrolled where it is short: half the time of an LSTM at T = 5."""
    num_steps = len(jax.tree.leaves(inputs)[0])
    unroll = num_steps if num_steps <= MAX_UNROLLED else 2
    return jax.lax.scan(body, start, inputs, reverse=reverse, unroll=max(1, unroll))


def linear_recurrence(
    transition: jax.Array,
    start_BH: jax.Array,
    additive_TBH: jax.Array | None = None,
    method: str = "auto",
) -> jax.Array:
    """Computes h_t = A_t h_{t-1} + b_t for diagonal, block-diagonal or full A_t.

    Args:
      transition: A_1..A_T: [T, B, H] diagonal, or [T, B, H/b, b, b] blocks (one block: full).
      start_BH: h_0.
      additive_TBH: b_1..b_T, or None for a purely multiplicative recurrence.
      method: "sequential", "associative", or "auto", which composes in parallel only where that is
        cheap: diagonals and blocks of up to `MAX_COMPOSED_BLOCK`.

    Returns:
      float32[T, B, H].
    """
    diagonal = transition.ndim == 3
    block = 1 if diagonal else transition.shape[-1]
    if method == "auto":
        method = "associative" if block <= MAX_COMPOSED_BLOCK else "sequential"
    run = lookup({"associative": _associative, "sequential": _stepwise}, method, "method")
    num_steps, batch_size = transition.shape[:2]
    shape = transition.shape[2:] if diagonal else transition.shape[2:4]
    start = start_BH.reshape(batch_size, *shape)
    if additive_TBH is None:
        additive_TBH = jnp.zeros((num_steps, *start_BH.shape), start_BH.dtype)
    additive = additive_TBH.reshape(num_steps, batch_size, *shape)
    states = run(transition, start, additive, diagonal)
    return states.reshape(num_steps, *start_BH.shape)


def _apply(transition, state, diagonal):
    return transition * state if diagonal else jnp.einsum("...ij,...j->...i", transition, state)


def _stepwise(transition, start, additive, diagonal):
    def step(state, pair):
        return _apply(pair[0], state, diagonal) + pair[1]

    return sequential(step, start, (transition, additive))


def _associative(transition, start, additive, diagonal):
    # Affine maps compose: (A2, b2) after (A1, b1) is (A2 A1, A2 b1 + b2).
    def compose(first, second):
        (a1, b1), (a2, b2) = first, second
        return a2 * a1 if diagonal else a2 @ a1, _apply(a2, b1, diagonal) + b2

    product, offset = jax.lax.associative_scan(compose, (transition, additive))
    return _apply(product, start[None], diagonal) + offset
