"""Groups: their axioms, their elements, and the order in which elements act."""

import collections
import itertools

import numpy as np
import pytest

from ib_bench.tasks import make_task
from ib_bench.tasks.groups import (
    alternating_group,
    dihedral,
    modular_addition,
    permutation_composition,
    swaps,
)

# How many elements of each order a group has: enough to tell these groups from others.
ELEMENTS_OF_ORDER = {
    "modular_addition(2)": {1: 1, 2: 1},
    "modular_addition(10)": {1: 1, 2: 1, 5: 4, 10: 4},
    "dihedral(2)": {1: 1, 2: 3},
    "dihedral(4)": {1: 1, 2: 5, 4: 2},
    "dihedral(5)": {1: 1, 2: 5, 5: 4},
    "alternating_group(3)": {1: 1, 3: 2},
    "alternating_group(4)": {1: 1, 2: 3, 3: 8},
    "alternating_group(5)": {1: 1, 2: 15, 3: 20, 5: 24},
    "permutation_composition(2)": {1: 1, 2: 1},
    "permutation_composition(3)": {1: 1, 2: 3, 3: 2},
    "permutation_composition(4)": {1: 1, 2: 9, 3: 8, 4: 6},
    "permutation_composition(5)": {1: 1, 2: 25, 3: 20, 4: 30, 5: 24, 6: 20},
    "permutation_composition(6)": {1: 1, 2: 75, 3: 80, 4: 180, 5: 144, 6: 240},
    "product(modular_addition(2),permutation_composition(3))": {1: 1, 2: 7, 3: 2, 6: 2},
}

every_group = pytest.mark.parametrize("text", ELEMENTS_OF_ORDER)


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("permutation_composition(3)", 6),
        ("permutation_composition(5)", 120),
        ("permutation_composition(6)", 720),
        ("alternating_group(4)", 12),
        ("alternating_group(5)", 60),
        ("dihedral(4)", 8),
        ("modular_addition(7)", 7),
    ],
)
def test_a_group_has_as_many_elements_as_its_order(text, order):
    task = make_task(text)
    assert task.num_states == task.num_symbols == order


@every_group
def test_element_0_is_the_identity_and_the_start(text):
    task = make_task(text)
    assert task.states_are_symbols
    assert task.initial_state == 0
    np.testing.assert_array_equal(task.transition[0], np.arange(task.num_symbols))
    np.testing.assert_array_equal(task.transition[:, 0], np.arange(task.num_states))


@every_group
def test_the_table_is_a_latin_square(text):
    table = make_task(text).transition
    expected = np.broadcast_to(np.arange(len(table)), table.shape)
    np.testing.assert_array_equal(np.sort(table, axis=0), expected.T)
    np.testing.assert_array_equal(np.sort(table, axis=1), expected)


@every_group
def test_composition_is_associative(text):
    table = make_task(text).transition
    if len(table) <= 120:
        a, b, c = np.ix_(*[np.arange(len(table))] * 3)
    else:  # 373 million triples: a sample
        a, b, c = np.random.RandomState(0).randint(len(table), size=(3, 300_000))
    np.testing.assert_array_equal(table[table[a, b], c], table[a, table[b, c]])


@every_group
def test_elements_have_the_orders_that_the_group_is_known_for(text):
    table = make_task(text).transition
    orders = np.zeros(len(table), int)
    power, exponent = np.arange(len(table)), 1
    while not orders.all():
        assert exponent <= len(table), "an element has no order"
        orders[(power == 0) & (orders == 0)] = exponent
        power, exponent = table[power, np.arange(len(table))], exponent + 1
    assert dict(collections.Counter(orders.tolist())) == ELEMENTS_OF_ORDER[text]


def test_modular_addition_is_addition_modulo_m():
    for modulus in (2, 3, 10, 75):
        symbols = np.random.RandomState(modulus).randint(modulus, size=(50, 9))
        expected = symbols.cumsum(axis=1) % modulus
        np.testing.assert_array_equal(modular_addition(modulus).states(symbols), expected)


def test_figure_1_of_the_paper():
    assert modular_addition(5).states(np.array([2, 1, 0, 3, 4])).tolist() == [2, 3, 3, 1, 0]


def test_later_permutations_act_last_in_s3():
    """One-line notation, numbered lexicographically:

    0 = 012, 1 = 021, 2 = 102, 3 = 120, 4 = 201, 5 = 210.

    First p = 102 (swaps 0 and 1), then q = 021 (swaps 1 and 2). q o p sends 0 to q(1) = 2, 1 to
    q(0) = 0 and 2 to q(2) = 1: 201, number 4. The other order would give 120, number 3.
    """
    s3 = permutation_composition(3)
    assert s3.states(np.array([2, 1])).tolist() == [2, 4]
    assert s3.states(np.array([1, 2])).tolist() == [1, 3]


def test_later_permutations_act_last_in_s5():
    """First p = 12340 (k to k + 1), then q = 10234 (swaps 0 and 1).

    q o p sends 0 to q(1) = 0, 1 to q(2) = 2, 2 to 3, 3 to 4, 4 to q(0) = 1: 02341.
    p o q sends 0 to p(1) = 2, 1 to p(0) = 1, 2 to 3, 3 to 4, 4 to 0: 21340.
    Numbers count in base factorial: 12340 is 1*24 + 1*6 + 1*2 + 1 = 33, 10234 is 24,
    02341 is 0*24 + 1*6 + 1*2 + 1 = 9, 21340 is 2*24 + 1*6 + 1*2 + 1 = 57.
    """
    s5 = permutation_composition(5)
    assert s5.states(np.array([33, 24])).tolist() == [33, 9]
    assert s5.states(np.array([24, 33])).tolist() == [24, 57]


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_symmetric_groups_compose_permutations_in_one_line_notation(k):
    elements = sorted(itertools.permutations(range(k)))
    table = permutation_composition(k).transition
    generator = np.random.RandomState(k)
    for s, x in generator.randint(len(elements), size=(300, 2)).tolist():
        composed = tuple(elements[x][elements[s][i]] for i in range(k))
        assert elements[table[s, x]] == composed


@pytest.mark.parametrize("k", [3, 4, 5])
def test_alternating_groups_are_the_even_permutations_of_the_symmetric_group(k):
    symmetric = sorted(itertools.permutations(range(k)))
    even = [
        number
        for number, element in enumerate(symmetric)
        if np.linalg.det(np.eye(k)[list(element)]) > 0
    ]
    inside = permutation_composition(k).transition[np.ix_(even, even)]
    number_of = {number: place for place, number in enumerate(even)}
    expected = [[number_of[number] for number in row] for row in inside.tolist()]
    np.testing.assert_array_equal(alternating_group(k).transition, expected)


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_dihedral_elements_act_on_the_corners_of_a_polygon(k):
    def act(element, corner):
        flip, turn = divmod(element, k)
        return ((-1) ** flip * corner + turn) % k

    table = dihedral(k).transition
    for s, x in itertools.product(range(2 * k), repeat=2):
        for corner in range(k):
            assert act(table[s, x], corner) == act(x, act(s, corner))
        assert table[s, x] // k == (s // k) ^ (x // k)  # a flip of a flip is none, also for k = 2


@pytest.mark.parametrize(
    "text", ["permutation_composition(3)", "dihedral(3)", "alternating_group(4)"]
)
def test_groups_that_do_not_commute_tell_the_two_orders_apart(text):
    table = make_task(text).transition
    assert (table != table.T).any()


@pytest.mark.parametrize("maker", [modular_addition, dihedral])
def test_abelian_and_small_groups_have_chance_one_in_the_order(maker):
    task = maker(5)
    assert task.chance(4) == pytest.approx(1 / task.num_states)


@pytest.mark.parametrize(
    ("maker", "value", "message"),
    [
        (modular_addition, 1, "task.modulus: 1 is out of range; use 2 to 1000"),
        (modular_addition, 1001, "task.modulus: 1001 is out of range; use 2 to 1000"),
        (permutation_composition, 1, "task.k: 1 is out of range for permutations; use 2 to 6"),
        (permutation_composition, 7, "task.k: 7 is out of range for permutations; use 2 to 6"),
        # A_2 is a single element: there is nothing to track.
        (alternating_group, 2, "task.k: 2 is out of range for permutations; use 3 to 6"),
        (alternating_group, 7, "task.k: 7 is out of range for permutations; use 3 to 6"),
        (dihedral, 1, "task.k: 1 is out of range for dihedral; use 2 to 500"),
        (dihedral, 501, "task.k: 501 is out of range for dihedral; use 2 to 500"),
    ],
)
def test_a_size_out_of_range_is_refused_with_the_range(maker, value, message):
    with pytest.raises(ValueError, match=message):
        maker(value)


def test_the_largest_groups_can_be_built():
    assert modular_addition(1000).num_states == 1000
    assert dihedral(500).num_states == 1000
    assert alternating_group(6).num_states == 360


def test_swaps_shuffle_cups():
    """The ball of place i is at s[i]; a swap of two places takes the balls that lie there along."""
    task, permutations = swaps(4), list(itertools.permutations(range(4)))
    pairs = list(itertools.combinations(range(4), 2))
    for seed in range(20):
        symbols = np.random.RandomState(seed).randint(len(pairs), size=10)
        places, expected = list(range(4)), []
        for symbol in symbols:
            other = dict([pairs[symbol], pairs[symbol][::-1]])
            places = [other.get(place, place) for place in places]
            expected.append(permutations.index(tuple(places)))
        assert task.states(symbols).tolist() == expected
    assert not task.states_are_symbols


def test_two_places_are_too_few_to_swap():
    with pytest.raises(ValueError, match="task.k: 2 is out of range for permutations; use 3 to 6"):
        swaps(2)
