"""An automaton is a checked, read-only table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ib_bench.tasks import Automaton


@st.composite
def automata(draw):
    num_states = draw(st.integers(1, 6))
    num_symbols = draw(st.integers(1, 5))
    state = st.integers(0, num_states - 1)
    row = st.lists(state, min_size=num_symbols, max_size=num_symbols)
    table = draw(st.lists(row, min_size=num_states, max_size=num_states))
    return Automaton("any", np.array(table), initial_state=draw(state))


@settings(max_examples=60, deadline=None)
@given(automata(), st.data())
def test_any_table_is_followed_symbol_by_symbol(task, data):
    symbols = data.draw(st.lists(st.integers(0, task.num_symbols - 1), min_size=1, max_size=9))
    state, expected = task.initial_state, []
    for symbol in symbols:
        state = int(task.transition[state, symbol])
        expected.append(state)
    assert task.states(np.array(symbols)).tolist() == expected


@settings(max_examples=60, deadline=None)
@given(automata(), st.integers(1, 8))
def test_state_probabilities_are_a_distribution_at_every_length(task, length):
    rows = task.state_probabilities(length)
    assert rows.shape == (length, task.num_states)
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    # One step of the chain, written as a matrix.
    chain = np.zeros((task.num_states, task.num_states))
    for state, row in enumerate(task.transition):
        for after in row:
            chain[state, after] += 1 / task.num_symbols
    start = np.eye(task.num_states)[task.initial_state]
    for k in range(length):
        np.testing.assert_allclose(rows[k], start @ np.linalg.matrix_power(chain, k + 1))


def test_the_table_is_a_copy_that_the_caller_cannot_change():
    table = np.array([[0, 1], [1, 0]])
    task = Automaton("parity", table)
    table[:] = 0
    assert task.transition.tolist() == [[0, 1], [1, 0]]


def test_the_start_is_where_the_first_symbol_is_read():
    task = Automaton("walk", np.array([[1, 0], [2, 0], [2, 1]]), initial_state=2)
    assert task.states(np.array([1, 1, 0])).tolist() == [1, 0, 1]


def test_no_symbols_lead_to_no_states():
    task = Automaton("parity", np.array([[0, 1], [1, 0]]))
    assert task.states(np.zeros((3, 0), int)).shape == (3, 0)


def test_two_starts_or_two_shapes_of_one_table_hash_differently():
    numbers = np.array([0, 1, 1, 0, 0, 1])
    wide = Automaton("a", numbers.reshape(2, 3))
    tall = Automaton("a", numbers.reshape(3, 2))
    late = Automaton("a", numbers.reshape(2, 3), initial_state=1)
    renamed = Automaton("b", numbers.reshape(2, 3))
    assert len({wide.table_hash, tall.table_hash, late.table_hash}) == 3
    assert renamed.table_hash == wide.table_hash


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1],), r"task T: transition has shape \(2,\); it must be \[num_states, num_symbols\]"),
        ((np.zeros((0, 2)),), r"transition has shape \(0, 2\).*at least one of each"),
        (([[0, 2], [1, 0]],), r"task T: transition names state 2; states are 0\.\.1"),
        (([[0, -1], [1, 0]],), r"task T: transition names state -1; states are 0\.\.1"),
        (([[0, 1], [1, 0]], 2), r"task T: initial_state is 2; states are 0\.\.1"),
        (([[0, 1], [1, 0]], -1), r"task T: initial_state is -1; states are 0\.\.1"),
        (
            ([[0], [1]], 0, True),
            "task T: states_are_symbols needs as many states as symbols.*2 and 1",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_its_name_and_its_fault(arguments, message):
    with pytest.raises(ValueError, match=message):
        Automaton("T", *arguments)
