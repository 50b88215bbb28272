"""Bilinear RNN: h_t = A(x_t) h_{t-1}, A of the chosen structure (arXiv 2505.21749)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from ib_bench.lookup import check_name
from ib_bench.models.embedding import select_rows
from ib_bench.models.linear import linear
from ib_bench.models.recurrence import keeping_norm
from ib_bench.models.structures import STRUCTURES

# Added to a squared norm, so that a state of zeros has a gradient.
_TINY = 1e-12


class Bilinear(nn.Module):
    """A learned h_0, a structured transition, and B x_t if additive; input size = hidden size.

    Attributes:
      unit_state: the head reads h_t / |h_t|. A multiplicative state may grow as it likes, and what
        it says is its direction; so read, logits cannot grow with the length, and what is learned
        at short lengths has to be exact enough for long ones.
    """

    num_inputs: int
    num_outputs: int
    trained_positions: int | None
    hidden: int
    structure: str
    rank: int = 1
    block: int = 1
    additive: bool = False
    unit_state: bool = False

    @nn.compact
    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        H = self.hidden
        normal = nn.initializers.normal
        embedding_VD = self.param("embedding", normal(1.0), (self.num_inputs, H))
        tokens_TB = tokens_BT.T
        transition = STRUCTURES[self.structure](self, embedding_VD, tokens_TB)
        start_H = self.param("start", normal(1.0), (H,))
        head_HV = self.param("head", nn.initializers.lecun_normal(), (H, self.num_outputs))
        head_bias_V = self.param("head_bias", nn.initializers.zeros, (self.num_outputs,))

        start_BH = jnp.broadcast_to(start_H, (tokens_BT.shape[0], H))
        if self.additive:
            # B x_t is as long as h_0: after t steps the norm has grown by a factor of sqrt(1 + t).
            table_VH = embedding_VD @ self.param("additive", normal(H**-0.5), (H, H))
            additive_TBH = select_rows(table_VH, tokens_TB)
            states_TBH = transition.run(start_BH, transition.inputs, additive_TBH)
        else:
            states_TBH = keeping_norm(
                lambda start_BH, inputs: transition.run(start_BH, inputs, None),
                transition.step,
                start_BH,
                transition.inputs,
                self.trained_positions,
            )
        if self.unit_state:
            squares_TB1 = jnp.sum(states_TBH * states_TBH, axis=-1, keepdims=True)
            states_TBH = states_TBH * jax.lax.rsqrt(squares_TB1 + _TINY)
        logits_TBV = linear(states_TBH, head_HV) + head_bias_V
        return logits_TBV.swapaxes(0, 1)


def make_bilinear(
    *,
    num_inputs: int,
    num_outputs: int,
    trained_positions: int | None,
    hidden: int,
    structure: str,
    rank: int,
    block: int,
    additive: bool,
    unit_state: bool,
) -> nn.Module:
    """Builds a bilinear RNN: full, cp, block, rotation, diagonal or positive_diagonal.

    Raises:
      ValueError: the structure is unknown, or `hidden` cannot be cut as it asks.
    """
    check_name(STRUCTURES, structure, "model.structure")
    if structure == "block" and hidden % block:
        raise ValueError(
            f"model.block: blocks of {block} do not divide model.hidden={hidden}; use a divisor"
        )
    if structure == "rotation" and hidden % 2:
        raise ValueError(
            f"model.hidden: {hidden} is odd, structure='rotation' turns pairs; use an even number"
        )
    return Bilinear(
        num_inputs,
        num_outputs,
        trained_positions,
        hidden,
        structure,
        rank,
        block,
        additive,
        unit_state,
    )
