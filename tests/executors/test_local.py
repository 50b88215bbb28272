"""A study's answers depend on the study alone, not on how it was run."""

import dataclasses
import json
import pathlib

import pytest

from ib_bench.executors.local import run_study
from ib_bench.results import Store
from ib_bench.search import scheduler
from ib_bench.search.scheduler import Preempted


def run(study, workdir, should_stop=lambda: False):
    chunks = []
    store = Store(workdir)
    store.prepare()
    run_study(study, store, chunks.append, should_stop)
    return store, chunks


def science(store):
    """Verdicts, brackets and N* of all cells."""
    return {
        cell.cell_key: (
            cell.status,
            cell.nstar,
            cell.largest_failed,
            [(p.size, p.verdict) for p in cell.probes],
        )
        for cell in store.cells()
    }


@pytest.fixture(scope="module")
def study(tiny_study):
    return tiny_study(
        data__max_length=(3, 4), data__length_distribution=("fixed", "uniform"), search__width=2
    )


@pytest.fixture(scope="module")
def reference(study, tmp_path_factory):
    return run(study, tmp_path_factory.mktemp("reference"))


@pytest.mark.parametrize(("devices", "per_device"), [(1, 5), (2, 8), (1, 2)])
def test_the_answer_is_the_same_for_any_number_of_lanes_and_devices(
    study, reference, tmp_path, devices, per_device
):
    lanes = dataclasses.replace(study.lanes, devices=devices, per_device=per_device)
    store, _ = run(dataclasses.replace(study, lanes=lanes), tmp_path)
    assert science(store) == science(reference[0])


def test_every_cell_has_an_answer_with_all_its_probes_and_runs(study, reference):
    store, _ = reference
    cells = store.cells()
    assert len(cells) == len(study.cells) == 4
    for cell in cells:
        probes = store.probes(cell.cell_key)
        assert [probe.size for probe in cell.probes] == [probe.size for probe in probes]
        for probe in probes:
            grid = {(run.learning_rate, run.seed) for run in probe.runs}
            assert grid == {(rate, seed) for rate in (3e-2, 1e-2) for seed in (10, 20)}
            assert probe.environment["jax"] and probe.environment["commit"]
            assert probe.lane_steps.total >= probe.lane_steps.useful + probe.lane_steps.cancelled


def test_lane_steps_of_records_are_those_that_were_trained(reference):
    store, chunks = reference
    trained = sum(chunk.steps for chunk in chunks)
    paid = sum(chunk.steps * chunk.capacity / chunk.active for chunk in chunks)
    costs = [cell.lane_steps for cell in store.cells()]
    assert sum(cost.useful + cost.cancelled for cost in costs) == trained
    assert sum(cost.total for cost in costs) == pytest.approx(paid, abs=len(costs) * 50)


def test_flags_reach_the_record_unchanged(study, reference):
    for cell in reference[0].cells():
        spec = json.loads(json.dumps(cell.cell))
        assert spec["optim"]["steps"] == 120
        assert spec["model"] == {"name": "lstm", "hidden": 8}
        assert spec["grid"] == {"learning_rates": [3e-2, 1e-2], "seeds": [10, 20]}
        assert cell.search["width"] == 2


def test_a_study_that_is_stopped_again_and_again_comes_to_the_same_answer(
    study, reference, tmp_path
):
    for _ in range(100):
        calls = iter([False] * 4 + [True])
        try:
            store, _ = run(study, tmp_path, lambda calls=calls: next(calls, True))
            break
        except Preempted:
            continue
    else:
        pytest.fail("the study does not get on")
    assert science(store) == science(reference[0])


def test_a_checkpoint_that_cannot_be_read_costs_work_but_nothing_else(
    study, reference, tmp_path, caplog
):
    calls = iter([False, False, True])
    with pytest.raises(Preempted):
        run(study, tmp_path, lambda: next(calls))
    files = [path for path in tmp_path.glob("checkpoints/**/*") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:3])
    store, _ = run(study, tmp_path)
    assert science(store) == science(reference[0])


def test_a_corrupt_record_is_set_aside_and_made_again(study, reference, tmp_path):
    store, _ = run(study, tmp_path)
    expected = science(store)
    cell = store.cells()[0]
    store.cell_path(cell.cell_key).write_text("{")
    store.probe_path(cell.cell_key, cell.probes[0].size).write_text('{"protocol": 1}')
    store, _ = run(study, tmp_path)
    assert science(store) == expected
    assert len(list((tmp_path / "set_aside").iterdir())) == 2


def test_a_diverged_run_ends_as_diverged_and_the_probe_fails(tiny_study, tmp_path):
    study = tiny_study(grid__learning_rates=(1e38,), grid__seeds=(10, 20))
    store, chunks = run(study, tmp_path)
    (cell,) = store.cells()
    assert cell.status == "not_learned"
    (probe,) = store.probes(cell.cell_key)
    assert {run.outcome for run in probe.runs} == {"diverged"}
    assert {run.steps for run in probe.runs} == {20}
    assert len(chunks) == 1


def test_confirming_completes_every_run_at_nstar(study, tmp_path):
    search = dataclasses.replace(study.search, confirm=True)
    store, _ = run(dataclasses.replace(study, search=search), tmp_path)
    for cell in store.cells():
        assert cell.confirmed
        at_nstar = store.probe(cell.cell_key, cell.nstar)
        assert "cancelled" not in {run.outcome for run in at_nstar.runs}


def test_cells_of_one_program_are_compiled_once(study, tmp_path, monkeypatch):
    made = []
    build = scheduler.Lanes
    monkeypatch.setattr(scheduler, "Lanes", lambda *args: made.append(1) or build(*args))
    run(study, tmp_path)
    assert len(study.cells) == 4
    assert len(made) == 1


def test_a_run_that_has_fitted_its_data_ends_as_stalled(tiny_study, tmp_path):
    """One sequence is soon known by heart and teaches nothing about the others."""
    cell = {"data__format": ("outcome",), "data__max_length": (4,), "optim__threshold": 0.05}
    cell |= {"optim__steps": 600, "search__policy": "grid", "search__sizes": (1,)}
    patient, hasty = tiny_study(**cell), tiny_study(**cell, optim__stall=60)
    (full,) = run(patient, tmp_path / "patient")[0].probes(patient.cells[0].key)
    (cut,) = run(hasty, tmp_path / "hasty")[0].probes(hasty.cells[0].key)
    assert {run.outcome for run in full.runs} == {"exhausted"}
    assert {run.outcome for run in cut.runs} == {"stalled"}
    assert full.verdict == cut.verdict == "failed"
    for run_of_full, run_of_cut in zip(full.runs, cut.runs, strict=True):
        assert run_of_cut.steps - run_of_cut.best_step == 60
        assert run_of_cut.train_loss < 0.05
        assert run_of_cut.steps < run_of_full.steps == 600


def num_maps():
    return len(pathlib.Path("/proc/self/maps").read_text().splitlines())


def test_a_process_does_not_fill_up_with_programs(tiny_study, tmp_path):
    """Linux gives a process 65,530 memory maps, and a program of a CPU takes hundreds."""
    counts = []
    for hidden in range(4, 10):
        run(tiny_study(model__hidden=(hidden,)), tmp_path)
        counts.append(num_maps())
    assert max(counts[1:]) - counts[0] < 500, counts
