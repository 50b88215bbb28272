"""Looped transformer: one tied block, applied again and again (arXiv 2609.33144)."""

import flax.linen as nn
import jax

from ib_bench.models.decoder import (
    attention,
    check_heads,
    check_positions,
    embed,
    feed_forward,
    read_out,
    residual,
)


class LoopedTransformer(nn.Module):
    """A transformer's block with the same parameters every time.

    With loops = 0 it is applied as often as there are positions in the input, padding included: as
    deep as the chain of states is long.
    """

    num_inputs: int
    num_outputs: int
    max_positions: int
    hidden: int
    heads: int
    positions: str
    loops: int

    @nn.compact
    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        B, T = tokens_BT.shape
        into_stream = residual(1)  # it has one block

        def block(module, rows_RH, _):
            rows_RH = attention(rows_RH, T, module.heads, module.positions, into_stream, "")
            return feed_forward(rows_RH, into_stream, ""), None

        loop = nn.scan(
            block,
            variable_broadcast="params",
            split_rngs={"params": False},
            length=self.loops or T,
        )
        rows_RH, _ = loop(self, embed(self, tokens_BT), None)
        return read_out(rows_RH, self.num_outputs).reshape(B, T, self.num_outputs)


def make_looped_transformer(
    *,
    num_inputs: int,
    num_outputs: int,
    max_positions: int,
    hidden: int,
    heads: int,
    positions: str,
    loops: int,
) -> nn.Module:
    """Builds a transformer whose one block is applied `loops` times; 0: once per position.

    Raises:
      ValueError: as `make_transformer`.
    """
    check_heads(hidden, heads)
    check_positions(positions, hidden, heads)
    return LoopedTransformer(
        num_inputs, num_outputs, max_positions, hidden, heads, positions, loops
    )
