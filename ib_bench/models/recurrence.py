"""Recurrences in one call each: a sequential scan, or `jax.lax.associative_scan` where it pays.

Knows arrays only. Sequences are time-major here: [T, B, ...].
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from ib_bench.lookup import lookup

# Composing two b x b blocks costs b times as much as applying one; past this size the parallel
# form's log2(T) depth no longer pays.
MAX_COMPOSED_BLOCK = 4


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
