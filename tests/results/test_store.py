"""Files of records: whole or absent; what cannot be used is set aside, never deleted."""

import dataclasses
import json
import logging
import os

import pytest

from ib_bench import PROTOCOL_VERSION
from ib_bench.results import (
    CellRecord,
    LaneSteps,
    ProbeRecord,
    ProbeSummary,
    RunRecord,
    Seconds,
    Store,
)
from ib_bench.results.record import to_json


def make_probe(cell_key="cell_a", size=10):
    return ProbeRecord(
        protocol=PROTOCOL_VERSION,
        cell_key=cell_key,
        cell={"task": "modular_addition(2)"},
        size=size,
        verdict="failed",
        round=[size],
        runs=[RunRecord(1e-3, 10, "exhausted", 100, 0.5, 100, 0.5, 0.5)],
        num_validation=52,
        parameters=386,
        lane_steps=LaneSteps(100, 0, 100),
        seconds=Seconds(1.0, 2.0),
        environment={},
    )


def make_cell(cell_key="cell_a"):
    return CellRecord(
        protocol=PROTOCOL_VERSION,
        cell_key=cell_key,
        cell={"task": "modular_addition(2)"},
        search={},
        status="learned",
        nstar=12,
        largest_failed=10,
        max_size=52,
        limited_by="universe",
        confirmed=False,
        probes=[ProbeSummary(12, "learned", 1, 1)],
        contradictions=[],
        chance=[0.5],
        num_validation=52,
        parameters=386,
        lane_steps=LaneSteps(100, 0, 100),
        seconds=Seconds(1.0, 2.0),
        environment={},
    )


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "study")
    store.prepare()
    return store


@pytest.fixture
def warnings(caplog, monkeypatch):
    """Warnings of the package, also after a command has taken its logger over."""
    monkeypatch.setattr(logging.getLogger("ib_bench"), "propagate", True)
    caplog.set_level(logging.WARNING, logger="ib_bench")
    return lambda: [record.getMessage() for record in caplog.records]


def files_of(store):
    return sorted(path for path in os_walk(store.workdir) if os.path.isfile(path))


def os_walk(root):
    for folder, _, names in os.walk(root):
        yield from (os.path.join(folder, name) for name in names)


def test_what_was_written_is_read(store):
    probes = [make_probe(size=size) for size in (200, 9, 10)]
    cells = [make_cell("cell_b"), make_cell("cell_a")]
    for record in (*probes, *cells):
        store.write(record)
    assert store.probe("cell_a", 9) == probes[1]
    assert [probe.size for probe in store.probes("cell_a")] == [9, 10, 200]
    assert store.cell("cell_b") == cells[0]
    assert store.cells() == [cells[1], cells[0]]


def test_what_was_never_written_is_absent_and_no_file_is_made(store, warnings):
    assert store.probe("cell_a", 9) is None
    assert store.cell("cell_a") is None
    assert store.cells() == store.probes("cell_a") == []
    assert files_of(store) == [] and warnings() == []


def test_reading_a_workdir_that_does_not_exist_makes_nothing(tmp_path):
    store = Store(tmp_path / "absent")
    assert store.cells() == [] and store.cell("cell_a") is None
    assert not (tmp_path / "absent").exists()


def test_a_later_record_takes_the_place_of_an_earlier(store):
    store.write(make_probe())
    later = dataclasses.replace(make_probe(), parameters=1)
    store.write(later)
    assert store.probe("cell_a", 10) == later
    assert len(files_of(store)) == 1


# --- files that cannot be used ------------------------------------------------------------------

GOOD = to_json(make_probe())
UNUSABLE = {
    "empty": b"",
    "truncated": GOOD.encode()[: len(GOOD) // 2],
    "no text": b"\xff\xfe\x00" + GOOD.encode(),
    "no object": b"[1, 2]",
    "zeros": bytes(512),
    "other protocol": to_json(
        dataclasses.replace(make_probe(), protocol=PROTOCOL_VERSION + 1)
    ).encode(),
    "other cell": to_json(make_probe("cell_b")).encode(),
    "other size": to_json(make_probe(size=11)).encode(),
    "other kind": to_json(make_cell()).encode(),
    "not finite": GOOD.replace('"compile": 1.0', '"compile": NaN').encode(),
}


@pytest.mark.parametrize("content", UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_probe_is_set_aside_with_one_warning(store, warnings, content):
    for size in (9, 10, 11):
        store.write(make_probe(size=size))
    good = {path: open(path, "rb").read() for path in files_of(store) if "10.json" not in path}
    assert len(good) == 2
    path = store.probe_path("cell_a", 10)
    path.write_bytes(content)

    assert store.probe("cell_a", 10) is None

    assert not path.exists()
    (aside,) = (store.workdir / "set_aside").iterdir()
    assert aside.read_bytes() == content
    (warning,) = warnings()
    assert str(path) in warning and str(aside) in warning and "\n" not in warning
    assert {path: open(path, "rb").read() for path in good} == good
    assert [probe.size for probe in store.probes("cell_a")] == [9, 11]
    assert store.probe("cell_a", 10) is None
    assert len(warnings()) == 1

    store.write(make_probe())
    assert store.probe("cell_a", 10) == make_probe()


def test_an_unusable_cell_is_set_aside_and_the_others_are_read(store, warnings):
    for key in ("cell_a", "cell_b", "cell_c"):
        store.write(make_cell(key))
    content = store.cell_path("cell_a").read_text()
    store.cell_path("cell_b").write_text(content)
    assert [cell.cell_key for cell in store.cells()] == ["cell_a", "cell_c"]
    (aside,) = (store.workdir / "set_aside").iterdir()
    assert aside.read_text() == content
    (warning,) = warnings()
    assert str(store.cell_path("cell_b")) in warning
    assert store.cell_path("cell_a").read_text() == content


def test_files_set_aside_never_overwrite_each_other(store):
    contents = set()
    for turn in range(5):
        contents.add(f"broken {turn}")
        store.write(make_probe())
        store.probe_path("cell_a", 10).write_text(f"broken {turn}")
        assert store.probe("cell_a", 10) is None
    aside = list((store.workdir / "set_aside").iterdir())
    assert {path.read_text() for path in aside} == contents


def test_an_unusable_file_that_cannot_be_moved_stays_and_counts_as_absent(store, warnings):
    store.write(make_probe())
    path = store.probe_path("cell_a", 10)
    path.write_text("broken")
    (store.workdir / "set_aside").write_text("a file where the folder should be")
    assert store.probe("cell_a", 10) is None
    assert path.read_text() == "broken"
    (warning,) = warnings()
    assert str(path) in warning and "left where it is" in warning


# --- writing ------------------------------------------------------------------------------------


def test_writing_leaves_nothing_but_the_record(store):
    store.write(make_probe())
    store.write(make_cell())
    assert files_of(store) == sorted(
        map(str, [store.probe_path("cell_a", 10), store.cell_path("cell_a")])
    )


@pytest.mark.parametrize("failing", ["replace", "fsync"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_record_and_no_other_file(
    store, monkeypatch, failing, error
):
    store.write(make_probe())

    def fail(*unused):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        for size in (10, 11):
            with pytest.raises(type(error)):
                store.write(dataclasses.replace(make_probe(size=size), parameters=1))
    assert store.probe("cell_a", 10) == make_probe()
    assert files_of(store) == [str(store.probe_path("cell_a", 10))]


def test_a_record_is_never_seen_half_written(store, monkeypatch):
    """Whenever the file is moved into place, what is moved is complete."""
    moved = []
    replace = os.replace

    def remember(source, target):
        assert not os.path.exists(target)
        moved.append(json.loads(open(source).read()))
        replace(source, target)

    monkeypatch.setattr(os, "replace", remember)
    store.write(make_probe())
    assert moved == [json.loads(GOOD)]


def test_the_temporary_file_of_a_killed_write_is_no_record(store, warnings):
    store.write(make_probe())
    store.write(make_cell())
    for path in (store.probe_path("cell_a", 10), store.cell_path("cell_a")):
        (path.parent / f".{path.name}.0123abcd").write_text('{"proto')
    assert [probe.size for probe in store.probes("cell_a")] == [10]
    assert len(store.cells()) == 1
    assert warnings() == []


# --- the workdir --------------------------------------------------------------------------------


def test_prepare_makes_the_workdir_and_leaves_no_file(tmp_path):
    store = Store(tmp_path / "a" / "b")
    store.prepare()
    store.prepare()
    assert store.workdir.is_dir() and files_of(store) == []


@pytest.mark.parametrize("below", ["", "study", "study/deeper"])
def test_a_workdir_that_cannot_be_is_named(tmp_path, below):
    (tmp_path / "file").write_text("mine")
    workdir = tmp_path / "file" / below
    with pytest.raises(ValueError) as caught:
        Store(workdir).prepare()
    message = str(caught.value)
    assert message.startswith("workdir: ") and repr(str(workdir)) in message
    assert "--workdir" in message and "\n" not in message
    assert (tmp_path / "file").read_text() == "mine"


def test_a_workdir_that_loses_what_is_written_is_named(tmp_path, monkeypatch):
    store = Store(tmp_path)
    monkeypatch.setattr(type(store.workdir), "read_text", lambda self: "")
    with pytest.raises(ValueError, match="reads back something else"):
        store.prepare()
