"""A small study, started from the command line as a process of its own, and what it found."""

import json
import os
import pathlib
import subprocess
import sys

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


def start(config, workdir, *flags, environment=None, log=subprocess.DEVNULL):
    """Starts a study on two CPU devices."""
    command = [sys.executable, "-m", "ib_bench", "run", f"--config={config}"]
    command += [f"--workdir={workdir}", "--config.lanes.devices=2", *flags]
    environment = os.environ | (environment or {})
    return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


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
