"""Two answers are compared as far as their brackets allow, and no further."""

import math

import pytest
from made_records import make_cell

from ib_bench.metrics import Bounds, Bracket, bracket_of


@pytest.mark.parametrize(
    ("one", "other", "below", "at_most"),
    [
        ((9, 10), (10, 12), True, True),
        ((9, 10), (9, 10), False, True),  # both are 10
        ((9, 10), (8, 10), False, None),  # the other is 9 or 10
        ((8, 10), (9, 10), None, True),
        ((8, 12), (9, 11), None, None),
        ((12, 13), (5, 10), False, False),
    ],
)
def test_brackets_that_overlap_settle_nothing(one, other, below, at_most):
    assert Bracket(*one).is_below(Bracket(*other)) is below
    assert Bracket(*one).is_at_most(Bracket(*other)) is at_most


def test_what_was_not_learned_is_larger_than_any_nstar_up_to_its_largest_size():
    not_learned = bracket_of(make_cell(None, 0, max_size=820))
    assert not_learned == Bracket(820, math.inf)
    assert bracket_of(make_cell(820, 800)).is_below(not_learned) is True
    assert not_learned.is_below(bracket_of(make_cell(820, 800))) is False
    assert bracket_of(make_cell(2000, 900)).is_below(not_learned) is None


def test_two_cells_that_were_not_learned_are_not_comparable():
    one, other = (bracket_of(make_cell(None, 0, max_size=size)) for size in (50, 820))
    assert one.is_below(other) is None and other.is_below(one) is None


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.234, 1.234, "1.23"),
        (3, math.inf, "> 3"),
        (0, 0.4, "< 0.4"),
        (0, math.inf, "?"),
        (0.4, 3, "0.4 to 3"),
    ],
)
def test_bounds_are_printed_as_bounds(low, high, text):
    assert Bounds(low, high).text == text
