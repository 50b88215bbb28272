"""Checkpoints have owners: what a process writes, no other overwrites, and everyone may read."""

import json
import logging

import jax
import numpy as np
import pytest

from ib_bench.training.checkpoint import Checkpoints

LANES = {"weights": np.arange(6.0, dtype=np.float32).reshape(2, 3)}
SHAPES = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), LANES)


def state(*cells):
    return {"under_way": [{"cell": cell} for cell in cells], "ended": [], "costs": []}


def names(folder):
    return {path.name for path in folder.glob("*")}


def test_what_was_saved_is_loaded(tmp_path):
    Checkpoints(tmp_path, ["a", "b"]).save(LANES, state("a", "b"))
    reader = Checkpoints(tmp_path, ["b"])
    (saved,) = reader.load()
    assert saved.scheduler == state("a", "b")
    np.testing.assert_array_equal(reader.lanes(saved, SHAPES)["weights"], LANES["weights"])


def test_a_save_replaces_the_one_before(tmp_path):
    checkpoints = Checkpoints(tmp_path, ["a"])
    checkpoints.save(LANES, state("a"))
    checkpoints.save(LANES, state("a", "a"))
    (owner,) = tmp_path.glob("*")
    assert names(owner) == {"cells.json", "2"}
    assert [saved.scheduler for saved in Checkpoints(tmp_path, ["a"]).load()] == [state("a", "a")]


def test_owners_do_not_touch_each_other_while_their_cells_differ(tmp_path):
    first, second = Checkpoints(tmp_path, ["a", "b"]), Checkpoints(tmp_path, ["b", "c"])
    first.save(LANES, state("a"))
    second.save(LANES, state("c"))
    assert len(names(tmp_path)) == 2
    found = Checkpoints(tmp_path, ["a", "b", "c"]).load()
    assert {json.dumps(saved.scheduler) for saved in found} == {
        json.dumps(state("a")),
        json.dumps(state("c")),
    }
    assert [saved.scheduler for saved in Checkpoints(tmp_path, ["a"]).load()] == [state("a")]
    assert Checkpoints(tmp_path, ["d"]).load() == []


def test_the_newest_comes_first(tmp_path):
    first, second = Checkpoints(tmp_path, ["a", "x"]), Checkpoints(tmp_path, ["a", "y"])
    second.save(LANES, state("a"))
    first.save(LANES, state("a"))
    first.save(LANES, state("x"))
    found = Checkpoints(tmp_path, ["a"]).load()
    assert [saved.scheduler for saved in found] == [state("x"), state("a")]


def test_who_goes_on_takes_over_what_is_wholly_his(tmp_path):
    Checkpoints(tmp_path, ["a"]).save(LANES, state("a"))
    Checkpoints(tmp_path, ["z"]).save(LANES, state("z"))
    (tmp_path / "killed").mkdir()  # a process that died before its first checkpoint was whole
    (tmp_path / "killed" / "1.orbax-checkpoint-tmp").mkdir()
    Checkpoints(tmp_path, ["a", "b"]).save(LANES, state("b"))
    left = [json.loads((path / "cells.json").read_text()) for path in tmp_path.glob("*")]
    assert sorted(left) == [["a", "b"], ["z"]]


def test_at_the_end_nothing_is_left_that_nobody_needs(tmp_path):
    folder = tmp_path / "program"
    checkpoints = Checkpoints(folder, ["a"])
    checkpoints.save(LANES, state("a"))
    Checkpoints(folder, ["b"]).save(LANES, state("b"))
    checkpoints.remove(is_done=lambda cell: False)
    assert [saved.scheduler for saved in Checkpoints(folder, ["b"]).load()] == [state("b")]
    checkpoints.remove(is_done=lambda cell: True)
    assert not folder.exists()


def test_a_folder_that_vanished_is_made_again(tmp_path):
    checkpoints = Checkpoints(tmp_path / "program", ["a"])
    checkpoints.save(LANES, state("a"))
    Checkpoints(tmp_path / "program", ["a"]).remove(lambda cell: True)  # a twin that was faster
    checkpoints.save(LANES, state("a"))
    assert len(Checkpoints(tmp_path / "program", ["a"]).load()) == 1


@pytest.mark.parametrize("part", ["lanes", "scheduler"])
def test_one_that_cannot_be_read_is_named_and_left_out(tmp_path, caplog, part, monkeypatch):
    monkeypatch.setattr(logging.getLogger("ib_bench"), "propagate", True)
    Checkpoints(tmp_path, ["a"]).save(LANES, state("a"))
    for path in tmp_path.glob(f"*/1/{part}/**/*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:2])
    reader = Checkpoints(tmp_path, ["a"])
    saved = reader.load()
    if part == "scheduler":
        assert saved == []
    else:
        assert reader.lanes(saved[0], SHAPES) is None
    assert "cannot be read" in caplog.text and "start again" in caplog.text


def test_a_storage_that_takes_none_costs_a_warning_and_the_next_try_works(
    tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(logging.getLogger("ib_bench"), "propagate", True)
    folder = tmp_path / "program"
    folder.write_text("in the way")
    checkpoints = Checkpoints(folder, ["a"])
    checkpoints.save(LANES, state("a"))
    assert "cannot be written" in caplog.text
    folder.unlink()
    checkpoints.save(LANES, state("a"))
    assert len(Checkpoints(folder, ["a"]).load()) == 1
