"""Every entry of TASKS keeps the same promises; a new task is tested by its line in EXAMPLES."""

import hashlib
import itertools
import pathlib
import struct

import numpy as np
import pytest

from ib_bench.tasks import MAX_MODULUS, TASKS, make_task, parameters_of

WORDS = str(pathlib.Path(__file__).with_name("s3_words.csv"))
EXAMPLES = {
    "alternating_group": ["alternating_group(3)", "alternating_group(5)"],
    "bounded_counter": ["bounded_counter(1)", "bounded_counter(4)"],
    "cycle_navigation": ["cycle_navigation(2)", "cycle_navigation(5)"],
    "dihedral": ["dihedral(2)", "dihedral(4)", "dihedral(5)"],
    "modular_addition": ["modular_addition(2)", "modular_addition(5)", "modular_addition(1000)"],
    "permutation_composition": ["permutation_composition(3)", "permutation_composition(5)"],
    "product": [
        "product(modular_addition(2),permutation_composition(3))",
        "product(cycle_navigation(3),random_machine(4,2,1),modular_addition(3))",
        "product(dihedral(3))",
    ],
    "random_machine": ["random_machine(4,3,7)", "random_machine(2,5,0)"],
    "register_machine": ["register_machine(1,3)", "register_machine(2,3)", "register_machine(3,2)"],
    "swaps": ["swaps(3)", "swaps(4)"],
    "words": [f"words({WORDS!r},'')", f"words({WORDS!r},'permutation_composition(3)')"],
}

# Written down once: a change of any of these is a change of the task, so of the protocol.
HASHES = {
    "alternating_group(5)": "08c80c230341470b",
    "bounded_counter(4)": "20b42b3bb82707b7",
    "cycle_navigation(5)": "5c786ea217b669be",
    "dihedral(4)": "06ed4ba1bfa6ffdd",
    "modular_addition(2)": "38e9fbdc3a5b6611",
    "modular_addition(5)": "3781d7ac5f3ae157",
    "permutation_composition(3)": "4aed785e7bc4c4f6",
    "permutation_composition(5)": "153c84c2194632c5",
    "product(modular_addition(2),permutation_composition(3))": "10441cb6a39248be",
    "random_machine(4,3,7)": "547a359d6fc82bdd",
    "register_machine(2,3)": "a4755fe7d91d32cd",
    "swaps(4)": "28a8b4fd440dd945",
    f"words({WORDS!r},'')": "4aed785e7bc4c4f6",  # permutation_composition(3)
}

every_task = pytest.mark.parametrize("text", sum(EXAMPLES.values(), []))


def slow_states(task, symbols):
    """The oracle: one sequence, one symbol at a time, in plain Python."""
    table, state, states = task.transition.tolist(), task.initial_state, []
    for symbol in symbols:
        state = table[state][symbol]
        states.append(state)
    return states


def test_every_task_has_examples():
    assert EXAMPLES.keys() == TASKS.keys()
    for name, texts in EXAMPLES.items():
        assert texts and all(text.startswith(f"{name}(") for text in texts)


def test_the_table_of_contents_is_sorted():
    assert list(TASKS) == sorted(TASKS)


@every_task
def test_the_table_is_int32_in_range_and_read_only(text):
    task = make_task(text)
    assert task.transition.dtype == np.int32
    assert task.transition.shape == (task.num_states, task.num_symbols)
    assert task.transition.min() >= 0
    assert task.transition.max() < task.num_states
    assert 0 <= task.initial_state < task.num_states
    assert max(task.num_states, task.num_symbols) <= MAX_MODULUS
    with pytest.raises(ValueError, match="read-only"):
        task.transition[0, 0] = 0


@every_task
def test_states_equal_a_loop_in_plain_python(text):
    task = make_task(text)
    symbols = np.random.RandomState(0).randint(task.num_symbols, size=(20, 12))
    expected = [slow_states(task, row) for row in symbols.tolist()]
    states = task.states(symbols)
    assert states.dtype == np.int32
    np.testing.assert_array_equal(states, expected)
    np.testing.assert_array_equal(task.states(symbols[0]), expected[0])
    np.testing.assert_array_equal(task.states(symbols.reshape(4, 5, 12))[3, 4], expected[19])


@every_task
def test_chance_is_the_share_of_the_most_frequent_state_over_all_words(text):
    task = make_task(text)
    lengths = [n for n in range(1, 7) if task.num_symbols**n <= 20_000]
    for length in lengths:
        words = np.array(list(itertools.product(range(task.num_symbols), repeat=length)))
        shares = np.stack(
            [
                np.bincount(states, minlength=task.num_states) / len(words)
                for states in task.states(words).T
            ]
        )
        np.testing.assert_allclose(task.state_probabilities(length), shares, atol=1e-12)
        assert task.chance(length) == pytest.approx(shares[-1].max(), abs=1e-12)


@every_task
def test_a_task_is_rebuilt_from_its_name(text):
    task = make_task(text)
    assert task.name == text
    again = make_task(task.name)
    assert again.name == task.name
    assert again.table_hash == task.table_hash
    assert again.initial_state == task.initial_state
    assert again.states_are_symbols == task.states_are_symbols
    np.testing.assert_array_equal(again.transition, task.transition)


@every_task
def test_the_table_hash_covers_the_shape_the_start_and_the_table(text):
    task = make_task(text)
    numbers = [task.num_states, task.num_symbols, task.initial_state]
    for row in task.transition.tolist():
        numbers.extend(row)
    content = struct.pack(f"<{len(numbers)}i", *numbers)
    assert task.table_hash == hashlib.sha256(content).hexdigest()[:16]


@pytest.mark.parametrize("text", HASHES)
def test_the_table_is_the_one_that_records_name(text):
    assert make_task(text).table_hash == HASHES[text], (
        f"the table of {text} changed, so its labels did: raise PROTOCOL_VERSION"
    )


def test_a_makers_parameters_are_the_keys_of_its_config():
    def keys(name):
        return tuple(parameters_of(name))

    assert keys("modular_addition") == ("modulus",)
    assert keys("random_machine") == ("states", "symbols", "seed")
    assert keys("product") == ("factors",)
    assert keys("register_machine") == ("variables", "modulus")
    assert keys("words") == ("path", "claims")
    of_k = ("alternating_group", "bounded_counter", "cycle_navigation", "dihedral", "swaps")
    for name in (*of_k, "permutation_composition"):
        assert keys(name) == ("k",)
