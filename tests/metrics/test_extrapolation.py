"""Accuracy beyond the training lengths, where chance is 0 and perfection 1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_records import make_cell
from scipy.stats import spearmanr

from ib_bench.metrics import accuracy_at, accuracy_at_twice, rank_correlation
from ib_bench.results import Extrapolation

SEEN = Extrapolation(820, 1e-3, 10, [5, 10, 20], [1.0, 0.6, 0.2], [0.2, 0.2, 0.2], 2000)


def test_accuracy_is_rescaled_by_the_chance_level_of_its_length():
    cell = make_cell(extrapolation=SEEN)
    assert accuracy_at(cell, 5) == 1
    assert accuracy_at(cell, 20) == 0
    assert accuracy_at_twice(cell) == pytest.approx(0.5)


def test_what_was_not_evaluated_is_no_number():
    assert accuracy_at_twice(make_cell()) is None
    assert accuracy_at(make_cell(extrapolation=SEEN), 7) is None
    assert accuracy_at_twice(make_cell(extrapolation=SEEN, length=8)) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(-1, 1)), min_size=3, max_size=20))
def test_the_rank_correlation_is_spearmans(pairs):
    first, second = zip(*pairs, strict=True)
    rho = rank_correlation(first, second)
    if rho is None:
        assert min(np.ptp(first), np.ptp(second)) == 0
    else:
        assert rho == pytest.approx(spearmanr(first, second).statistic, abs=1e-9)


def test_two_pairs_have_no_correlation_and_unequal_lists_are_refused():
    assert rank_correlation([1, 2], [1, 2]) is None
    assert rank_correlation([1, 2, 3], [5, 9, 11]) == pytest.approx(1)
    with pytest.raises(ValueError, match="3 and 2 values; give as many"):
        rank_correlation([1, 2, 3], [1, 2])
