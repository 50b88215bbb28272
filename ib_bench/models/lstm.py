"""LSTM: one layer and a linear head, initialised as PyTorch does (paper, section 3)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from ib_bench.models.recurrent_network import RecurrentNetwork


@jax.custom_vjp
def lstm_cell(gates_BG, cell_BH):
    """i, f, o = sigmoid(.), g = tanh(.); c_t = f c_{t-1} + i g; h_t = o tanh(c_t).

    Maps gates float32[B, 4 H] (i, f, g, o, before activation) and c_{t-1} to h_t and c_t. Its
    gradient is written out, so that little is kept for the way back.
    """
    return _cell_forward(gates_BG, cell_BH)[0]


def _cell_forward(gates_BG, cell_BH):
    # sigmoid(x) = (1 + tanh(x / 2)) / 2: one function of all gates.
    half_G = jnp.where(_is_tanh(gates_BG), 1.0, 0.5)
    active_BG = jnp.tanh(gates_BG * half_G) * half_G + (1 - half_G)
    i, f, g, o = jnp.split(active_BG, 4, axis=-1)
    new_BH = f * cell_BH + i * g
    tanh_BH = jnp.tanh(new_BH)
    return (o * tanh_BH, new_BH), (active_BG, cell_BH, tanh_BH)


def _cell_backward(kept, grads):
    active_BG, cell_BH, tanh_BH = kept
    grad_hidden_BH, grad_cell_BH = grads
    i, f, g, o = jnp.split(active_BG, 4, axis=-1)
    grad_BH = grad_cell_BH + grad_hidden_BH * o * (1 - tanh_BH * tanh_BH)
    grad_active_BG = jnp.concatenate(
        [grad_BH * g, grad_BH * cell_BH, grad_BH * i, grad_hidden_BH * tanh_BH], axis=-1
    )
    # tanh' = (1 - a) (1 + a), sigmoid' = (1 - a) a.
    slope_BG = (1 - active_BG) * (active_BG + _is_tanh(active_BG))
    return grad_active_BG * slope_BG, grad_BH * f


lstm_cell.defvjp(_cell_forward, _cell_backward)


def _is_tanh(gates_BG):
    """1 where a gate is g."""
    H = gates_BG.shape[-1] // 4
    return jnp.repeat(jnp.array([0.0, 0.0, 1.0, 0.0]), H)


def make_lstm(*, num_inputs: int, num_outputs: int, hidden: int) -> nn.Module:
    """Builds an LSTM with input size = hidden size."""
    return RecurrentNetwork(num_inputs, num_outputs, hidden, num_gates=4, cell=lstm_cell)
