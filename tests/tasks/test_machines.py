"""Automata that are not groups, and products."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ib_bench.tasks import Automaton
from ib_bench.tasks.groups import modular_addition, permutation_composition
from ib_bench.tasks.machines import (
    bounded_counter,
    cycle_navigation,
    product,
    random_machine,
    register_machine,
)


def test_cycle_navigation_stays_steps_forward_and_steps_back():
    task = cycle_navigation(4)
    assert task.states(np.array([0, 1, 1, 1, 1, 2, 2])).tolist() == [0, 1, 2, 3, 0, 3, 2]
    assert not task.states_are_symbols


def test_cycle_navigation_counts_steps_modulo_the_cycle():
    symbols = np.random.RandomState(0).randint(3, size=(40, 15))
    steps = np.array([0, 1, -1])[symbols]
    np.testing.assert_array_equal(cycle_navigation(7).states(symbols), steps.cumsum(axis=1) % 7)


def test_a_bounded_counter_stops_at_both_ends():
    task = bounded_counter(2)
    assert task.states(np.array([2, 1, 1, 1, 0, 2, 2, 2])).tolist() == [0, 1, 2, 2, 2, 1, 0, 0]
    assert not task.states_are_symbols


def statements_of(variables, modulus):
    """The statements of a register machine in Python, in the order of their symbols."""
    names = "abcdefghi"[:variables]
    lines = [f"{a} = {c}" for a in names for c in range(modulus)]
    lines += [f"{a} = ({a} + {b}) % {modulus}" for a in names for b in names if a != b]
    pairs = [(a, b) for a in names for b in names if a < b]
    return names, lines + [f"{a}, {b} = {b}, {a}" for a, b in pairs]


@pytest.mark.parametrize(("variables", "modulus"), [(1, 3), (2, 2), (2, 7), (3, 5)])
def test_a_register_machine_does_what_python_does(variables, modulus):
    task = register_machine(variables, modulus)
    names, lines = statements_of(variables, modulus)
    assert task.num_symbols == len(lines)
    generator = np.random.RandomState(0)
    for _ in range(20):
        symbols, values, expected = (
            generator.randint(len(lines), size=12),
            dict.fromkeys(names, 0),
            [],
        )
        for symbol in symbols:
            exec(lines[symbol], {}, values)
            expected.append(
                int(np.ravel_multi_index([values[a] for a in names], [modulus] * variables))
            )
        assert task.states(symbols).tolist() == expected


def test_a_random_machine_is_the_same_for_ever():
    assert random_machine(3, 4, 0).transition.tolist() == [[0, 1, 0, 1], [1, 2, 0, 2], [0, 0, 0, 2]]
    assert random_machine(3, 4, 0).table_hash == random_machine(3, 4, 0).table_hash


def test_other_seeds_give_other_machines():
    hashes = {random_machine(5, 5, seed).table_hash for seed in range(50)}
    assert len(hashes) == 50


def test_a_random_machine_draws_every_state_alike():
    counts = np.bincount(random_machine(10, 1000, 3).transition.ravel(), minlength=10)
    chi_square = ((counts - 1000) ** 2 / 1000).sum()
    assert chi_square < 27.9  # 9 degrees of freedom: exceeded once in a thousand


def small_machines():
    return st.builds(random_machine, st.integers(2, 4), st.integers(2, 4), st.integers(0, 99))


@settings(max_examples=40, deadline=None)
@given(st.lists(small_machines(), min_size=1, max_size=4), st.integers(0, 2**31 - 1))
def test_a_product_runs_its_factors_side_by_side(factors, seed):
    task = product(*factors)
    symbols = np.random.RandomState(seed).randint(task.num_symbols, size=(5, 8))
    num_symbols = [factor.num_symbols for factor in factors]
    num_states = [factor.num_states for factor in factors]
    assert task.num_symbols == np.prod(num_symbols)
    assert task.num_states == np.prod(num_states)
    states = np.unravel_index(task.states(symbols), num_states)
    parts = zip(factors, np.unravel_index(symbols, num_symbols), states, strict=True)
    for factor, factor_symbols, factor_states in parts:
        np.testing.assert_array_equal(factor.states(factor_symbols), factor_states)


def test_the_first_factor_of_a_product_is_the_most_significant():
    task = product(modular_addition(2), modular_addition(3))
    # 4 = (1, 1): parity flips, and one is added modulo 3; 2 = (0, 2).
    assert task.states(np.array([4, 2, 4])).tolist() == [3 * 1 + 1, 3 * 1 + 0, 3 * 0 + 1]


def test_a_product_starts_where_its_factors_start():
    late = Automaton("late", np.array([[0, 1], [1, 0], [2, 2]]), initial_state=2)
    assert product(late, late).initial_state == 2 * 3 + 2


def test_states_of_a_product_are_symbols_only_where_they_are_in_all_factors():
    z2, s3, walk = modular_addition(2), permutation_composition(3), cycle_navigation(3)
    assert product(z2, s3).states_are_symbols
    assert not product(z2, walk).states_are_symbols


def test_the_order_of_nested_products_does_not_matter():
    a, b, c = random_machine(2, 3, 0), random_machine(3, 2, 1), random_machine(2, 2, 2)
    flat = product(a, b, c)
    assert product(product(a, b), c).table_hash == flat.table_hash
    assert product(a, product(b, c)).table_hash == flat.table_hash


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cycle_navigation(1), "task.k: 1 is out of range for cycle_navigation; use 2 to"),
        (lambda: random_machine(1, 3, 0), "task.states: 1 is out of range; use 2 to 1000"),
        (lambda: random_machine(3, 1001, 0), "task.symbols: 1001 is out of range; use 2 to 1000"),
        (lambda: random_machine(3, 3, -1), "task.seed: -1 is out of range; use 0 to 4294967295"),
        (lambda: random_machine(3, 3, 2**32), "task.seed: 4294967296 is out of range; use 0 to"),
        (lambda: bounded_counter(0), "task.k: 0 is out of range; use 1 to 999"),
        (lambda: register_machine(0, 2), "task.variables: 0 is out of range; use 1 to 9"),
        (
            lambda: register_machine(3, 11),
            "task.variables: 3 variables modulo 11 have 1331 states; at most 1000 are supported",
        ),
        (lambda: product(), "task.factors: product needs at least one task"),
        (
            lambda: product(modular_addition(100), modular_addition(11)),
            "task.factors: the product has 1100 states and 1100 symbols; at most 1000 of each",
        ),
    ],
)
def test_a_size_out_of_range_is_refused_with_its_key_and_the_fix(make, message):
    with pytest.raises(ValueError, match=message):
        make()
