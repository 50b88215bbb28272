"""Dense SSM: h_t = A(x_t) h_{t-1}, A(x) = sum_k W_k x_k (paper, section 3; 2505.21749)."""

import flax.linen as nn

from ib_bench.models.bilinear import Bilinear


def make_dense_ssm(
    *, num_inputs: int, num_outputs: int, trained_positions: int | None, hidden: int
) -> nn.Module:
    """Builds a dense SSM: the bilinear RNN with a full transition and no additive term."""
    return Bilinear(num_inputs, num_outputs, trained_positions, hidden, structure="full")
