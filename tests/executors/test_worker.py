"""A cell that raises is recorded and stops no other."""

import pytest

from ib_bench.executors import worker
from ib_bench.executors.local import run_study
from ib_bench.results import Store
from ib_bench.specs import CellSpec


@pytest.fixture(scope="module")
def study(tiny_study):
    return tiny_study(data__max_length=(3, 4), data__length_distribution=("fixed", "uniform"))


def run(study, workdir):
    store = Store(workdir)
    store.prepare()
    return store, run_study(study, store, lambda chunk: None, lambda: False)


@pytest.fixture
def broken(study, monkeypatch):
    """The third cell of the study raises when its data is made."""
    cell = study.cells[2]
    make_data = CellSpec.make_data

    def raise_for_one(self):
        if self.key == cell.key:
            raise RuntimeError("a table with a hole\nand more")
        return make_data(self)

    monkeypatch.setattr(CellSpec, "make_data", raise_for_one)
    return cell


def test_the_others_of_its_program_are_answered(study, broken, tmp_path):
    assert len(study.groups()) == 1
    store, failed = run(study, tmp_path)
    assert failed == [broken]
    answered = {cell.cell_key for cell in store.cells()}
    assert answered == {cell.key for cell in study.cells} - {broken.key}
    (record,) = store.failures()
    assert record.cell_key == broken.key
    assert record.error == "RuntimeError: a table with a hole"
    assert "raise_for_one" in record.traceback and "and more" in record.traceback
    assert record.environment["commit"] and record.host


def test_the_next_start_tries_it_again_and_takes_the_record_away(
    study, broken, tmp_path, monkeypatch
):
    run(study, tmp_path)
    monkeypatch.undo()
    store, failed = run(study, tmp_path)
    assert failed == [] and store.failures() == []
    assert len(store.cells()) == len(study.cells)


def test_a_failing_disk_stops_the_study_instead(study, tmp_path, monkeypatch):
    def full(self, record):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "write", full)
    with pytest.raises(OSError, match="No space left"):
        run(study, tmp_path)


def test_an_error_is_told_in_one_line():
    assert worker._line(ValueError("first\nsecond")) == "ValueError: first"
    assert worker._line(KeyError()) == "KeyError"
