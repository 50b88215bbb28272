"""How a transformer learns where a token stands: `POSITIONS` names the ways."""

import jax
import jax.numpy as jnp

POSITIONS = ("alibi", "learned", "none", "rotary", "sinusoidal")


def sinusoids(num_positions: int, size: int) -> jax.Array:
    """Sines and cosines of falling frequency (arXiv 1706.03762, section 3.5): float32[T, H]."""
    angle_TF = _angles(num_positions, size)
    pairs_TF2 = jnp.stack([jnp.sin(angle_TF), jnp.cos(angle_TF)], axis=-1)
    return pairs_TF2.reshape(num_positions, -1)[:, :size]


def rotate(qkv: jax.Array) -> jax.Array:
    """Turns queries and keys by angles that grow with their position (RoPE, arXiv 2104.09864).

    A score then depends on the distance between query and key alone. Entry i is turned together
    with entry i + d / 2, as in GPT-NeoX.

    Args:
      qkv: [B, T, 3, heads, d], d even.
    """
    query_key, value = jnp.split(qkv, [2], axis=2)
    angle_TF = _angles(qkv.shape[1], qkv.shape[-1])
    cos, sin = (part[:, None, None] for part in (jnp.cos(angle_TF), jnp.sin(angle_TF)))
    first, second = jnp.split(query_key, 2, axis=-1)
    turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return jnp.concatenate([turned, value], axis=2)


def alibi_slopes(heads: int) -> tuple[float, ...]:
    """Returns one slope per head (arXiv 2108.12409): 2^(-8 k / heads), k = 1..heads.

    Where `heads` is no power of 2, those of the power below it, and then every other one of the
    power above it, as in the authors' code.
    """
    power = 2 ** (heads.bit_length() - 1)
    slopes = [2 ** (-8 * k / power) for k in range(1, power + 1)]
    between = [2 ** (-8 * k / (2 * power)) for k in range(1, 2 * power, 2)]
    return tuple(slopes + between[: heads - power])


def _angles(num_positions, size):
    """Position times 10,000^(-2 k / size): float32[T, F], F = size / 2 rounded up."""
    frequency_F = 10_000.0 ** (-jnp.arange(0, size, 2, jnp.float32) / size)
    return jnp.arange(num_positions, dtype=jnp.float32)[:, None] * frequency_F
