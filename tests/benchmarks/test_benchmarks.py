"""What the benchmarks count: operations of a step, and what a stall rule would have done."""

import pytest

from benchmarks.rows import ROWS, Row
from benchmarks.stall_rule import judge, stops


def run_of(train, loss):
    return {"train": train, "loss": loss}


def test_a_run_stalls_once_it_has_fitted_and_waited():
    run = run_of([1.0, 1e-5, 1e-5, 1e-5, 1e-5], [0.5, 0.4, 0.6, 0.7, 0.8])
    assert list(stops(run, 250, 500)) == [1000, 1250]
    assert list(stops(run, 250, 1000)) == []


def test_a_run_that_still_improves_or_has_not_fitted_does_not_stall():
    assert list(stops(run_of([1e-5] * 4, [0.4, 0.3, 0.2, 0.1]), 250, 250)) == []
    assert list(stops(run_of([1.0] * 4, [0.4, 0.5, 0.6, 0.7]), 250, 250)) == []


def test_a_rule_is_judged_by_what_it_loses_and_what_it_saves():
    late = run_of([1e-5] * 4, [0.3, 0.4, 0.5, 1e-5])  # solved after it seemed to be over
    soon = run_of([1e-5] * 2, [0.3, 1e-5])
    never = run_of([1e-5] * 8, [0.3, *[0.4] * 7])
    found = judge([{"eval_every": 250, "runs": [late, soon, never]}], patience=500)
    assert (found.solved, found.lost) == (2, 1)
    assert (found.steps, found.kept) == (2000, 750)


def test_operations_are_those_of_the_matrix_products():
    lstm = Row("lstm", 32, 5)
    assert lstm.flops == 3 * (2 * 64 * 5 * 32 * 128 + 2 * 5 * 32 * 128 + 2 * 64 * 5 * 32 * 5)
    deep = Row("transformer", 64, 5, "cot", layers=2, heads=2)
    rows = 64 * 10
    layer = 2 * rows * 12 * 64**2 + 4 * rows * 10 * 64
    assert deep.flops == pytest.approx(3 * (2 * layer + 2 * rows * 64 * 5))


def test_rows_have_names_of_their_own():
    assert len({row.name for row in ROWS}) == len(ROWS) == 14
