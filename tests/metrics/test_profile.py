"""Performance profiles: what is counted, who is better, and when nobody is."""

import math

import pytest
from made_records import make_cell

from ib_bench.metrics import profiles, ranks
from ib_bench.metrics.profile import MOST_TAU


def models(**rows):
    """{"a": [(nstar, low), None for not learned, ... for missing]} -> cells by question."""
    return {
        name: {
            str(number): make_cell(*(answer or (None, 5)))
            for number, answer in enumerate(row)
            if answer is not ...
        }
        for name, row in rows.items()
    }


def test_ratios_are_multiples_of_the_best():
    found = profiles(models(a=[(10, 9), (40, 39)], b=[(20, 19), (10, 9)]), ["0", "1"])
    assert found["a"].ratios == (1.0, 4.0) and found["b"].ratios == (1.0, 2.0)
    assert [found["a"].share(tau) for tau in (1, 3.9, 4)] == [0.5, 0.5, 1.0]
    assert found["b"].share(2) == 1.0


def test_not_learned_and_missing_count_as_infinite():
    found = profiles(models(a=[(10, 9), (10, 9), (10, 9)], b=[(10, 9), None, ...]), ["0", "1", "2"])
    assert found["a"].ratios == (1.0, 1.0, 1.0)
    assert found["b"].ratios == (1.0, math.inf, math.inf)
    assert found["b"].share(10**9) == pytest.approx(1 / 3)


def test_a_cell_that_nobody_learned_counts_for_none():
    found = profiles(models(a=[(10, 9), None], b=[(20, 19), None]), ["0", "1"])
    assert found["a"].ratios == (1.0,) and found["b"].ratios == (2.0,)
    assert profiles(models(a=[None]), ["0"])["a"].score == 0


def test_the_score_is_the_area_under_the_profile():
    """Against the sum of many thin stripes."""
    found = profiles(models(a=[(10, 9), (30, 29), (90, 89), None], b=[(10, 9)] * 4), list("0123"))
    one, count = found["a"], 20_000
    logs = [(k + 0.5) / count * math.log(MOST_TAU) for k in range(count)]
    area = sum(one.share(math.exp(log)) for log in logs) / count
    assert one.score == pytest.approx(area, abs=1e-4)
    assert found["b"].score == 1.0


def test_what_the_brackets_leave_open_is_a_tie():
    wide = profiles(models(a=[(12, 8)], b=[(10, 8)], c=[(100, 99)]), ["0"])
    assert wide["a"].score < wide["b"].score
    assert ranks(wide) == {"a": 1, "b": 1, "c": 3}
    narrow = profiles(models(a=[(12, 11)], b=[(10, 9)], c=[(100, 99)]), ["0"])
    assert ranks(narrow) == {"a": 2, "b": 1, "c": 3}


def test_equal_answers_share_a_rank():
    found = profiles(models(a=[(10, 9)], b=[(10, 9)], c=[None]), ["0"])
    assert ranks(found) == {"a": 1, "b": 1, "c": 3}
