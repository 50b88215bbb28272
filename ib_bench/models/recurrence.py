"""Recurrences in one call each: a sequential scan, or `jax.lax.associative_scan` where it pays.

Knows arrays only. Sequences are time-major here: [T, B, ...].
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ib_bench.lookup import lookup
from ib_bench.models.embedding import select_rows, sum_rows

# Composing two b x b blocks costs b times as much as applying one; past this size the parallel
# form's log2(T) depth no longer pays.
MAX_COMPOSED_BLOCK = 4

# A CPU core takes one step after the other anyway: there composing is only more work.
PARALLEL_PLATFORMS = ("gpu", "tpu")

MAX_UNROLLED = 8  # steps of `recurrent`; longer loops gain nothing at width 64 and compile longer

# How far the eigenvalues of a transition reach below 1: to 0, or to -1 (arXiv 2411.12537).
EIGENVALUES = {"positive": 1.0, "signed": 2.0}


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
def recurrent(
    step: Step, weights_HG: jax.Array, cell: Any, table_VG: jax.Array, tokens_TB: jax.Array
) -> jax.Array:
    """Runs h_t, c_t = step(h_{t-1} W + table[x_t], c_{t-1}) from h_0 = 0; returns all h_t.

    As `sequential`, and cheaper to train: h_0 is never multiplied, no [T, B, G] of inputs is made,
    and the gradient of W is one product after the loop instead of one a step.

    Args:
      step: elementwise, (sum_BG, c) -> (h_BH, c); closes over no traced value. What its own
        derivative keeps is kept for every t.
      weights_HG: W.
      cell: c_0, a pytree of [B, ...].
      table_VG: what each symbol adds. May be wider than W: h W is added to the first columns,
        `step` reads the others as they are.
      tokens_TB: x_1..x_T.

    Returns:
      float32[T, B, H].
    """
    return _recurrent_forward(step, weights_HG, cell, table_VG, tokens_TB)[0]


def _recurrent_forward(step, weights_HG, cell, table_VG, tokens_TB):
    def body(state, tokens_B):
        hidden_BH, cell = state
        input_BG = select_rows(table_VG, tokens_B)
        state, pull = jax.vjp(step, _add(hidden_BH @ weights_HG, input_BG), cell)
        return state, (state[0], pull)

    state, first_pull = jax.vjp(step, select_rows(table_VG, tokens_TB[0]), cell)
    _, (hidden_SBH, pulls) = _scan(body, state, tokens_TB[1:])
    hidden_TBH = jnp.concatenate([state[0][None], hidden_SBH])
    return hidden_TBH, (weights_HG, hidden_TBH, state[1], table_VG, tokens_TB, first_pull, pulls)


def _recurrent_backward(step, kept, grad_TBH):
    del step
    weights_HG, hidden_TBH, cell, table_VG, tokens_TB, first_pull, pulls = kept
    H, G = weights_HG.shape

    def body(grads, now):
        (grad_BH, grad_cell), (add_BH, pull) = grads, now
        # The barrier keeps XLA from computing the chain of grad_cell anew for every step.
        pulled = pull((grad_BH + add_BH, grad_cell))
        grad_BG, grad_cell = jax.lax.optimization_barrier(pulled)
        return (grad_BG[:, :G] @ weights_HG.T, grad_cell), grad_BG

    nothing = jax.tree.map(jnp.zeros_like, (hidden_TBH[0], cell))
    (grad_BH, grad_cell), grad_SBG = _scan(body, nothing, (grad_TBH[1:], pulls), reverse=True)
    grad_BG, grad_cell = first_pull((grad_BH + grad_TBH[0], grad_cell))
    grad_HG = hidden_TBH[:-1].reshape(-1, H).T @ grad_SBG[..., :G].reshape(-1, G)
    # Not joined to one [T, B, G]: that would copy what may be the largest array of a step.
    grad_VG = sum_rows(tokens_TB[0], grad_BG, table_VG.shape[0])
    grad_VG += sum_rows(tokens_TB[1:], grad_SBG, table_VG.shape[0])
    return grad_HG, grad_cell, grad_VG, None


recurrent.defvjp(_recurrent_forward, _recurrent_backward)


def _add(product_BG, input_BG):
    width = product_BG.shape[-1]
    if width == input_BG.shape[-1]:
        return product_BG + input_BG
    return jnp.concatenate([product_BG + input_BG[:, :width], input_BG[:, width:]], axis=-1)


def _scan(body, start, inputs, reverse=False):
    """A scan whose loop is unrolled where it is short, and else not at all.

    Unrolled in part, it copies all that it keeps into the shape of its parts and out of it.
    """
    is_short = len(jax.tree.leaves(inputs)[0]) <= MAX_UNROLLED
    return jax.lax.scan(body, start, inputs, reverse=reverse, unroll=is_short)


def composes(block: int) -> bool:
    """Whether steps that multiply by blocks of this size are best composed in parallel, here."""
    return block <= MAX_COMPOSED_BLOCK and jax.default_backend() in PARALLEL_PLATFORMS


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
      method: "sequential", "associative", or "auto", which composes in parallel only where that
        pays: on an accelerator, diagonals and blocks of up to `MAX_COMPOSED_BLOCK`.

    Returns:
      float32[T, B, H].
    """
    diagonal = transition.ndim == 3
    block = 1 if diagonal else transition.shape[-1]
    if method == "auto":
        method = "associative" if composes(block) else "sequential"
    run = lookup({"associative": _associative, "sequential": _stepwise}, method, "method")
    num_steps, batch_size = transition.shape[:2]
    shape = transition.shape[2:] if diagonal else transition.shape[2:4]
    start = start_BH.reshape(batch_size, *shape)
    additive = None
    if additive_TBH is not None:
        additive = additive_TBH.reshape(num_steps, batch_size, *shape)
    states = run(transition, start, additive, diagonal)
    return states.reshape(num_steps, *start_BH.shape)


def _apply(transition, state, diagonal):
    return transition * state if diagonal else jnp.einsum("...ij,...j->...i", transition, state)


def _stepwise(transition, start, additive, diagonal):
    if additive is None:
        return sequential(lambda state, now: _apply(now, state, diagonal), start, transition)

    def step(state, pair):
        return _apply(pair[0], state, diagonal) + pair[1]

    return sequential(step, start, (transition, additive))


def _associative(transition, start, additive, diagonal):
    def product(first, second):
        return second * first if diagonal else second @ first

    if additive is None:
        products = jax.lax.associative_scan(product, transition)
        return _apply(products, start[None], diagonal)

    # Affine maps compose: (A2, b2) after (A1, b1) is (A2 A1, A2 b1 + b2).
    def compose(first, second):
        (a1, b1), (a2, b2) = first, second
        return product(a1, a2), _apply(a2, b1, diagonal) + b2

    products, offset = jax.lax.associative_scan(compose, (transition, additive))
    return _apply(products, start[None], diagonal) + offset


def multiply(state_BH: jax.Array, transition: jax.Array) -> jax.Array:
    """One step of `linear_recurrence`: A_t [B, H] or [B, H/b, b, b] times the state."""
    diagonal = transition.ndim == 2
    state = state_BH.reshape(transition.shape if diagonal else transition.shape[:-1])
    return _apply(transition, state, diagonal).reshape(state_BH.shape)


def keeping_norm(
    run: Callable, step: Callable, start_BH: jax.Array, inputs: Any, trained_positions: int | None
) -> jax.Array:
    """Computes run(start_BH, inputs) of a multiplicative recurrence that was trained on short ones.

    A product of matrices grows or shrinks exponentially with its length, while it is the state's
    direction that carries information. So from `trained_positions` on every step is rescaled to
    keep the norm of the state: nothing over- or underflows, however long the input.

    Args:
      run: (h_0, inputs) -> all states [T, B, H].
      step: (h, input) -> h, the same recurrence one step at a time.
      start_BH: h_0.
      inputs: a pytree of [T, ...].
      trained_positions: from which position on; None for never.
    """
    num_steps = len(jax.tree.leaves(inputs)[0])
    if trained_positions is None or num_steps <= trained_positions:
        return run(start_BH, inputs)

    def rescaled(state_BH, now):
        new_BH = step(state_BH, now)
        norm = jnp.linalg.norm(new_BH, axis=-1, keepdims=True)
        kept = jnp.linalg.norm(state_BH, axis=-1, keepdims=True)
        return new_BH * (kept / jnp.where(norm > 0, norm, 1))

    trained_TBH = run(start_BH, jax.tree.map(lambda leaf: leaf[:trained_positions], inputs))
    beyond = jax.tree.map(lambda leaf: leaf[trained_positions:], inputs)
    beyond_TBH = sequential(rescaled, trained_TBH[-1], beyond)
    return jnp.concatenate([trained_TBH, beyond_TBH])
