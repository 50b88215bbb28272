"""Keyed bijections: what lets a data set be a function of an index instead of an array.

`permute_digits` maps the words of Z_m^n one to one onto themselves, so samples are unique and two
disjoint ranges of ranks (training, validation) give disjoint sets. `permute_index` shuffles
[0, size) and gives every epoch its order. Both are traced, with m, n and size as operands.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

NUM_ROUNDS = 8
MAX_LENGTH = 64  # digits of the longest word; keys are always drawn at this size

# A hash is cut to 22 bits before it is scaled to [0, m): exact in uint32 for m <= 1,024.
_HASH_BITS = 22


class DigitKey(NamedTuple):
    """Random words of a `permute_digits` key."""

    multipliers: jax.Array  # uint32[NUM_ROUNDS, MAX_LENGTH], odd
    offsets: jax.Array  # uint32[NUM_ROUNDS, MAX_LENGTH]


def make_digit_key(key: jax.Array) -> DigitKey:
    """Draws a bijection's key from a typed PRNG key."""
    words = jax.random.bits(key, (2, NUM_ROUNDS, MAX_LENGTH), jnp.uint32)
    return DigitKey(multipliers=words[0] | 1, offsets=words[1])


def mix(words: jax.Array) -> jax.Array:
    """Spreads every bit of a uint32 over all others (the finaliser of MurmurHash3)."""
    words = (words ^ (words >> 16)) * jnp.uint32(0x85EBCA6B)
    words = (words ^ (words >> 13)) * jnp.uint32(0xC2B2AE35)
    return words ^ (words >> 16)


def permute_digits(
    digits_BT: jax.Array, lengths_B: jax.Array, modulus: jax.Array, key: DigitKey
) -> jax.Array:
    """Maps each word onto another of its length, one to one over Z_modulus^length.

    Rounds alternate between the even and the odd digits: to each digit of one half a hash of all
    digits of the other half, of its position and of the round is added modulo m.

    Args:
      digits_BT: uint32[B, T] in [0, modulus); digits from a word's length on are 0 and stay 0.
      lengths_B: int32[B] in [1, T].
      modulus: uint32 scalar, 2 to 1,000.
      key: which bijection.

    Returns:
      uint32[B, T].
    """
    num_positions = digits_BT.shape[1]
    position_T = jnp.arange(num_positions)
    active_BT = position_T < lengths_B[:, None]
    modulus = modulus.astype(jnp.uint32)
    keys = jax.tree.map(lambda words: jnp.asarray(words[:, :num_positions]), key)

    def change_half(k, digits_BT):
        target_T = position_T % 2 == k % 2
        weights_T = jnp.where(target_T, 0, keys.multipliers[k])
        # digit + 1, so that a longer word of zeros hashes differently.
        source_BT = jnp.where(active_BT, digits_BT + 1, 0)
        hash_B1 = jnp.sum(source_BT * weights_T, axis=1, keepdims=True, dtype=jnp.uint32)
        hash_BT = mix(hash_B1 ^ keys.offsets[k])
        shift_BT = ((hash_BT >> (32 - _HASH_BITS)) * modulus) >> _HASH_BITS
        moved_BT = digits_BT + shift_BT
        moved_BT = jnp.where(moved_BT >= modulus, moved_BT - modulus, moved_BT)
        return jnp.where(target_T & active_BT, moved_BT, digits_BT)

    # A loop, not eight copies: a third of what there is to compile in the making of data.
    return jax.lax.fori_loop(0, NUM_ROUNDS, change_half, digits_BT)


def permute_index(index_B: jax.Array, size: jax.Array, words: jax.Array) -> jax.Array:
    """Maps [0, size) one to one onto itself: a Feistel network on rows x columns, cycle-walked.

    At most a share of about 1 / sqrt(size) of the walks needs a second step; the loop ends, because
    the orbit of an index inside [0, size) comes back to it.

    Args:
      index_B: int32[B] in [0, size).
      size: int32 scalar, 1 to 2^30.
      words: uint32[8], which bijection.

    Returns:
      int32[B].
    """
    size = size.astype(jnp.uint32)
    num_columns = jnp.ceil(jnp.sqrt(size.astype(jnp.float32))).astype(jnp.uint32)
    num_rows = (size + num_columns - 1) // num_columns

    def step(index_B):
        row_B, column_B = index_B // num_columns, index_B % num_columns
        for k in range(4):
            column_B = (column_B + mix(row_B ^ words[2 * k]) % num_columns) % num_columns
            row_B = (row_B + mix(column_B ^ words[2 * k + 1]) % num_rows) % num_rows
        return row_B * num_columns + column_B

    def outside(index_B):
        return jnp.any(index_B >= size)

    def walk(index_B):
        return jnp.where(index_B >= size, step(index_B), index_B)

    permuted_B = jax.lax.while_loop(outside, walk, step(index_B.astype(jnp.uint32)))
    return permuted_B.astype(jnp.int32)
