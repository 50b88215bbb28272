"""Transformer: a decoder in the form of GPT-2 (pre-norm, learned positions, GELU, MLP x 4)."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from ib_bench.models.embedding import select_rows
from ib_bench.models.linear import linear

_EPSILON = 1e-5  # of layer norms, as in GPT-2
_in_memory = jax.lax.optimization_barrier  # made here once, not inside what uses it
_INIT = 0.02  # GPT-2's standard deviation; residual outputs are scaled by 1 / sqrt(2 layers)


class Transformer(nn.Module):
    """Every matrix product runs on rows [B T, H]: on a CPU far quicker than on [B, T, H]."""

    num_inputs: int
    num_outputs: int
    max_positions: int
    hidden: int
    layers: int
    heads: int

    @nn.compact
    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        B, T = tokens_BT.shape
        H = self.hidden
        normal = nn.initializers.normal(_INIT)
        residual = nn.initializers.normal(_INIT * (2 * self.layers) ** -0.5)
        embedding_VH = self.param("embedding", normal, (self.num_inputs, H))
        position_TH = self.param("position", normal, (self.max_positions, H))
        stream_BTH = select_rows(embedding_VH, tokens_BT) + position_TH[:T]
        rows_RH = stream_BTH.reshape(B * T, H)
        for layer in range(self.layers):
            normed_RH = nn.LayerNorm(epsilon=_EPSILON, name=f"norm_attention_{layer}")(rows_RH)
            qkv_RG = _dense(3 * H, kernel_init=normal, name=f"qkv_{layer}")(normed_RH)
            mixed_RH = attend(qkv_RG.reshape(B, T, 3, self.heads, -1)).reshape(B * T, H)
            rows_RH += _dense(H, kernel_init=residual, name=f"attention_out_{layer}")(mixed_RH)
            normed_RH = nn.LayerNorm(epsilon=_EPSILON, name=f"norm_mlp_{layer}")(rows_RH)
            wide_RF = nn.gelu(_dense(4 * H, kernel_init=normal, name=f"mlp_in_{layer}")(normed_RH))
            rows_RH += _dense(H, kernel_init=residual, name=f"mlp_out_{layer}")(wide_RF)
        rows_RH = nn.LayerNorm(epsilon=_EPSILON, name="norm_out")(rows_RH)
        head = _dense(self.num_outputs, use_bias=False, kernel_init=normal, name="head")
        return head(rows_RH).reshape(B, T, self.num_outputs)


def _dense(*args, **kwargs):
    return nn.Dense(*args, dot_general=_linear, **kwargs)


def _linear(rows, weights, dimensions, precision=None, preferred_element_type=None):
    """`linear` in place of the `jax.lax.dot_general` that flax calls."""
    del dimensions, precision, preferred_element_type
    return linear(rows, weights)


@jax.custom_vjp
def attend(qkv: jax.Array) -> jax.Array:
    """Causal scaled dot-product attention: [B, T, 3, heads, d] to [B, T, heads, d].

    Its gradient is written out, so that every product multiplies [T, d] and [T, T] matrices as they
    lie in memory: on a CPU transposing them takes longer than multiplying.
    """
    return _attend_forward(qkv)[0]


def _attend_forward(qkv):
    query, key, value = _heads_first(qkv)
    num_positions, size = query.shape[-2:]
    scores = query @ key.swapaxes(-1, -2) * size**-0.5
    causal = jnp.tril(jnp.ones((num_positions, num_positions), bool))
    weights = nn.softmax(jnp.where(causal, scores, -jnp.inf))
    return (weights @ value).swapaxes(1, 2), (query, key, value, weights)


def _attend_backward(kept, grad):
    query, key, value, weights = kept
    grad = _in_memory(grad.swapaxes(1, 2))
    grad_value = _in_memory(weights.swapaxes(-1, -2)) @ grad
    grad_weights = grad @ value.swapaxes(-1, -2)
    mean = jnp.sum(grad_weights * weights, axis=-1, keepdims=True)
    grad_scores = _in_memory(weights * (grad_weights - mean) * query.shape[-1] ** -0.5)
    grad_query = grad_scores @ key
    grad_key = _in_memory(grad_scores.swapaxes(-1, -2)) @ query
    return (jnp.moveaxis(jnp.stack([grad_query, grad_key, grad_value]), (0, 3), (2, 1)),)


attend.defvjp(_attend_forward, _attend_backward)


def _heads_first(qkv):
    """[B, T, 3, heads, d] to [3, B, heads, T, d], in one go."""
    return _in_memory(jnp.moveaxis(qkv, (2, 1), (0, 3)))


def make_transformer(
    *, num_inputs: int, num_outputs: int, max_positions: int, hidden: int, layers: int, heads: int
) -> nn.Module:
    """Builds a transformer of width `hidden`.

    Raises:
      ValueError: `hidden` is no multiple of `heads`.
    """
    if hidden % heads:
        raise ValueError(
            f"model.heads: {heads} heads do not divide model.hidden={hidden}; use a divisor"
        )
    return Transformer(num_inputs, num_outputs, max_positions, hidden, layers, heads)
