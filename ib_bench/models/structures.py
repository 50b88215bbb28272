"""The transitions A(x) of the bilinear hierarchy (arXiv 2505.21749), from strong to weak.

An entry of `STRUCTURES` makes its parameters in `module` and turns tokens int32[T, B] into a
`Transition`. A(x) is linear in the embedding of x, and so is one table with a row per symbol: made
once, then looked up. Weights are drawn so that A(x) keeps the norm of the state in expectation.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from ib_bench.models.embedding import MAX_ONE_HOT, one_hot, select_rows
from ib_bench.models.recurrence import linear_recurrence, multiply, sequential

# Up to here every symbol's matrix is applied to every state and the right one kept: products of
# matrices with matrices, which cost less than fetching one H x H matrix per sequence.
MAX_APPLIED = 16

# The sigmoid's argument where the weights are zero: entries start near 0.95.
_KEEP = 3.0

normal = nn.initializers.normal


class Transition(NamedTuple):
    """A(x_1), ..., A(x_T) of every sequence."""

    inputs: Any  # a pytree of [T, B, ...], one slice a step
    step: Callable  # (state_BH, slice) -> A(x_t) state
    run: Callable  # (start_BH, inputs, additive_TBH or None) -> all states [T, B, H]


def full(module: nn.Module, embedding_VD: jax.Array, tokens_TB: jax.Array) -> Transition:
    """A(x) = sum_k W_k x_k, every entry its own: the paper's dense SSM."""
    V, H = embedding_VD.shape
    # Var W = 1 / (H D), D = H.
    weights_DHH = module.param("weights", normal((H * H) ** -0.5), (H, H, H))
    # Stored so that a row vector h multiplies from the left.
    matrices_VHH = (embedding_VD @ weights_DHH.reshape(H, H * H)).reshape(V, H, H)
    if V <= MAX_APPLIED:
        applied_HG = matrices_VHH.swapaxes(0, 1).reshape(H, V * H)

        def step(state_BH, chosen_BV):
            all_BVH = (state_BH @ applied_HG).reshape(-1, V, H)
            return jnp.sum(all_BVH * chosen_BV[..., None], axis=1)

        return _stepwise(step, one_hot(tokens_TB, V))
    transposed_VHH = matrices_VHH.swapaxes(1, 2)
    if V <= MAX_ONE_HOT:
        rows = select_rows(transposed_VHH.reshape(V, H * H), tokens_TB)
        transition_TBHH = rows.reshape(*tokens_TB.shape, 1, H, H)
    else:
        transition_TBHH = transposed_VHH[tokens_TB][:, :, None]
    return Transition(
        transition_TBHH, multiply, functools.partial(_linear_recurrence, method="sequential")
    )


def cp(module: nn.Module, embedding_VD: jax.Array, tokens_TB: jax.Array) -> Transition:
    """A(x) = W1 diag(Wx^T x) W2^T of rank R: the tensor of W_k in CP form."""
    H, R = module.hidden, module.rank
    w1_HR = module.param("w1", normal(R**-0.5), (H, R))
    wx_DR = module.param("wx", normal(H**-0.5), (H, R))
    w2_HR = module.param("w2", normal(H**-0.5), (H, R))

    def step(state_BH, gates_BR):
        return (state_BH @ w2_HR * gates_BR) @ w1_HR.T

    return _stepwise(step, select_rows(embedding_VD @ wx_DR, tokens_TB))


def block(module: nn.Module, embedding_VD: jax.Array, tokens_TB: jax.Array) -> Transition:
    """A(x) = sum_k W_k x_k, block-diagonal with blocks of b x b."""
    H, b = module.hidden, module.block
    weights = module.param("weights", normal((b * H) ** -0.5), (H, H // b, b, b))
    return _looked_up(jnp.tensordot(embedding_VD, weights, 1), tokens_TB)


def rotation(module: nn.Module, embedding_VD: jax.Array, tokens_TB: jax.Array) -> Transition:
    """2 x 2 rotations by angles that are linear in x: abelian groups only."""
    H = module.hidden
    weights_DK = module.param("weights", normal(H**-0.5), (H, H // 2))
    angle_VK = embedding_VD @ weights_DK
    cos, sin = jnp.cos(angle_VK), jnp.sin(angle_VK)
    matrices = jnp.stack([cos, -sin, sin, cos], axis=-1).reshape(*angle_VK.shape, 2, 2)
    return _looked_up(matrices, tokens_TB)


def diagonal(module: nn.Module, embedding_VD: jax.Array, tokens_TB: jax.Array) -> Transition:
    """A(x) = sum_k diag(w_k) x_k, real: signs, and so parity, but no other group."""
    return _looked_up(_diagonal(module, embedding_VD), tokens_TB)


def positive_diagonal(
    module: nn.Module, embedding_VD: jax.Array, tokens_TB: jax.Array
) -> Transition:
    """As `diagonal`, entries in (0, 1) by a sigmoid (our ruling), near 1 at first: tracks no group.

    Entries below 1 cannot keep the norm; near 1 they lose little of it.
    """
    return _looked_up(nn.sigmoid(_diagonal(module, embedding_VD) + _KEEP), tokens_TB)


STRUCTURES = {
    "block": block,
    "cp": cp,
    "diagonal": diagonal,
    "full": full,
    "positive_diagonal": positive_diagonal,
    "rotation": rotation,
}


def _diagonal(module, embedding_VD):
    H = module.hidden
    return embedding_VD @ module.param("weights", normal(H**-0.5), (H, H))


def _looked_up(table, tokens_TB):
    """A diagonal [V, H] or blocks [V, H/b, b, b]: composed in parallel where that is cheap."""
    shape = table.shape[1:]
    rows = select_rows(table.reshape(len(table), -1), tokens_TB)
    return Transition(rows.reshape(*tokens_TB.shape, *shape), multiply, _linear_recurrence)


def _linear_recurrence(start_BH, transition, additive_TBH, method="auto"):
    return linear_recurrence(transition, start_BH, additive_TBH, method)


def _stepwise(step, inputs):
    def run(start_BH, inputs, additive_TBH):
        if additive_TBH is None:
            return sequential(step, start_BH, inputs)

        def step_and_add(state_BH, pair):
            return step(state_BH, pair[0]) + pair[1]

        return sequential(step_and_add, start_BH, (inputs, additive_TBH))

    return Transition(inputs, step, run)
