"""Formats, token by token: what is read, what is asked, and that padding never shows."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ib_bench.data import FORMATS, make_operands, make_split, num_inputs, num_positions
from ib_bench.data.formats import FormatOperands, make_batch
from ib_bench.tasks import make_task

SYMBOLS = [2, 1, 0, 3, 4]
STATES = [2, 3, 3, 1, 0]  # figure 1 of the paper, m = 5
SEPARATOR = 5


def tokens_of(task, format_name):
    return make_operands(task, format_name, make_split(task.num_symbols, 5, "fixed")).format


def formatted(format_name, symbols, states, lengths, valid=None, tokens=None):
    tokens = tokens or tokens_of(make_task("modular_addition(5)"), format_name)
    valid = [True] * len(lengths) if valid is None else valid
    batch = make_batch(
        format_name,
        jnp.array(symbols, jnp.int32),
        jnp.array(states, jnp.int32),
        jnp.array(lengths, jnp.int32),
        jnp.array(valid),
        tokens,
    )
    assert batch.inputs_BT.dtype == batch.targets_BT.dtype == jnp.int32
    assert batch.weights_BT.dtype == jnp.float32
    return [np.asarray(part).tolist() for part in batch]


GOLDEN = {
    "outcome": (
        [2, 1, 0, 3, 4],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1],
    ),
    "acot": (
        [2, 1, 0, 3, 4],
        [2, 3, 3, 1, 0],
        [1, 1, 1, 1, 1],
    ),
    "cot": (
        [2, 1, 0, 3, 4, 5, 2, 3, 3, 1],
        [0, 0, 0, 0, 0, 2, 3, 3, 1, 0],
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1],
    ),
}

# The first three symbols alone, padded to five places; the state asked for last is 3.
GOLDEN_SHORT = {
    "outcome": (
        [2, 1, 0, 0, 0],
        [0, 0, 3, 0, 0],
        [0, 0, 1, 0, 0],
    ),
    "acot": (
        [2, 1, 0, 0, 0],
        [2, 3, 3, 0, 0],
        [1, 1, 1, 0, 0],
    ),
    "cot": (
        [2, 1, 0, 5, 2, 3, 0, 0, 0, 0],
        [0, 0, 0, 2, 3, 3, 0, 0, 0, 0],
        [0, 0, 0, 1, 1, 1, 0, 0, 0, 0],
    ),
}

# acot with a label at every so many symbols: where five, and the first three, are asked.
LABELLED = {
    1: ([1, 1, 1, 1, 1], [1, 1, 1, 0, 0]),
    2: ([0, 1, 0, 1, 1], [0, 1, 1, 0, 0]),
    3: ([0, 0, 1, 0, 1], [0, 0, 1, 0, 0]),
    5: ([0, 0, 0, 0, 1], [0, 0, 1, 0, 0]),
}


@pytest.mark.parametrize("label_every", LABELLED)
def test_labels_may_stand_at_every_kth_symbol_and_stand_at_the_last(label_every):
    tokens = tokens_of(make_task("modular_addition(5)"), "acot")
    tokens = tokens._replace(label_every=np.int32(label_every))
    rows = formatted("acot", [SYMBOLS] * 2, [STATES] * 2, [5, 3], tokens=tokens)
    inputs, targets, weights = rows
    assert weights == list(LABELLED[label_every])
    assert inputs == [SYMBOLS, SYMBOLS[:3] + [0, 0]]
    assert targets == [(np.array(STATES) * row).astype(int).tolist() for row in weights]


every_format = pytest.mark.parametrize("format_name", FORMATS)


def test_every_format_has_golden_examples():
    assert GOLDEN.keys() == GOLDEN_SHORT.keys() == FORMATS.keys()
    assert list(FORMATS) == sorted(FORMATS)


@every_format
def test_figure_1_token_by_token(format_name):
    inputs, targets, weights = formatted(format_name, [SYMBOLS], [STATES], [5])
    assert (inputs[0], targets[0], weights[0]) == GOLDEN[format_name]


@every_format
@pytest.mark.parametrize("garbage", [0, 4, 5, -1, 10**9])
def test_a_shorter_sequence_shows_nothing_of_its_padding(format_name, garbage):
    inputs, targets, weights = formatted(
        format_name, [[2, 1, 0, garbage, garbage]], [[2, 3, 3, garbage, garbage]], [3]
    )
    assert (inputs[0], targets[0], weights[0]) == GOLDEN_SHORT[format_name]


@every_format
def test_rows_of_different_lengths_stand_side_by_side(format_name):
    inputs, targets, weights = formatted(
        format_name, [SYMBOLS, SYMBOLS], [STATES, STATES], lengths=[3, 5]
    )
    assert (inputs[0], targets[0], weights[0]) == GOLDEN_SHORT[format_name]
    assert (inputs[1], targets[1], weights[1]) == GOLDEN[format_name]


@every_format
def test_rows_that_only_fill_up_a_batch_carry_no_weight(format_name):
    inputs, targets, weights = formatted(
        format_name, [SYMBOLS] * 3, [STATES] * 3, [5, 3, 5], valid=[True, False, False]
    )
    assert (inputs[0], targets[0], weights[0]) == GOLDEN[format_name]
    assert not np.any(weights[1:])
    assert not np.any(targets[1:])


def test_states_that_are_not_symbols_have_tokens_of_their_own_in_cot():
    """cycle_navigation(5): symbols 0..2, state s is token 3 + s, the separator is token 8."""
    task = make_task("cycle_navigation(5)")
    symbols = [1, 1, 0, 2, 1]
    states = task.states(np.array(symbols)).tolist()
    assert states == [1, 2, 2, 1, 2]
    tokens = tokens_of(task, "cot")
    assert (int(tokens.first_state), int(tokens.separator)) == (3, 8)
    inputs, targets, weights = formatted("cot", [symbols], [states], [5], tokens=tokens)
    assert inputs[0] == [1, 1, 0, 2, 1, 8, 4, 5, 5, 4]
    assert targets[0] == [0, 0, 0, 0, 0, 1, 2, 2, 1, 2]
    assert weights[0] == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]


def test_state_tokens_past_the_end_of_a_short_chain_are_zero_and_not_shifted():
    tokens = tokens_of(make_task("cycle_navigation(5)"), "cot")
    inputs, _, _ = formatted("cot", [[1, 1, 9, 9]], [[1, 2, 9, 9]], [2], tokens=tokens)
    assert inputs[0] == [1, 1, 8, 4, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("text", "format_name", "expected"),
    [
        ("modular_addition(5)", "outcome", 5),
        ("modular_addition(5)", "acot", 5),
        ("modular_addition(5)", "cot", 6),
        ("cycle_navigation(5)", "outcome", 3),
        ("cycle_navigation(5)", "acot", 3),
        ("cycle_navigation(5)", "cot", 9),
        ("permutation_composition(5)", "cot", 121),
        ("random_machine(4,7,0)", "cot", 12),
    ],
)
def test_the_vocabulary_is_symbols_then_states_then_the_separator(text, format_name, expected):
    assert num_inputs(format_name, make_task(text)) == expected


def test_a_chain_of_thought_takes_twice_the_positions():
    assert [num_positions(name, 7) for name in ("outcome", "acot", "cot")] == [7, 7, 14]


# --- against a slow writer, whatever the padding holds ------------------------------------------


def write(format_name, symbols, states, tokens):
    """The slow writer: lists of one sequence, (inputs, targets, weights)."""
    size = len(symbols)
    if format_name == "outcome":
        return symbols, [0] * (size - 1) + states[-1:], [0] * (size - 1) + [1]
    if format_name == "acot":
        return symbols, states, [1] * size
    fed_back = [int(tokens.first_state) + state for state in states[:-1]]
    inputs = [*symbols, int(tokens.separator), *fed_back]
    return inputs, [0] * size + states, [0] * size + [1] * size


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(FORMATS)),
    st.lists(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=6)),
    st.integers(-(2**31), 2**31 - 1),
)
def test_any_batch_equals_a_slow_writer_whatever_its_padding_holds(format_name, rows, garbage):
    rows = rows[:4] + [[(0, 0)]] * (4 - len(rows))  # one shape, so that nothing compiles anew
    tokens = FormatOperands(np.int32(7), separator=np.int32(11), label_every=np.int32(1))
    padded = np.full((2, 4, 6), garbage, np.int32)
    width = num_positions(format_name, 6)
    expected = np.zeros((3, 4, width))
    for b, row in enumerate(rows):
        symbols, states = map(list, zip(*row, strict=True))
        padded[:, b, : len(row)] = symbols, states
        for part, values in enumerate(write(format_name, symbols, states, tokens)):
            expected[part, b, : len(values)] = values
    lengths = [len(row) for row in rows]
    np.testing.assert_array_equal(formatted(format_name, *padded, lengths, tokens=tokens), expected)
