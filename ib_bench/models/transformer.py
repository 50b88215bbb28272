"""Transformer: a decoder in the form of GPT-2 (pre-norm, GELU, MLP x 4)."""

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


class Transformer(nn.Module):
    """x = x + attention(norm(x)); x = x + MLP(norm(x)), `layers` times."""

    num_inputs: int
    num_outputs: int
    max_positions: int
    hidden: int
    layers: int
    heads: int
    positions: str

    @nn.compact
    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        B, T = tokens_BT.shape
        into_stream = residual(self.layers)
        rows_RH = embed(self, tokens_BT)
        for layer in range(self.layers):
            suffix = f"_{layer}"
            rows_RH = attention(rows_RH, T, self.heads, self.positions, into_stream, suffix)
            rows_RH = feed_forward(rows_RH, into_stream, suffix)
        return read_out(rows_RH, self.num_outputs).reshape(B, T, self.num_outputs)


def make_transformer(
    *,
    num_inputs: int,
    num_outputs: int,
    max_positions: int,
    hidden: int,
    layers: int,
    heads: int,
    positions: str,
) -> nn.Module:
    """Builds a transformer of width `hidden`.

    Raises:
      ValueError: `hidden` is no multiple of `heads`, or `positions` is unknown or does not fit.
    """
    check_heads(hidden, heads)
    check_positions(positions, hidden, heads)
    return Transformer(num_inputs, num_outputs, max_positions, hidden, layers, heads, positions)
