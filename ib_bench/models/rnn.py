"""RNN: one layer of tanh units and a linear head, as PyTorch's nn.RNN."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from ib_bench.models.recurrent_network import RecurrentNetwork


def rnn_cell(sum_BH: jax.Array, cell_BH: jax.Array) -> tuple[jax.Array, jax.Array]:
    """h_t = tanh(x_t W + b + h_{t-1} W' + b'); has no cell, and hands it on."""
    return jnp.tanh(sum_BH), cell_BH


def make_rnn(*, num_inputs: int, num_outputs: int, hidden: int) -> nn.Module:
    """Builds an RNN (tanh) with input size = hidden size."""
    return RecurrentNetwork(num_inputs, num_outputs, hidden, num_gates=1, cell=rnn_cell)
