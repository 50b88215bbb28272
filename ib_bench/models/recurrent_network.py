"""What LSTM, GRU and RNN share: PyTorch's parameters around a cell, and a linear head."""

import operator
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp

from ib_bench.models.linear import linear
from ib_bench.models.recurrence import Step, recurrent


class RecurrentNetwork(nn.Module):
    """Embedding, one recurrent layer of input size = hidden size, head; initialised as in PyTorch.

    Attributes:
      cell: what `recurrent` repeats, on gates float32[B, num_gates H] and a cell float32[B, H].
      join: (x W + b, b') of every symbol to what the cell reads; b' is the bias of h W'.
    """

    num_inputs: int
    num_outputs: int
    hidden: int
    num_gates: int
    cell: Step
    join: Callable[[jax.Array, jax.Array], jax.Array] = operator.add

    @nn.compact
    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        H, G = self.hidden, self.num_gates * self.hidden
        uniform = _symmetric_uniform(H**-0.5)
        embedding_VH = self.param("embedding", nn.initializers.normal(1.0), (self.num_inputs, H))
        input_HG = self.param("input", uniform, (H, G))
        hidden_HG = self.param("hidden", uniform, (H, G))
        input_bias_G = self.param("input_bias", uniform, (G,))
        hidden_bias_G = self.param("hidden_bias", uniform, (G,))
        head_HV = self.param("head", uniform, (H, self.num_outputs))
        head_bias_V = self.param("head_bias", uniform, (self.num_outputs,))

        # An embedding followed by a linear map is a table of V rows: made once, then looked up.
        table_VG = self.join(embedding_VH @ input_HG + input_bias_G, hidden_bias_G)
        zeros_BH = jnp.zeros((tokens_BT.shape[0], H))
        hidden_TBH = recurrent(self.cell, hidden_HG, zeros_BH, table_VG, tokens_BT.T)
        logits_TBV = linear(hidden_TBH, head_HV) + head_bias_V
        return logits_TBV.swapaxes(0, 1)


def _symmetric_uniform(bound: float):
    def init(key, shape, dtype=jnp.float32):
        return jax.random.uniform(key, shape, dtype, -bound, bound)

    return init
