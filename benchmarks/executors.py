"""What many machines cost: Ray against a plain loop, checkpoints against none, more devices.

    .venv/bin/python -m benchmarks.executors --json=benchmarks/measured/executors.json

A study of 200 tiny cells of one program (random machines of two states, an LSTM of 8), which is
little but overhead, and one whose runs take longer for the devices. Every way takes its turn in
every round; the cluster is a head and two nodes of one core each on this machine. Answers are
compared: all ways give the same.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from absl import app, flags
from rich.console import Console

from benchmarks.cluster import Cluster
from benchmarks.layouts import EXECUTORS
from benchmarks.output import describe_machine, print_rows, write_json

JSON = flags.DEFINE_string("json", None, "a file for the rows")
CELLS = flags.DEFINE_integer("cells", 200, "tiny cells")
ROUNDS = flags.DEFINE_integer("rounds", 3, "turns of every way")
PARTS = flags.DEFINE_multi_enum(
    "part", ["executor", "checkpoint", "devices"], ["executor", "checkpoint", "devices"], "which"
)

TINY = """
from ib_bench.configs import base

def get_config():
    config = base.get_config()
    config.task.name = ("random_machine",)
    config.task.states = (2,)
    config.task.symbols = (2,)
    config.task.seed = tuple(range({cells}))
    config.data.max_length = ({length},)
    config.data.padded_lengths = ({length},)
    config.data.format = ("acot",)
    config.model.hidden = ({hidden},)
    config.optim.steps = {steps}
    config.optim.eval_every = 50
    config.optim.threshold = 0.05
    config.grid.learning_rates = (1e-2, 3e-3)
    config.grid.seeds = (10, 20)
    config.search.tolerance = 0.1
    config.search.failure_cost = 5.0
    return config.lock()
"""
SMALL = {"length": 3, "hidden": 8, "steps": 200}
LONGER = {"cells": 12, "length": 8, "hidden": 64, "steps": 1000}


def answers(workdir: str) -> dict[str, tuple]:
    """N* and bracket of every cell."""
    from ib_bench.results import Store

    cells = Store(workdir).cells()
    return {cell.cell_key: (cell.status, cell.nstar, cell.largest_failed) for cell in cells}


def timed(config: pathlib.Path, *more: str) -> tuple[float, dict, int]:
    """Runs a study from nothing; returns wall seconds, its answers, its useful lane-steps."""
    from ib_bench.results import Store

    with tempfile.TemporaryDirectory() as workdir:
        command = [sys.executable, "-m", "ib_bench", "run", f"--config={config}"]
        started = time.monotonic()
        result = subprocess.run(
            [*command, f"--workdir={workdir}", *more], capture_output=True, text=True
        )
        seconds = time.monotonic() - started
        if result.returncode:
            raise RuntimeError(result.stderr[-2000:])
        steps = sum(cell.lane_steps.useful for cell in Store(workdir).cells())
        return seconds, answers(workdir), steps


def compare(
    ways: dict[str, list[str]], config: pathlib.Path, rounds: int, overhead: bool = True
) -> list[dict]:
    """Measures every way in turn; the first is what the others are compared with."""
    seconds, steps, expected = {name: [] for name in ways}, {}, None
    for _ in range(rounds):
        for name, more in ways.items():
            wall, found, steps[name] = timed(config, *more)
            expected = expected or found
            if found != expected:
                raise RuntimeError(f"{name}: answers differ")
            seconds[name].append(wall)
    first = statistics.median(next(iter(seconds.values())))
    return [
        {
            "name": name,
            "cells": len(expected),
            "seconds": statistics.median(walls),
            "ratio": statistics.median(walls) / first,
            # Of devices that work faster, a cost per cell would say nothing.
            "per_cell": (statistics.median(walls) - first) / len(expected) if overhead else None,
            "steps_per_second": steps[name] / statistics.median(walls),
            "spread": (max(walls) - min(walls)) / statistics.median(walls),
        }
        for name, walls in seconds.items()
    ]


def main(argv: Sequence[str]) -> None:
    del argv
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        tiny, longer = pathlib.Path(folder) / "tiny.py", pathlib.Path(folder) / "longer.py"
        tiny.write_text(TINY.format(cells=CELLS.value, **SMALL))
        longer.write_text(TINY.format(**LONGER))
        if "executor" in PARTS.value:
            with Cluster(2) as cluster:
                os.environ |= cluster.token
                ways = {
                    "local, two devices": ["--config.lanes.devices=2"],
                    "ray, two nodes of one": [
                        "--executor=ray",
                        f"--ray_address={cluster.address}",
                    ],
                }
                rows += compare(ways, tiny, ROUNDS.value)
        if "checkpoint" in PARTS.value:
            ways = {
                f"checkpoint {told}": [f"--config.out.checkpoint_minutes={minutes}"]
                for told, minutes in {
                    "never": 1e6,
                    "every 5 s": 1 / 12,
                    "after every chunk": 0,
                }.items()
            }
            rows += compare(ways, tiny, ROUNDS.value)
        if "devices" in PARTS.value:
            ways = {f"{count} devices": [f"--config.lanes.devices={count}"] for count in (1, 2, 8)}
            rows += compare(ways, longer, ROUNDS.value, overhead=False)
    print_rows(EXECUTORS, rows, Console(width=120))
    if JSON.value:
        write_json(JSON.value, describe_machine(), rows)


if __name__ == "__main__":
    app.run(main)
