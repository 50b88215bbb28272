"""GRU: one layer and a linear head, as PyTorch's nn.GRU: it resets after the hidden product."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from ib_bench.models.recurrent_network import RecurrentNetwork


def gru_cell(gates_BG: jax.Array, hidden_BH: jax.Array) -> tuple[jax.Array, jax.Array]:
    """r, z = sigmoid(.); n = tanh(x_n + r h_n); h_t = (1 - z) n + z h_{t-1}.

    Args:
      gates_BG: float32[B, 4 H]: r, z and h_n = h_{t-1} W_n + b'_n, before activation; x_n.
      hidden_BH: h_{t-1}.
    """
    reset, update, hidden_n, input_n = jnp.split(gates_BG, 4, axis=-1)
    z = nn.sigmoid(update)
    n = jnp.tanh(input_n + nn.sigmoid(reset) * hidden_n)
    new_BH = (1 - z) * n + z * hidden_BH
    return new_BH, new_BH


def _join(input_VG, hidden_bias_G):
    """Keeps x_n apart, beyond the columns that the hidden product adds to."""
    input_r, input_z, input_n = jnp.split(input_VG, 3, axis=-1)
    bias_r, bias_z, bias_n = jnp.split(hidden_bias_G, 3)
    bias_VH = jnp.broadcast_to(bias_n, input_n.shape)
    return jnp.concatenate([input_r + bias_r, input_z + bias_z, bias_VH, input_n], axis=-1)


def make_gru(*, num_inputs: int, num_outputs: int, hidden: int) -> nn.Module:
    """Builds a GRU with input size = hidden size."""
    return RecurrentNetwork(num_inputs, num_outputs, hidden, 3, cell=gru_cell, join=_join)
