"""DeltaProduct: several delta-rule steps a token (arXiv 2502.10297); one step is DeltaNet.

A step is S <- S - beta k (k^T S - v^T), so a token multiplies the state by a product of generalised
Householder matrices I - beta k k^T. With beta in [0, 2] (signed eigenvalues, arXiv 2411.12537) they
are reflections at one end. Without the published layers' short convolution and gate: our ruling.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from ib_bench.lookup import check_name
from ib_bench.models.decoder import (
    check_heads,
    dense,
    feed_forward,
    norm,
    normal,
    read_out,
    residual,
)
from ib_bench.models.embedding import select_rows
from ib_bench.models.recurrence import EIGENVALUES, sequential

_EPSILON = 1e-6  # under the root of a key's norm, and of the heads' RMS norm


class DeltaProduct(nn.Module):
    """x = x + delta(norm(x)); x = x + MLP(norm(x)), `layers` times. Rows are time-major."""

    num_inputs: int
    num_outputs: int
    hidden: int
    layers: int
    heads: int
    householders: int
    eigenvalues: str

    @nn.compact
    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        B, T = tokens_BT.shape
        into_stream = residual(self.layers)
        embedding_VH = self.param("embedding", normal, (self.num_inputs, self.hidden))
        rows_RH = select_rows(embedding_VH, tokens_BT.T.reshape(-1))
        for layer in range(self.layers):
            suffix = f"_{layer}"
            mixed_RH = self._mix(norm(f"norm_delta{suffix}")(rows_RH), T, suffix)
            rows_RH += dense(self.hidden, kernel_init=into_stream, name=f"delta_out{suffix}")(
                mixed_RH
            )
            rows_RH = feed_forward(rows_RH, into_stream, suffix)
        logits_RV = read_out(rows_RH, self.num_outputs)
        return logits_RV.reshape(T, B, self.num_outputs).swapaxes(0, 1)

    def _mix(self, rows_RH, num_steps, suffix):
        T, H, heads, n = num_steps, self.hidden, self.heads, self.householders
        sizes = [H, n * H, n * H, n * heads]
        rows_RG = dense(sum(sizes), kernel_init=normal, name=f"delta_in{suffix}")(rows_RH)
        parts = jnp.split(rows_RG.reshape(T, -1, sum(sizes)), np.cumsum(sizes)[:-1], axis=-1)
        query, key, value, beta = (
            part.reshape(*part.shape[:2], -1, heads, part.shape[-1] // (count * heads))
            for part, count in zip(parts, (1, n, n, n), strict=True)
        )
        beta = EIGENVALUES[self.eigenvalues] * nn.sigmoid(beta)
        read = delta_rule(unit(query[:, :, 0]), unit(key), value, beta)
        # Of each head by itself, as in DeltaNet: what is read grows with what was written.
        normed = nn.RMSNorm(epsilon=_EPSILON, name=f"norm_heads{suffix}")(read)
        return normed.reshape(-1, H)


def delta_rule(query: jax.Array, key: jax.Array, value: jax.Array, beta: jax.Array) -> jax.Array:
    """Runs S <- S - beta k (k^T S - v^T), n times a token from S = 0, and reads q^T S after each.

    Args:
      query: [T, B, heads, d].
      key: [T, B, n, heads, d], of length 1.
      value: [T, B, n, heads, d].
      beta: [T, B, n, heads, 1].

    Returns:
      float32[T, B, heads, d].
    """

    def step(state, now):
        for k, v, strength in zip(*(jnp.moveaxis(part, 1, 0) for part in now), strict=True):
            error = jnp.sum(k[..., None] * state, axis=-2) - v
            state = state - (strength * k)[..., None] * error[..., None, :]
        return state

    size = query.shape[-1]
    states = sequential(step, jnp.zeros((*query.shape[1:], size)), (key, value, beta))
    return jnp.sum(query[..., None] * states, axis=-2)


def unit(vectors: jax.Array) -> jax.Array:
    """Divides by the length of the last axis."""
    squares = jnp.sum(vectors * vectors, axis=-1, keepdims=True)
    return vectors * jax.lax.rsqrt(squares + _EPSILON)


def make_delta_product(
    *,
    num_inputs: int,
    num_outputs: int,
    hidden: int,
    layers: int,
    heads: int,
    householders: int,
    eigenvalues: str,
) -> nn.Module:
    """Builds a DeltaProduct of `householders` steps a token.

    Raises:
      ValueError: `hidden` is no multiple of `heads`, or `eigenvalues` is unknown.
    """
    check_heads(hidden, heads)
    check_name(EIGENVALUES, eigenvalues, "model.eigenvalues")
    return DeltaProduct(num_inputs, num_outputs, hidden, layers, heads, householders, eigenvalues)


def make_deltanet(
    *, num_inputs: int, num_outputs: int, hidden: int, layers: int, heads: int, eigenvalues: str
) -> nn.Module:
    """Builds a DeltaNet: a DeltaProduct of one step a token."""
    return make_delta_product(
        num_inputs=num_inputs,
        num_outputs=num_outputs,
        hidden=hidden,
        layers=layers,
        heads=heads,
        householders=1,
        eigenvalues=eigenvalues,
    )
