"""A data set is a function: (seed, split, index) -> sequence, made inside the training step.

16 million samples cost no memory and no transfer, and N is one integer operand. Knows no model.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ib_bench.checks import check_range
from ib_bench.data.bijection import (
    DigitKey,
    make_digit_key,
    mix,
    permute_digits,
    permute_index,
)
from ib_bench.data.formats import FORMATS, Batch, FormatOperands, make_batch, num_inputs
from ib_bench.data.lengths import LengthTable, Split, length_and_rank, make_split
from ib_bench.lookup import check_name
from ib_bench.tasks import Automaton

# Named streams of a seed's random numbers: fold_in(key(seed), STREAM). N is in none of them.
INIT, DATA, ORDER, EXTRAPOLATION = range(4)

_NO_PLACE = np.uint32(2**32 - 1)  # a place value past every rank: the digit is 0


class DataOperands(NamedTuple):
    """All that tells one cell's data from another's; arrays, so nothing here recompiles."""

    transition: np.ndarray  # int32[S, A]
    initial_state: np.ndarray  # int32
    num_symbols: np.ndarray  # uint32: the real alphabet, A may be padded
    num_states: np.ndarray  # int32: the real states, S may be padded
    format: FormatOperands
    place_values: np.ndarray  # uint32[T]: num_symbols^t
    train: LengthTable
    validation: LengthTable
    num_validation: np.ndarray  # int32


class Sampler(NamedTuple):
    """A cell's data under one seed; arrays too."""

    operands: DataOperands
    digit_key: DigitKey
    order_words: jax.Array  # uint32[8]


def make_operands(
    task: Automaton,
    format_name: str,
    split: Split,
    num_rows: int | None = None,
    num_columns: int | None = None,
    label_every: int = 1,
) -> DataOperands:
    """Makes a cell's operands (numpy), its table padded to [num_rows, num_columns]."""
    padded_length = len(split.train.start)
    places = [min(task.num_symbols**t, int(_NO_PLACE)) for t in range(padded_length)]
    rows, columns = num_rows or task.num_states, num_columns or task.num_symbols
    table = np.zeros((rows, columns), np.int32)
    table[: task.num_states, : task.num_symbols] = task.transition
    return DataOperands(
        transition=table,
        initial_state=np.int32(task.initial_state),
        num_symbols=np.uint32(task.num_symbols),
        num_states=np.int32(task.num_states),
        format=FormatOperands(
            first_state=np.int32(0 if task.states_are_symbols else task.num_symbols),
            separator=np.int32(num_inputs(format_name, task) - 1),
            label_every=np.int32(label_every),
        ),
        place_values=np.array(places, np.uint32),
        train=split.train,
        validation=split.validation,
        num_validation=np.int32(split.num_validation),
    )


def make_sampler(seed: int, operands: DataOperands) -> Sampler:
    """Opens a cell's data under a seed, a whole number from 0 to 2^32 - 1."""
    return Sampler(operands, *_draw_keys(seed))


@functools.lru_cache(maxsize=1024)
def _draw_keys(seed: int) -> tuple[DigitKey, np.ndarray]:
    """Draws a seed's keys on the host: once, not in every program that reads its data."""
    digit_key, order_words = _draw(np.uint32(seed))
    return jax.tree.map(np.asarray, (digit_key, order_words))


@jax.jit
def _draw(seed):
    root = jax.random.key(seed)
    digit_key = make_digit_key(jax.random.fold_in(root, DATA))
    return digit_key, jax.random.bits(jax.random.fold_in(root, ORDER), (8,), jnp.uint32)


def make_sequences(
    sampler: Sampler, index_B: jax.Array, table: LengthTable
) -> tuple[jax.Array, jax.Array]:
    """Returns symbols int32[B, T] (0 past the end) and lengths int32[B] of a split's members."""
    operands = sampler.operands
    lengths_B, ranks_B = length_and_rank(index_B, table)
    digits_BT = ranks_B.astype(jnp.uint32)[:, None] // operands.place_values % operands.num_symbols
    symbols_BT = permute_digits(digits_BT, lengths_B, operands.num_symbols, sampler.digit_key)
    return symbols_BT.astype(jnp.int32), lengths_B


def track_states(symbols_BT: jax.Array, operands: DataOperands) -> jax.Array:
    """Returns s_1..s_T as int32[B, T]; states past a sequence's end mean nothing."""
    num_symbols = operands.transition.shape[1]
    table = operands.transition.ravel()

    def step(state_B, symbol_B):
        state_B = jnp.take(table, state_B * num_symbols + symbol_B)
        return state_B, state_B

    start_B = jnp.full(symbols_BT.shape[:1], operands.initial_state, jnp.int32)
    _, states_TB = jax.lax.scan(step, start_B, symbols_BT.T, unroll=8)
    return states_TB.T


def training_batches(
    sampler: Sampler,
    format_name: str,
    first_step: jax.Array,
    num_steps: int,
    num_samples: jax.Array,
    batch_size: int,
) -> Batch:
    """Makes the batches of a few training steps in a row.

    An epoch visits every sample once in a fresh order; the last, smaller batch of an epoch is kept
    (its missing rows have no weight); for N <= batch_size each step is the full data set.

    Args:
      sampler: the cell's data.
      format_name: a name in `FORMATS`.
      first_step: int32 scalar, counted from 0 over the whole run.
      num_steps: how many batches.
      num_samples: int32 scalar, N.
      batch_size: rows of a batch.

    Returns:
      A `Batch` of [num_steps, batch_size, T].
    """
    steps_per_epoch = (num_samples + batch_size - 1) // batch_size

    def rows_of(step):
        epoch, step_of_epoch = step // steps_per_epoch, step % steps_per_epoch
        place_B = step_of_epoch * batch_size + jnp.arange(batch_size)
        words = mix(sampler.order_words + mix(epoch.astype(jnp.uint32) + 1))
        index_B = permute_index(jnp.minimum(place_B, num_samples - 1), num_samples, words)
        return index_B, place_B < num_samples

    rows = jax.vmap(rows_of)(first_step + jnp.arange(num_steps))
    index_N, valid_N = (leaf.ravel() for leaf in rows)
    batch = _formatted(sampler, format_name, index_N, sampler.operands.train, valid_N)
    return jax.tree.map(lambda leaf: leaf.reshape(num_steps, batch_size, -1), batch)


def whole_batch(sampler: Sampler, format_name: str, num_samples: jax.Array, num_rows: int) -> Batch:
    """Makes the whole training set of N <= num_rows sequences as one batch, in order of index."""
    row_B = jnp.arange(num_rows)
    index_B = jnp.minimum(row_B, num_samples - 1)
    return _formatted(sampler, format_name, index_B, sampler.operands.train, row_B < num_samples)


def validation_batch(
    sampler: Sampler, format_name: str, block: jax.Array, batch_size: int
) -> Batch:
    """Makes rows block * batch_size and on of the validation set, the last block padded."""
    num_validation = sampler.operands.num_validation
    index_B = block * batch_size + jnp.arange(batch_size)
    valid_B = index_B < num_validation
    index_B = jnp.minimum(index_B, num_validation - 1)
    return _formatted(sampler, format_name, index_B, sampler.operands.validation, valid_B)


def _formatted(sampler, format_name, index_B, table, valid_B) -> Batch:
    symbols_BT, lengths_B = make_sequences(sampler, index_B, table)
    states_BT = track_states(symbols_BT, sampler.operands)
    operands = sampler.operands.format
    return make_batch(format_name, symbols_BT, states_BT, lengths_B, valid_B, operands)


def random_batch(
    key: jax.Array, operands: DataOperands, format_name: str, length: int, batch_size: int
) -> Batch:
    """Makes sequences of one length, any length, with replacement and of no split.

    Beyond the training lengths there is nothing to keep apart: no such sequence was trained on.
    """
    num_symbols = operands.num_symbols.astype(jnp.int32)
    symbols_BT = jax.random.randint(key, (batch_size, length), 0, num_symbols)
    states_BT = track_states(symbols_BT, operands)
    lengths_B, valid_B = jnp.full(batch_size, length), jnp.ones(batch_size, bool)
    return make_batch(format_name, symbols_BT, states_BT, lengths_B, valid_B, operands.format)


class Arrays(NamedTuple):
    """A data set as plain numpy arrays."""

    symbols: np.ndarray  # int32[N, L], 0 past the end
    states: np.ndarray  # int32[N, L]
    lengths: np.ndarray  # int32[N]
    inputs: np.ndarray  # int32[N, T]: tokens in the format; T = L, for "cot" 2L
    targets: np.ndarray  # int32[N, T]
    weights: np.ndarray  # float32[N, T]


def make_arrays(
    task: Automaton,
    max_length: int,
    num_samples: int | None = None,
    *,
    length_distribution: str = "uniform",
    format_name: str = "outcome",
    split: str = "train",
    seed: int = 10,
    validation_lengths: str = "uniform",
    label_every: int = 1,
) -> Arrays:
    """Makes a data set for use without this suite: the very samples a run would see.

    Args:
      task: any `Automaton` of 2 to 1,000 symbols.
      max_length: L, 2 to 64.
      num_samples: N; all sequences of the split where None.
      length_distribution: "fixed", "uniform" or "short_to_long".
      format_name: "outcome", "cot" or "acot".
      split: "train" or "validation".
      seed: as in `grid.seeds`.
      validation_lengths: as `data.validation_lengths`.
      label_every: as `data.label_every`.

    Raises:
      ValueError: a name is unknown, a size is out of range, or N exceeds the split.
    """
    check_name(("train", "validation"), split, "split")
    check_range("seed", seed, 0, 2**32 - 1)
    check_range("label_every", label_every, 1, max_length)
    check_name(FORMATS, format_name, "format_name")
    tables = make_split(task.num_symbols, max_length, length_distribution, validation_lengths)
    available = tables.num_train if split == "train" else tables.num_validation
    num_samples = available if num_samples is None else num_samples
    if not 1 <= num_samples <= available:
        raise ValueError(
            f"num_samples: {num_samples} is out of range; the {split} split of {task.name} at "
            f"L={max_length}, {length_distribution}, holds 1 to {available}"
        )
    sampler = make_sampler(seed, make_operands(task, format_name, tables, label_every=label_every))
    table = sampler.operands.train if split == "train" else sampler.operands.validation
    index_N = jnp.arange(num_samples, dtype=jnp.int32)
    symbols_NT, lengths_N = make_sequences(sampler, index_N, table)
    states_NT = track_states(symbols_NT, sampler.operands)
    valid_N, operands = jnp.ones(num_samples, bool), sampler.operands.format
    batch = make_batch(format_name, symbols_NT, states_NT, lengths_N, valid_N, operands)
    return Arrays(*map(np.asarray, (symbols_NT, states_NT, lengths_N, *batch)))
