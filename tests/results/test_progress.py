"""How far a study is, from files alone."""

import dataclasses

import pytest

from ib_bench import PROTOCOL_VERSION
from ib_bench.results import FailureRecord, Store
from ib_bench.results.progress import (
    SILENT_AFTER,
    WorkerReport,
    announce_study,
    leave,
    read_progress,
    say,
)

NOW = 1e9
WORKER = WorkerReport(
    name="host-1-abc",
    program="lstm-8 acot T=4 V=2",
    device="2 x cpu",
    running=["b"],
    cells_done=1,
    started=NOW - 70,
    said=NOW - 10,
    lanes=2,
    active=2,
    steps=900,
    lane_steps=1000,
    steps_per_second=50.0,
)


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    store.prepare()
    announce_study(store, {key: f"cell {key}" for key in "abcde"})
    store.cell_path("a").parent.mkdir()
    store.cell_path("a").write_text("{}")
    return store


def fail(store, key):
    record = FailureRecord(PROTOCOL_VERSION, key, {}, "KeyError: no", "...", "host", {})
    store.write(record)


def test_cells_are_done_running_failed_or_waiting(store):
    say(store, WORKER)
    fail(store, "c")
    progress = read_progress(store, NOW)
    assert (progress.total, progress.done, progress.running, progress.waiting) == (5, 1, 1, 2)
    assert progress.failed == {"cell c": "KeyError: no"}
    assert progress.workers == [WORKER] and progress.silent == []


def test_rates_are_those_of_the_workers_at_work(store):
    say(store, WORKER)
    say(store, dataclasses.replace(WORKER, name="other", running=["c"], steps=500))
    progress = read_progress(store, NOW)
    assert progress.steps_per_second == 100
    assert progress.busy == pytest.approx(1400 / 2000)
    assert progress.seconds_left == pytest.approx(4 / (2 / 60))


def test_a_worker_without_a_word_for_long_is_taken_to_be_gone(store):
    say(store, WORKER)
    progress = read_progress(store, NOW + SILENT_AFTER)
    assert progress.workers == [] and progress.silent == [WORKER]
    assert progress.running == 0 and progress.waiting == 4
    assert progress.steps_per_second == 0 and progress.busy is None
    assert progress.seconds_left is None


def test_a_worker_that_ends_takes_its_word_back(store):
    say(store, WORKER)
    leave(store, WORKER.name)
    leave(store, WORKER.name)
    assert read_progress(store, NOW).workers == []


def test_a_clock_ahead_of_ours_makes_no_negative_age(store):
    say(store, dataclasses.replace(WORKER, said=NOW + 100, started=NOW + 90))
    progress = read_progress(store, NOW)
    assert progress.workers[0].age(NOW) == 0
    assert progress.seconds_left > 0


def test_a_cell_that_failed_and_runs_again_is_running(store):
    fail(store, "b")
    say(store, WORKER)
    progress = read_progress(store, NOW)
    assert progress.failed == {} and progress.running == 1


def test_the_same_study_is_announced_once_and_two_studies_are_added_up(store, tmp_path):
    announce_study(store, {key: f"cell {key}" for key in "abcde"})
    assert len(list((tmp_path / "studies").glob("*"))) == 1
    announce_study(store, {key: f"cell {key}" for key in "efg"})
    assert read_progress(store, NOW).total == 7


@pytest.mark.parametrize("content", ["", "{", "[]", '{"name": 1}', "\x00"])
def test_a_file_that_is_being_replaced_or_of_another_version_is_passed_over(store, content):
    (store.workdir / "workers").mkdir()
    (store.workdir / "workers" / "broken.json").write_text(content)
    say(store, WORKER)
    assert read_progress(store, NOW).workers == [WORKER]


def test_a_full_disk_does_not_stop_a_worker(store, monkeypatch):
    def full(*unused):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ib_bench.results.progress.write_whole", full)
    say(store, WORKER)
    assert read_progress(store, NOW).workers == []
