"""An interrupted study ends with what an uninterrupted one would have found."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

from ib_bench.results import Store

CONFIG = """
from ib_bench.configs import base

def get_config():
    config = base.get_config()
    config.data.max_length = (3, 4)
    config.data.length_distribution = ("fixed", "uniform")
    config.data.padded_lengths = (4,)
    config.data.format = ("acot",)
    config.model.hidden = (8,)
    config.optim.steps = 400
    config.optim.eval_every = 20
    config.optim.threshold = 0.1
    config.grid.learning_rates = (3e-2, 1e-2)
    config.grid.seeds = (10, 20)
    config.search.tolerance = 0.0
    config.search.failure_cost = 5.0
    config.search.confirm = True
    config.out.checkpoint_minutes = 0.0
    return config.lock()
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "tiny.py"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def undisturbed(config, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("undisturbed")
    assert start(config, workdir).wait(timeout=300) == 0
    return workdir


@pytest.fixture(scope="module")
def undisturbed_in_pairs(config, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("undisturbed_in_pairs")
    assert start(config, workdir, width=2).wait(timeout=300) == 0
    return workdir


def start(config, workdir, width=1):
    command = [sys.executable, "-m", "ib_bench", "run", f"--config={config}"]
    command += [f"--workdir={workdir}", "--config.lanes.devices=2"]
    command += [f"--config.search.width={width}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, **quiet)


def answers(workdir):
    """Everything an answer consists of: verdicts, brackets, N*, solved runs at N*."""
    return {
        cell.cell_key: (
            cell.status,
            cell.nstar,
            cell.largest_failed,
            cell.confirmed,
            [(probe.size, probe.verdict) for probe in cell.probes],
            [probe.solved for probe in cell.probes if probe.size == cell.nstar],
        )
        for cell in Store(workdir).cells()
    }


def finished_runs(workdir):
    """Outcomes of all runs that went to their end, by cell, N, learning rate and seed."""
    runs = {}
    for path in pathlib.Path(workdir).glob("probes/*/*.json"):
        probe = json.loads(path.read_text())
        for run in probe["runs"]:
            if run["outcome"] != "cancelled":
                key = (probe["cell_key"], probe["size"], run["learning_rate"], run["seed"])
                runs[key] = run
    return runs


def assert_same_science(workdir, undisturbed):
    assert answers(workdir) == answers(undisturbed)
    ours, theirs = finished_runs(workdir), finished_runs(undisturbed)
    common = ours.keys() & theirs.keys()
    assert len(common) > 20
    assert {key: ours[key] for key in common} == {key: theirs[key] for key in common}


def kill_until_it_ends(config, workdir, num_kills, width):
    clock = random.Random(0)
    kills = 0
    while kills < num_kills:
        process = start(config, workdir, width)
        try:
            # Starting takes seconds; most kills shall hit training and writing.
            code = process.wait(timeout=clock.uniform(2.0, 7.0))
            assert code == 0  # finished early: take an answer away, so that there is work again
            victims = sorted(workdir.glob("cells/*.json")) + sorted(workdir.glob("probes/*/*"))
            for victim in clock.sample(victims, k=len(victims) // 2):
                victim.unlink()
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    assert start(config, workdir, width).wait(timeout=300) == 0
    assert not list(workdir.glob("set_aside/*"))
    assert not list(workdir.glob("checkpoints/*"))


def test_twenty_kills_at_random_moments_change_nothing(config, undisturbed, tmp_path):
    kill_until_it_ends(config, tmp_path, num_kills=20, width=1)
    assert_same_science(tmp_path, undisturbed)


def test_kills_change_nothing_where_sizes_are_tried_in_pairs(
    config, undisturbed_in_pairs, tmp_path
):
    """Rounds of two sizes, one of them often moot, may be cut in the middle of their records."""
    kill_until_it_ends(config, tmp_path, num_kills=10, width=2)
    assert_same_science(tmp_path, undisturbed_in_pairs)


def test_sigterm_saves_and_exits_with_75_and_the_same_command_goes_on(
    config, undisturbed, tmp_path
):
    process = start(config, tmp_path)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("probes/*/*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == os.EX_TEMPFAIL == 75
    assert list(tmp_path.glob("checkpoints/*"))
    assert start(config, tmp_path).wait(timeout=300) == 0
    assert_same_science(tmp_path, undisturbed)


def test_a_finished_study_ends_at_once_and_rewrites_no_record(config, undisturbed):
    before = {path: path.stat().st_mtime_ns for path in undisturbed.glob("*/**/*.json")}
    assert start(config, undisturbed).wait(timeout=120) == 0
    assert {path: path.stat().st_mtime_ns for path in undisturbed.glob("*/**/*.json")} == before
