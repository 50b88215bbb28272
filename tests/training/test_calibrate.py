"""How many lanes: as many as throughput grows with, tried once."""

import dataclasses

import pytest
from run_operands import operands_of

from ib_bench.training import calibrate
from ib_bench.training.calibrate import best_number, calibrated


def device(saturates_at, fits=10**9):
    """A device on which lanes cost nothing up to a number, and then all they can cost."""
    tried = []

    def rate_of(lanes):
        tried.append(lanes)
        return 100.0 * min(lanes, saturates_at) if lanes <= fits else None

    return rate_of, tried


@pytest.mark.parametrize(
    ("saturates_at", "fits", "most", "best"),
    [(64, 10**9, 1000, 64), (1, 10**9, 1000, 1), (70, 10**9, 1000, 64), (80, 10**9, 1000, 256)],
)
def test_more_lanes_until_throughput_stops_growing(saturates_at, fits, most, best):
    rate_of, tried = device(saturates_at, fits)
    assert best_number(rate_of, most) == best
    assert tried[-1] == min(most, 4 * best) and len(tried) == len(set(tried))


def test_no_more_lanes_than_fit_or_than_are_wanted():
    assert best_number(device(10**6, fits=100)[0], 1000) == 64
    rate_of, tried = device(10**6)
    assert best_number(rate_of, 100) == 100
    assert tried == [1, 4, 16, 64, 100]


@pytest.fixture
def trials(monkeypatch):
    """Counts trials, on a device that 16 lanes saturate."""
    rate_of, tried = device(16)
    monkeypatch.setattr(calibrate, "_rate", lambda program, spec, lanes, example: rate_of(lanes))
    return tried


def test_the_number_is_tried_once_and_kept_beside_the_programs(tiny_study, tmp_path, trials):
    study = tiny_study()
    (cell,) = study.cells
    spec = dataclasses.replace(study.lanes, strategy="vmap", compile_cache=str(tmp_path / "new"))
    assert calibrated(cell.program, spec, 2000, operands_of(cell)).per_device == 16
    assert trials == [1, 4, 16, 64]
    assert calibrated(cell.program, spec, 2000, operands_of(cell)).per_device == 16
    assert calibrated(cell.program, spec, 10, operands_of(cell)).per_device == 5
    assert trials == [1, 4, 16, 64]
    other = dataclasses.replace(cell.program, padded_length=5)
    assert calibrated(other, spec, 2000, operands_of(cell)).per_device == 16
    assert len(trials) == 8


def test_a_number_cut_by_few_runs_is_tried_again_once_there_are_more(tiny_study, tmp_path, trials):
    study = tiny_study()
    (cell,) = study.cells
    spec = dataclasses.replace(study.lanes, strategy="vmap", compile_cache=str(tmp_path))
    assert calibrated(cell.program, spec, 8, operands_of(cell)).per_device == 4
    assert calibrated(cell.program, spec, 64, operands_of(cell)).per_device == 16
    assert trials == [1, 4, 1, 4, 16, 32]


def test_a_number_that_was_set_stays_and_map_needs_none(tiny_study, trials):
    study = tiny_study()
    (cell,) = study.cells
    for lanes in ({"strategy": "vmap", "per_device": 3}, {"strategy": "map"}):
        spec = dataclasses.replace(study.lanes, **lanes)
        assert calibrated(cell.program, spec, 64, operands_of(cell)) == spec
    assert not trials


def test_a_trial_trains_for_real(tiny_study):
    study = tiny_study()
    (cell,) = study.cells
    spec = dataclasses.replace(
        study.lanes, strategy="vmap", compile_cache="", memory_fraction=0.8, devices=1
    )
    found = calibrated(cell.program, spec, 2, operands_of(cell))
    assert found.per_device in (1, 2)
