"""Training steps per second, summed over lanes, against PyTorch and against plain jit(vmap).

    .venv/bin/pip install -e '.[bench]'
    .venv/bin/python -m benchmarks.throughput --json=throughput.json

All contestants of a row take turns in one run, each alone on the machine, in processes of their
own; medians over the rounds count, and ratios, because absolute times depend on what else a machine
does. PyTorch is the better of one process with all threads and one process per core.

    .venv/bin/python -m benchmarks.throughput --platform=gpu --peak_tflops=67

measures one device of a GPU or TPU instead: throughput and MFU against 1 to 1,024 lanes.
"""

import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from absl import app, flags
from rich.console import Console

from benchmarks import lanes
from benchmarks.layouts import LANES, THROUGHPUT
from benchmarks.output import describe_machine, print_rows, write_json
from benchmarks.rows import ROWS, Row

JSON = flags.DEFINE_string("json", None, "a file for the rows")
ROUNDS = flags.DEFINE_integer("rounds", 5, "turns of each contestant")
SECONDS = flags.DEFINE_float("seconds", 1.5, "of one turn, at least")
PLATFORM = flags.DEFINE_enum("platform", "cpu", ["cpu", "gpu", "tpu"], "what to measure on")
PEAK = flags.DEFINE_float("peak_tflops", None, "gpu, tpu: peak of one device at float32, for MFU")
BUDGET = flags.DEFINE_float("budget", 240.0, "gpu, tpu: seconds; what is left is not measured")
ONLY = flags.DEFINE_string("only", "", "only rows whose name matches this regular expression")

CORES = len(os.sched_getaffinity(0))


class Contestant:
    """One or several worker processes that train at the same time."""

    def __init__(self, *commands: Sequence[str]):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"}
        self._workers = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.worker", *command], env=environment, **pipes
            )
            for command in commands
        ]
        self.rates: list[float] = []

    def take_turn(self, seconds: float) -> None:
        for worker in self._workers:
            print(seconds, file=worker.stdin, flush=True)
        answers = [worker.stdout.readline() for worker in self._workers]
        if not all(answers):
            raise RuntimeError(f"a worker ended: {self._workers[0].args}")
        self.rates.append(sum(map(float, answers)))

    def close(self) -> None:
        for worker in self._workers:
            worker.stdin.close()
            worker.wait()

    @property
    def median(self) -> float:
        return statistics.median(self.rates)

    @property
    def spread(self) -> float:
        """(largest - smallest) / median."""
        return (max(self.rates) - min(self.rates)) / self.median


def measure(row: Row, rounds: int, seconds: float, with_pytorch: bool) -> dict[str, Any]:
    """Measures one row; rates are in training steps per second."""
    spec = json.dumps(dataclasses.asdict(row))
    contestants = {"ours": Contestant(["ours", spec]), "vmap": Contestant(["vmap", spec])}
    contestants["peak"] = Contestant(["peak"])
    if with_pytorch:
        contestants["threads"] = Contestant(["pytorch", spec, str(CORES)])
        contestants["processes"] = Contestant(*[["pytorch", spec, "1"]] * CORES)
    try:
        for contestant in contestants.values():  # the first turn waits for compilation
            contestant.take_turn(0.2)
            contestant.rates.clear()
        for _ in range(rounds):
            for contestant in contestants.values():
                contestant.take_turn(seconds)
    finally:
        for contestant in contestants.values():
            contestant.close()
    ours, peak = contestants["ours"], contestants["peak"].median
    pytorch = [contestants[name] for name in ("threads", "processes") if name in contestants]
    best = max(pytorch, key=lambda contestant: contestant.median, default=None)
    gflops = ours.median * row.flops / 1e9
    return {
        "name": row.name,
        "ours": ours.median,
        "pytorch": best.median if best else None,
        "vmap": contestants["vmap"].median,
        "ratio": ours.median / best.median if best else None,
        "ratio_vmap": ours.median / contestants["vmap"].median,
        "gflops": gflops,
        "share_of_peak": gflops / peak,
        "peak": peak,
        "spread": max(contestant.spread for contestant in (ours, *pytorch)),
        "pytorch_form": ("threads" if best is pytorch[0] else "processes") if best else None,
    }


def main(argv: Sequence[str]) -> None:
    del argv
    console = Console(width=150)
    if PLATFORM.value == "cpu":
        _against_pytorch(console)
    else:
        _against_lanes(console)


def _against_pytorch(console: Console) -> None:
    with_pytorch = importlib.util.find_spec("torch") is not None
    torch = importlib.metadata.version("torch") if with_pytorch else None
    if not with_pytorch:
        console.print(
            "PyTorch is not installed (pip install -e '.\\[bench]'): measuring without it"
        )
    rows = []
    for row in ROWS:
        if re.search(ONLY.value, row.name):
            console.print(f"measuring {row.name}", highlight=False)
            rows.append(measure(row, ROUNDS.value, SECONDS.value, with_pytorch))
            if JSON.value:  # what is measured stays, whatever comes
                peak = statistics.median(row["peak"] for row in rows)
                write_json(JSON.value, describe_machine(torch=torch, peak=peak), rows)
    print_rows(THROUGHPUT, rows, console)


def _against_lanes(console: Console) -> None:
    from ib_bench.training.devices import keep_compiled, use_every_core

    use_every_core(1)
    keep_compiled("auto")
    import jax

    device = jax.devices()[0]
    if device.platform != PLATFORM.value:
        sys.exit(
            f"--platform={PLATFORM.value}: JAX finds only a {device.platform} here; install its "
            f"build for the {PLATFORM.value} (pip install -U 'jax[cuda12]' or 'jax[tpu]')"
        )
    chosen = tuple(row for row in lanes.ROWS if re.search(ONLY.value, row.name))
    rows = []
    for result in lanes.measure_rows(chosen, SECONDS.value, BUDGET.value, PEAK.value):
        console.print(f"{result['name']}: {result['lanes']} lanes", highlight=False)
        rows.append(result)
        if JSON.value:
            write_json(JSON.value, describe_machine(device=device.device_kind), rows)
    print_rows(LANES, rows, console)


if __name__ == "__main__":
    app.run(main)
