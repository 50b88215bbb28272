"""Causal scaled dot-product attention, its gradient written out."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp

_in_memory = jax.lax.optimization_barrier  # made here once, not inside what uses it


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def attend(qkv: jax.Array, slopes: tuple[float, ...] = ()) -> jax.Array:
    """Every position reads itself and the past: [B, T, 3, heads, d] to [B, T, heads, d].

    The gradient is written out, so that every product multiplies [T, d] and [T, T] matrices as they
    lie in memory: on a CPU transposing them takes longer than multiplying.

    Args:
      qkv: queries, keys and values.
      slopes: of each head, by how much a score falls per position between query and key (ALiBi).
    """
    return _attend_forward(qkv, slopes)[0]


def _attend_forward(qkv, slopes):
    query, key, value = _heads_first(qkv)
    num_positions, size = query.shape[-2:]
    scores = query @ key.swapaxes(-1, -2) * size**-0.5
    if slopes:
        steps_T = jnp.arange(num_positions)
        distance_TT = (steps_T[:, None] - steps_T).astype(scores.dtype)
        scores -= jnp.array(slopes, scores.dtype)[:, None, None] * distance_TT
    causal = jnp.tril(jnp.ones((num_positions, num_positions), bool))
    weights = nn.softmax(jnp.where(causal, scores, -jnp.inf))
    return (weights @ value).swapaxes(1, 2), (query, key, value, weights)


def _attend_backward(slopes, kept, grad):
    del slopes  # they add to the scores, whatever the scores are
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
