"""N50 and its interval: what they say of a study, and how often the interval holds the truth."""

import dataclasses
import math

import numpy as np
import pytest
from made_records import make_probe

from ib_bench.metrics import fit_success_curve, success_curve

# sizes, seeds a size, true N50, true slope
DESIGNS = {
    "a paper's grid": ([10, 14, 20, 28, 40], 15, 20, 4.0),
    "few seeds": ([8, 11, 16, 23, 32, 45, 64, 91], 5, 30, 3.0),
    "off centre": ([16, 24, 36, 54], 30, 20, 5.0),
}


@pytest.mark.parametrize("design", DESIGNS)
def test_the_interval_holds_the_truth_in_95_of_100_studies(design):
    sizes, seeds, n50, slope = DESIGNS[design]
    rng = np.random.default_rng(0)
    truth = 1 / (1 + (np.array(sizes) / n50) ** -slope)
    held = []
    for successes in rng.binomial(seeds, truth, size=(400, len(sizes))):
        curve = fit_success_curve(sizes, successes.tolist(), [seeds] * len(sizes))
        held.append(curve.low <= n50 <= curve.high)
    assert 0.9 <= np.mean(held) <= 0.99


def test_a_curve_is_found_again_from_many_seeds():
    sizes = [8, 11, 16, 23, 32, 45, 64]
    truth = 1 / (1 + (np.array(sizes) / 20) ** -3.0)
    curve = fit_success_curve(sizes, (10_000 * truth).round().astype(int), [10_000] * 7)
    assert curve.n50 == pytest.approx(20, rel=1e-2)
    assert curve.slope == pytest.approx(3, rel=1e-2)
    assert 19.5 < curve.low < curve.n50 < curve.high < 20.5
    assert curve.probability(20) == pytest.approx(0.5, abs=0.01)
    assert curve.probability(64) == pytest.approx(truth[-1], abs=0.01)


def test_where_a_size_separates_failures_from_successes_n50_is_in_the_gap():
    curve = fit_success_curve([10, 20, 40], [0, 0, 15], [15, 15, 15])
    assert curve.n50 == pytest.approx(math.sqrt(20 * 40))
    assert math.isinf(curve.slope) and curve.probability(41) > 0.99
    assert 20 <= curve.low < 20.1 and 39.9 < curve.high <= 40


def test_where_all_succeed_there_is_an_upper_bound_and_no_n50():
    curve = fit_success_curve([10, 20], [15, 15], [15, 15])
    assert curve.n50 is None and curve.probability(10) is None
    assert curve.low == 0 and 9.5 < curve.high <= 10


def test_where_all_fail_there_is_a_lower_bound_and_no_n50():
    curve = fit_success_curve([10, 20], [0, 0], [15, 15])
    assert curve.n50 is None
    assert 20 <= curve.low < 21 and math.isinf(curve.high)


def test_two_seeds_bound_nothing():
    curve = fit_success_curve([10], [2], [2])
    assert (curve.low, curve.high) == (0, math.inf)


def test_where_success_does_not_rise_with_n_there_is_no_n50():
    curve = fit_success_curve([10, 20, 40], [9, 8, 7], [15, 15, 15])
    assert curve.n50 is None
    assert (curve.low, curve.high) == (0, math.inf)
    falling = fit_success_curve([10, 20, 40], [6, 3, 1], [15, 15, 15])
    assert falling.n50 is None and falling.low > 40 and math.isinf(falling.high)


def test_order_of_sizes_does_not_matter():
    curve = fit_success_curve([40, 10, 20], [14, 1, 6], [15, 15, 15])
    assert curve == fit_success_curve([10, 20, 40], [1, 6, 14], [15, 15, 15])
    assert curve.sizes == (10, 20, 40) and curve.successes == (1, 6, 14)


@pytest.mark.parametrize("counts", [([], [], []), ([10], [3], [2]), ([0], [1], [2])])
def test_counts_that_cannot_be_are_refused(counts):
    with pytest.raises(ValueError, match="counts: .*give at least one, with size >= 1"):
        fit_success_curve(*counts)


def test_a_seed_succeeds_if_any_of_its_learning_rates_does():
    whole = {(1e-3, 10): "solved", (1e-3, 20): "exhausted", (1e-4, 10): "exhausted"}
    curve = success_curve([make_probe(20, whole | {(1e-4, 20): "solved"}), make_probe(10, whole)])
    assert (curve.sizes, curve.successes, curve.trials) == ((10, 20), (1, 2), (2, 2))


def test_probes_with_cancelled_runs_are_left_out_and_counted():
    whole = make_probe(10, {(1e-3, 10): "stalled", (1e-3, 20): "diverged"})
    cut = make_probe(20, {(1e-3, 10): "solved", (1e-3, 20): "cancelled"})
    curve = success_curve([cut, whole])
    assert (curve.sizes, curve.left_out) == ((10,), 1)
    assert dataclasses.replace(curve, left_out=0) == fit_success_curve([10], [0], [2])
    assert success_curve([cut]) is None
