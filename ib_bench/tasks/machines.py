"""Automata that are not groups, and products of any tasks."""

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
