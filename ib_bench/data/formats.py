"""Formats: what the model reads and where it is asked, from symbols and states.

Figure 1 of the paper, m = 5, symbols 2 1 0 3 4 with states 2 3 3 1 0 (loss positions marked ^):

  outcome   reads 2 1 0 3 4              asked         0
                          ^
  cot       reads 2 1 0 3 4 = 2 3 3 1    asked           2 3 3 1 0
                            ^ ^ ^ ^ ^
  acot      reads 2 1 0 3 4              asked 2 3 3 1 0
                  ^ ^ ^ ^ ^

Between outcome and acot lies acot with a label at every k-th symbol only, and at the last.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ib_bench.tasks import Automaton


class Batch(NamedTuple):
    """What a model is trained or evaluated on."""

    inputs_BT: jax.Array  # int32: tokens the model reads
    targets_BT: jax.Array  # int32: states it is asked for
    weights_BT: jax.Array  # float32: 1 where it is asked, else 0


class FormatOperands(NamedTuple):
    """What two cells of one format may differ in: int32 scalars.

    Token numbers come after those of the symbols, 0..num_symbols-1.
    """

    first_state: jax.Array  # the token of state 0; 0 where states are symbols
    separator: jax.Array  # the token "="
    label_every: jax.Array  # acot: a state is asked for at every so many symbols, and at the last


def outcome(symbols_BT, states_BT, lengths_B, operands):
    """Only the last state is asked for, at the last symbol."""
    del operands
    asked_BT = jnp.arange(symbols_BT.shape[1]) == lengths_B[:, None] - 1
    return symbols_BT, states_BT, asked_BT


def acot(symbols_BT, states_BT, lengths_B, operands):
    """Aligned chain of thought: every state, or every k-th, is asked for, at its own symbol."""
    count_T = jnp.arange(symbols_BT.shape[1]) + 1
    labelled_BT = (count_T % operands.label_every == 0) | (count_T == lengths_B[:, None])
    asked_BT = labelled_BT & (count_T <= lengths_B[:, None])
    return symbols_BT, states_BT, asked_BT


def cot(symbols_BT, states_BT, lengths_B, operands):
    """Chain of thought: after "=" the states are asked for one by one, each fed back (T -> 2T)."""
    position_T = jnp.arange(2 * symbols_BT.shape[1])
    # k counts from the separator: 0 at "=", which is asked for s_1; s_k stands at k >= 1.
    k_BT = position_T - lengths_B[:, None]
    next_state_BT = _take(states_BT, k_BT)
    state_token_BT = _take(states_BT, k_BT - 1) + operands.first_state
    symbol_BT = jnp.concatenate([symbols_BT, jnp.zeros_like(symbols_BT)], axis=1)
    inputs_BT = jnp.where(k_BT == 0, operands.separator, state_token_BT)
    inputs_BT = jnp.where(k_BT < 0, symbol_BT, inputs_BT)
    asked_BT = (k_BT >= 0) & (k_BT < lengths_B[:, None])
    return inputs_BT, next_state_BT, asked_BT


FORMATS = {"acot": acot, "cot": cot, "outcome": outcome}


def num_positions(format_name: str, length: int) -> int:
    """Returns how many tokens the model reads for `length` symbols."""
    return 2 * length if format_name == "cot" else length


def num_inputs(format_name: str, task: Automaton) -> int:
    """Returns the size of the input vocabulary; the separator of `cot` is its last token."""
    if format_name != "cot":
        return task.num_symbols
    return (task.num_symbols if task.states_are_symbols else task.num_symbols + task.num_states) + 1


def make_batch(
    format_name: str,
    symbols_BT: jax.Array,
    states_BT: jax.Array,
    lengths_B: jax.Array,
    valid_B: jax.Array,
    operands: FormatOperands,
) -> Batch:
    """Writes sequences in a format.

    Args:
      format_name: a name in `FORMATS`.
      symbols_BT: int32[B, T]; positions from a sequence's length on may hold anything.
      states_BT: int32[B, T].
      lengths_B: int32[B].
      valid_B: bool[B], False for rows that only fill up a batch.
      operands: the task's token numbers, and where it is asked.

    Returns:
      A `Batch` of [B, T], for "cot" [B, 2T]. Inputs past the end and targets that are not asked
      for are 0.
    """
    inputs_BT, targets_BT, asked_BT = FORMATS[format_name](
        symbols_BT, states_BT, lengths_B, operands
    )
    end_B1 = lengths_B[:, None] * (2 if format_name == "cot" else 1)
    inside_BT = jnp.arange(inputs_BT.shape[1]) < end_B1
    asked_BT &= valid_B[:, None]
    return Batch(
        inputs_BT=jnp.where(inside_BT, inputs_BT, 0),
        targets_BT=jnp.where(asked_BT, targets_BT, 0),
        weights_BT=asked_BT.astype(jnp.float32),
    )


def _take(states_BT: jax.Array, k_BT: jax.Array) -> jax.Array:
    k_BT = jnp.clip(k_BT, 0, states_BT.shape[1] - 1)
    return jnp.take_along_axis(states_BT, k_BT, axis=1)
