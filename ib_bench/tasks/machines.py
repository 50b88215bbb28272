"""Automata that are not groups, and products of any tasks."""

import itertools

import numpy as np

from ib_bench.checks import check_range
from ib_bench.tasks.automaton import Automaton
from ib_bench.tasks.groups import MAX_MODULUS


def cycle_navigation(k: int) -> Automaton:
    """A walk on a cycle of k places; symbols 0, 1, 2 = stay, step forward, step back."""
    if not 2 <= k <= MAX_MODULUS:
        raise ValueError(
            f"task.k: {k} is out of range for cycle_navigation; use 2 to {MAX_MODULUS}"
        )
    table = (np.arange(k)[:, None] + np.array([0, 1, -1])[None, :]) % k
    return Automaton(f"cycle_navigation({k})", table)


def bounded_counter(k: int) -> Automaton:
    """A count from 0 to k that stops at both ends; symbols 0, 1, 2 = stay, count up, count down."""
    check_range("task.k", k, 1, MAX_MODULUS - 1)
    table = np.arange(k + 1)[:, None] + np.array([0, 1, -1])[None, :]
    return Automaton(f"bounded_counter({k})", np.clip(table, 0, k))


def register_machine(variables: int, modulus: int) -> Automaton:
    """The values of variables while a program runs line by line; a symbol is a statement.

    With variables a, b, ... that hold 0 to modulus - 1, all 0 at first, the statements are, in this
    order: `a = c` for every variable and constant c; `a += b` for every pair of two variables, in
    both orders; `swap a b` for every pair. A state is all values, the first variable's the most
    significant digit.
    """
    check_range("task.variables", variables, 1, 9)
    check_range("task.modulus", modulus, 2, MAX_MODULUS)
    if modulus**variables > MAX_MODULUS:
        raise ValueError(
            f"task.variables: {variables} variables modulo {modulus} have "
            f"{modulus**variables} states; at most {MAX_MODULUS} are supported"
        )
    place_V = modulus ** np.arange(variables)[::-1]
    values_SV = np.arange(modulus**variables)[:, None] // place_V % modulus
    after = []  # the values after each statement, int[S, V]
    for a, constant in itertools.product(range(variables), range(modulus)):
        after.append(values_SV.copy())
        after[-1][:, a] = constant
    for a, b in itertools.permutations(range(variables), 2):
        after.append(values_SV.copy())
        after[-1][:, a] = (values_SV[:, a] + values_SV[:, b]) % modulus
    for a, b in itertools.combinations(range(variables), 2):
        after.append(values_SV.copy())
        after[-1][:, [a, b]] = values_SV[:, [b, a]]
    table = np.stack([values @ place_V for values in after], axis=1)
    return Automaton(f"register_machine({variables},{modulus})", table)


def random_machine(states: int, symbols: int, seed: int) -> Automaton:
    """A machine whose table is drawn uniformly; the same seed gives the same table for ever."""
    for key, value in (("states", states), ("symbols", symbols)):
        check_range(f"task.{key}", value, 2, MAX_MODULUS)
    check_range("task.seed", seed, 0, 2**32 - 1)
    # RandomState, not Generator: its stream is frozen by numpy's compatibility policy.
    table = np.random.RandomState(seed).randint(states, size=(states, symbols))
    return Automaton(f"random_machine({states},{symbols},{seed})", table)


def product(*factors: Automaton) -> Automaton:
    """Several tasks side by side: a symbol holds one symbol of each, and so does a state.

    Numbers are mixed-radix with the first factor the most significant.
    """
    if not factors:
        raise ValueError("task.factors: product needs at least one task")
    table, initial_state = factors[0].transition, factors[0].initial_state
    for factor in factors[1:]:
        right = factor.transition
        num_states, num_symbols = len(table) * len(right), table.shape[1] * right.shape[1]
        if max(num_states, num_symbols) > MAX_MODULUS:
            raise ValueError(
                f"task.factors: the product has {num_states} states and {num_symbols} symbols; "
                f"at most {MAX_MODULUS} of each are supported"
            )
        table = table[:, None, :, None] * len(right) + right[None, :, None, :]
        table = table.reshape(num_states, num_symbols)
        initial_state = initial_state * len(right) + factor.initial_state
    return Automaton(
        f"product({','.join(factor.name for factor in factors)})",
        table,
        initial_state,
        all(factor.states_are_symbols for factor in factors),
    )
