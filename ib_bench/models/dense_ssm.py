"""Dense SSM (bilinear RNN): h_t = A(x_t) h_{t-1}, A(x) = sum_k W_k x_k, no additive term."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from ib_bench.models.embedding import MAX_ONE_HOT, one_hot, select_rows
from ib_bench.models.linear import linear
from ib_bench.models.recurrence import linear_recurrence, sequential

# Up to here every symbol's matrix is applied to every state and the right one kept: products of
# matrices with matrices, which cost less than fetching one H x H matrix per sequence.
MAX_APPLIED = 16


class DenseSSM(nn.Module):
    """A full, input-dependent transition and a learned h_0 (paper, section 3; 2505.21749)."""

    num_inputs: int
    num_outputs: int
    hidden: int

    @nn.compact
    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        V, H = self.num_inputs, self.hidden
        batch_size = tokens_BT.shape[0]
        normal = nn.initializers.normal
        embedding_VD = self.param("embedding", normal(1.0), (V, H))
        # Var W = 1 / (H D) keeps the norm of the state from step to step in expectation.
        weights_DHH = self.param("weights", normal((H * H) ** -0.5), (H, H, H))
        start_H = self.param("start", normal(1.0), (H,))
        head_HV = self.param("head", nn.initializers.lecun_normal(), (H, self.num_outputs))
        head_bias_V = self.param("head_bias", nn.initializers.zeros, (self.num_outputs,))

        # A(x) for the V symbols, made once. Stored so that a row vector h multiplies from the left.
        matrices_VHH = (embedding_VD @ weights_DHH.reshape(H, H * H)).reshape(V, H, H)
        start_BH = jnp.broadcast_to(start_H, (batch_size, H))
        tokens_TB = tokens_BT.T
        if V <= MAX_APPLIED:
            applied_HG = matrices_VHH.swapaxes(0, 1).reshape(H, V * H)

            def step(state_BH, chosen_BV):
                all_BVH = (state_BH @ applied_HG).reshape(batch_size, V, H)
                return jnp.sum(all_BVH * chosen_BV[..., None], axis=1)

            states_TBH = sequential(step, start_BH, one_hot(tokens_TB, V))
        else:
            transposed_VHH = matrices_VHH.swapaxes(1, 2)
            if V <= MAX_ONE_HOT:
                rows = select_rows(transposed_VHH.reshape(V, H * H), tokens_TB)
                transition_TBHH = rows.reshape(*tokens_TB.shape, 1, H, H)
            else:
                transition_TBHH = transposed_VHH[tokens_TB][:, :, None]
            states_TBH = linear_recurrence(transition_TBHH, start_BH, method="sequential")
        logits_TBV = linear(states_TBH, head_HV) + head_bias_V
        return logits_TBV.swapaxes(0, 1)


def make_dense_ssm(
    *, num_inputs: int, num_outputs: int, max_positions: int, hidden: int
) -> nn.Module:
    """Builds a dense SSM with input size = hidden size."""
    del max_positions
    return DenseSSM(num_inputs, num_outputs, hidden)
