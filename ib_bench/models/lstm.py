"""LSTM: one layer and a linear head, initialised as PyTorch does (paper, section 3)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from ib_bench.models.embedding import select_rows
from ib_bench.models.recurrence import sequential


class LSTM(nn.Module):
    """i, f, o = sigmoid(.), g = tanh(.); c_t = f c_{t-1} + i g; h_t = o tanh(c_t)."""

    num_inputs: int
    num_outputs: int
    hidden: int

    @nn.compact
    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        H = self.hidden
        uniform = _symmetric_uniform(H**-0.5)
        embedding_VH = self.param("embedding", nn.initializers.normal(1.0), (self.num_inputs, H))
        input_HG = self.param("input", uniform, (H, 4 * H))
        hidden_HG = self.param("hidden", uniform, (H, 4 * H))
        input_bias_G = self.param("input_bias", uniform, (4 * H,))
        hidden_bias_G = self.param("hidden_bias", uniform, (4 * H,))
        head_HV = self.param("head", uniform, (H, self.num_outputs))
        head_bias_V = self.param("head_bias", uniform, (self.num_outputs,))

        # An embedding followed by a linear map is a table of V rows: made once, then looked up.
        table_VG = embedding_VH @ input_HG + input_bias_G + hidden_bias_G
        gates_TBG = select_rows(table_VG, tokens_BT.T)

        def step(state, gates_BG):
            hidden_BH, cell_BH = state
            i, f, g, o = jnp.split(gates_BG + hidden_BH @ hidden_HG, 4, axis=-1)
            cell_BH = nn.sigmoid(f) * cell_BH + nn.sigmoid(i) * jnp.tanh(g)
            return nn.sigmoid(o) * jnp.tanh(cell_BH), cell_BH

        zeros_BH = jnp.zeros((tokens_BT.shape[0], H))
        hidden_TBH, _ = sequential(step, (zeros_BH, zeros_BH), gates_TBG)
        logits_TBV = hidden_TBH @ head_HV + head_bias_V
        return logits_TBV.swapaxes(0, 1)


def make_lstm(*, num_inputs: int, num_outputs: int, max_positions: int, hidden: int) -> nn.Module:
    """Builds an LSTM with input size = hidden size."""
    del max_positions
    return LSTM(num_inputs, num_outputs, hidden)


def _symmetric_uniform(bound: float):
    def init(key, shape, dtype=jnp.float32):
        return jax.random.uniform(key, shape, dtype, -bound, bound)

    return init
