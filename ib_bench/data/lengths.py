"""Length distributions and the split, in closed form: index -> (length, rank).

A split is a small table of phases, made once per cell with numpy. Within a phase the lengths
first_length .. first_length + num_lengths - 1 take turns. One traced lookup serves every
distribution, and the data set of size N is a prefix of every larger one.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ib_bench.checks import check_range
from ib_bench.data.bijection import MAX_LENGTH
from ib_bench.lookup import check_name, lookup
from ib_bench.tasks import MAX_MODULUS

MAX_VALIDATION = 2000  # paper, section 3: min(2,000, 20 % of all sequences)
VALIDATION_SHARE = 0.2
MAX_RANK = 2**30  # ranks are int32; larger universes are cut here
_NEVER = np.iinfo(np.int32).max

Phase = tuple[int, int, int, int]  # start, first_length, num_lengths, base_rank
Capacity = dict[int, int]  # length -> sequences, lengths ascending


class LengthTable(NamedTuple):
    """The phases of one split; arrays are padded to T, and phases past the last never start."""

    start: np.ndarray  # int32[T]: first index of the phase
    first_length: np.ndarray  # int32[T]: shortest length of the phase
    num_lengths: np.ndarray  # int32[T]: lengths that take turns
    base_rank: np.ndarray  # int32[T]: sequences of each length that earlier phases used
    skip: np.ndarray  # int32[T + 1]: ranks of each length that belong to another split


class Split(NamedTuple):
    """Both splits of one cell. Validation owns the first ranks of each length."""

    train: LengthTable
    validation: LengthTable
    num_train: int  # sequences left for training: no N can be larger
    num_validation: int


def one_by_one(capacity: Capacity) -> list[Phase]:
    """All sequences of the shortest length, then all of the next (with one length: `fixed`)."""
    phases, start = [], 0
    for length, count in capacity.items():
        phases.append((start, length, 1, 0))
        start += count
    return phases


def take_turns(capacity: Capacity) -> list[Phase]:
    """Every length that still has unused sequences gets an equal share (water-filling)."""
    phases, start, level = [], 0, 0
    lengths = list(capacity)
    for k, length in enumerate(lengths):
        num_lengths = len(lengths) - k
        if capacity[length] > level:
            phases.append((start, length, num_lengths, level))
            start += (capacity[length] - level) * num_lengths
            level = capacity[length]
    return phases


# The values give the order in which sequences of different lengths enter a data set.
DISTRIBUTIONS = {"fixed": one_by_one, "short_to_long": one_by_one, "uniform": take_turns}
VALIDATION_LENGTHS = ("as_training", "uniform")


def lengths_of(distribution: str, max_length: int) -> range:
    """Returns the lengths that occur: L alone for "fixed", else 2..L."""
    return range(max_length if distribution == "fixed" else 2, max_length + 1)


def make_split(
    num_symbols: int,
    max_length: int,
    distribution: str,
    validation_lengths: str = "uniform",
    padded_length: int | None = None,
) -> Split:
    """Makes the tables of a cell (paper, section 3; rulings in the README).

    Validation is min(2,000, 20 %) of all sequences and at most 20 % of those of each length; where
    that rounds down to nothing, it is one sequence of the longest length.

    Args:
      num_symbols: size of the alphabet, 2 to 1,000.
      max_length: L, 2 to 64; lengths are 2..L, or L alone for "fixed".
      distribution: a name in `DISTRIBUTIONS`.
      validation_lengths: "uniform" over the same lengths, or "as_training".
      padded_length: T >= L, the size of the tables; L itself where None.

    Raises:
      ValueError: a name is unknown, or a size is out of range.
    """
    order = lookup(DISTRIBUTIONS, distribution, "data.length_distribution")
    check_name(VALIDATION_LENGTHS, validation_lengths, "data.validation_lengths")
    padded_length = padded_length or max_length
    check_range("num_symbols", num_symbols, 2, MAX_MODULUS)
    check_range("max_length", max_length, 2, MAX_LENGTH)
    check_range("padded_length", padded_length, max_length, MAX_LENGTH)
    lengths = lengths_of(distribution, max_length)
    universe = {n: min(num_symbols**n, MAX_RANK) for n in lengths}
    capacity = {n: int(VALIDATION_SHARE * count) for n, count in universe.items()}
    num_validation = min(MAX_VALIDATION, int(VALIDATION_SHARE * sum(universe.values())))
    num_validation = min(num_validation, sum(capacity.values()))
    if num_validation == 0:
        capacity[max_length] = num_validation = 1

    validation_order = order if validation_lengths == "as_training" else take_turns
    validation = _make_table(validation_order(capacity), {}, padded_length)
    validation_B, _ = length_and_rank(np.arange(num_validation), validation)
    held_out = dict(enumerate(np.bincount(validation_B, minlength=max_length + 1).tolist()))
    free = {n: count - held_out[n] for n, count in universe.items()}
    return Split(
        train=_make_table(order(free), held_out, padded_length),
        validation=validation,
        num_train=min(sum(free.values()), MAX_RANK),
        num_validation=num_validation,
    )


def length_and_rank(index_B: jax.Array, table: LengthTable) -> tuple[jax.Array, jax.Array]:
    """Looks up sequences of a split; traced, or numpy in and numpy out.

    Args:
      index_B: int32[B], positions in the split.
      table: the split.

    Returns:
      int32[B] lengths and int32[B] ranks among all sequences of that length.
    """
    xp = np if isinstance(index_B, np.ndarray) else jnp
    phase_B = xp.sum(index_B[:, None] >= table.start, axis=1) - 1
    turn_B = index_B - xp.take(table.start, phase_B)
    num_lengths_B = xp.take(table.num_lengths, phase_B)
    lengths_B = xp.take(table.first_length, phase_B) + turn_B % num_lengths_B
    ranks_B = xp.take(table.base_rank, phase_B) + turn_B // num_lengths_B
    return lengths_B, ranks_B + xp.take(table.skip, lengths_B)


def _make_table(phases: list[Phase], held_out: dict[int, int], padded_length: int) -> LengthTable:
    phases = [phase for phase in phases if phase[0] < MAX_RANK]
    unused = [(_NEVER, 0, 1, 0)] * (padded_length - len(phases))
    columns = np.array([*phases, *unused], dtype=np.int64).astype(np.int32).T
    skip = np.zeros(padded_length + 1, np.int32)
    for length, count in held_out.items():
        skip[length] = count
    return LengthTable(*columns, skip=skip)
