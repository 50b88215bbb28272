"""Groups as tasks: every element is a symbol and a state, and the state is the product so far.

Convention, pinned by a test: elements are numbered with the identity first, permutations in
one-line notation in lexicographic order, and later elements act last: s_k = x_k o s_{k-1}.
"""

import itertools

import numpy as np

from ib_bench.checks import check_range
from ib_bench.tasks.automaton import Automaton

MAX_MODULUS = 1000  # the data generator's hash reduction is exact enough up to 1,024
MAX_PERMUTED = 6  # S_6 has 720 elements, S_7 5,040: past MAX_MODULUS


def modular_addition(modulus: int) -> Automaton:
    """Z_m: s_k = (x_1 + ... + x_k) mod m; m = 2 is parity (paper, section 2)."""
    check_range("task.modulus", modulus, 2, MAX_MODULUS)
    elements = np.arange(modulus)
    table = (elements[:, None] + elements[None, :]) % modulus
    return Automaton(f"modular_addition({modulus})", table, states_are_symbols=True)


def permutation_composition(k: int) -> Automaton:
    """S_k: s_n = x_n o ... o x_1, a symbol for each of the k! permutations (paper, section 2)."""
    _check_permuted(k)
    permutations = np.array(list(itertools.permutations(range(k))))
    return permutation_group(f"permutation_composition({k})", permutations)


def swaps(k: int) -> Automaton:
    """S_k where only transpositions are spoken: shuffled cups, pieces on a board.

    The states are those of `permutation_composition`; the symbols are the swaps of two of k places,
    (0 1), (0 2), ..., (1 2), ... in this order.
    """
    _check_permuted(k, smallest=3)  # with two places there is but one swap
    group = permutation_composition(k)
    permutations = list(itertools.permutations(range(k)))
    numbers = []
    for a, b in itertools.combinations(range(k), 2):
        swapped = list(range(k))
        swapped[a], swapped[b] = b, a
        numbers.append(permutations.index(tuple(swapped)))
    return Automaton(f"swaps({k})", group.transition[:, numbers])


def alternating_group(k: int) -> Automaton:
    """A_k: the even permutations of k points, composed as in `permutation_composition`."""
    _check_permuted(k, smallest=3)  # A_2 is a single element: nothing to track
    permutations = np.array(list(itertools.permutations(range(k))))
    left, right = np.triu_indices(k, 1)
    inversions = (permutations[:, left] > permutations[:, right]).sum(1)
    return permutation_group(f"alternating_group({k})", permutations[inversions % 2 == 0])


def dihedral(k: int) -> Automaton:
    """D_k: the 2k symmetries x -> (-1)^b x + a of a k-gon's corners; number a + k b."""
    if not 2 <= 2 * k <= MAX_MODULUS or k < 2:
        raise ValueError(f"task.k: {k} is out of range for dihedral; use 2 to {MAX_MODULUS // 2}")
    flip, turn = np.divmod(np.arange(2 * k), k)
    first, second = np.ix_(range(2 * k), range(2 * k))  # state, then the symbol that acts on it
    sign = 1 - 2 * flip[second]
    table = (sign * turn[first] + turn[second]) % k + k * (flip[first] ^ flip[second])
    return Automaton(f"dihedral({k})", table, states_are_symbols=True)


def _check_permuted(k: int, smallest: int = 2) -> None:
    if not smallest <= k <= MAX_PERMUTED:
        raise ValueError(
            f"task.k: {k} is out of range for permutations; use {smallest} to {MAX_PERMUTED}"
        )


def permutation_group(name: str, permutations: np.ndarray) -> Automaton:
    """The group of these permutations (int[num_elements, k], sorted, closed under composition)."""
    k = permutations.shape[1]
    place = k ** np.arange(k)[::-1]
    codes = permutations @ place  # ascending, as the rows are in lexicographic order
    # composed[s, x, i] = x[s[i]]: the symbol x acts after the state s.
    composed = permutations[:, permutations].swapaxes(0, 1)
    table = np.searchsorted(codes, composed @ place)
    return Automaton(name, table, states_are_symbols=True)
