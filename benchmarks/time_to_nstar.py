"""Wall time to the N* of one cell: ib_bench against a straightforward PyTorch loop.

    .venv/bin/pip install -e '.[bench]'
    .venv/bin/python -m benchmarks.time_to_nstar --json=time_to_nstar.json

The cell: parity, LSTM 64, outcome, uniform lengths; three learning rates, five seeds, the same
data, budget, tolerance and stopping rules on both sides. The loop follows the paper's search, one
run after the other, and leaves a size as soon as one run has solved it. ib_bench starts with an
empty workdir and an empty compile cache, so its time holds every compilation.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from absl import app, flags
from rich.console import Console
from rich.table import Table

JSON = flags.DEFINE_string("json", None, "a file for the rows")
STEPS = flags.DEFINE_integer("steps", 3_000, "budget of a run")
LENGTHS = flags.DEFINE_multi_integer("length", [5, 10], "L")
PYTORCH = flags.DEFINE_bool("pytorch", True, "measure the PyTorch loop too; it takes a while")

HIDDEN = 64
BATCH_SIZE = 64
EVAL_EVERY = 250
THRESHOLD = 1e-4
TOLERANCE = 0.05
LEARNING_RATES = (3e-3, 1e-3, 3e-4)
SEEDS = (10, 20, 30, 40, 50)


def time_ours(length: int, policy: str) -> dict[str, Any]:
    """Runs `ib_bench run` in a process of its own; returns its time, steps and answer."""
    from ib_bench.configs import base

    from ib_bench.results import Store

    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "data.max_length": length,
            "model.hidden": HIDDEN,
            "optim.steps": STEPS.value,
            "optim.eval_every": EVAL_EVERY,
            "optim.threshold": THRESHOLD,
            "grid.learning_rates": LEARNING_RATES,
            "grid.seeds": SEEDS,
            "search.tolerance": TOLERANCE,
            "search.policy": policy,
            "lanes.compile_cache": "",
        }
        command = [sys.executable, "-m", "ib_bench", "run", f"--config={base.__file__}"]
        command += [f"--workdir={folder}"]
        command += [f"--config.{key}={value}" for key, value in settings.items()]
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = time.perf_counter() - started
        (cell,) = Store(folder).cells()
    failed = sum(probe.verdict == "failed" for probe in cell.probes)
    return {
        "seconds": seconds,
        "steps": cell.lane_steps.useful + cell.lane_steps.cancelled,
        "nstar": cell.nstar,
        "largest_failed": cell.largest_failed,
        "probes": len(cell.probes),
        "failed": failed,
    }


def time_pytorch(length: int) -> dict[str, Any]:
    """Searches for N* as the paper does, in PyTorch, one run after the other."""
    import torch

    from ib_bench.data import make_split
    from ib_bench.search.policy import Knowledge, propose
    from ib_bench.specs import SearchSpec

    split = make_split(2, length, "uniform", "uniform")
    search = SearchSpec("paper", 16_000_000, TOLERANCE, 1, 100, 50.0, (), False)
    known = Knowledge(min(split.num_train, STEPS.value * BATCH_SIZE))
    torch.set_num_threads(1)  # quicker than two here: the matrices are small
    started, total = time.perf_counter(), 0
    while sizes := propose(known, search):
        (size,) = sizes
        solved = False
        for learning_rate in LEARNING_RATES:
            for seed in SEEDS:
                if not solved:
                    solved, steps = train_pytorch(length, size, learning_rate, seed)
                    total += steps
        if solved:
            known = known._replace(learned=(*known.learned, size))
        else:
            known = known._replace(failed=(*known.failed, size))
    return {
        "seconds": time.perf_counter() - started,
        "steps": total,
        "nstar": known.high,
        "largest_failed": known.low,
        "probes": known.num_probes,
        "failed": len(known.failed),
    }


def train_pytorch(length: int, size: int, learning_rate: float, seed: int) -> tuple[bool, int]:
    """Trains one run; returns whether it was solved, and its steps."""
    import torch
    from torch.nn import functional as F  # noqa: N812 - its usual name

    from benchmarks.pytorch_models import LSTM
    from benchmarks.rows import Row
    from ib_bench.data import make_arrays
    from ib_bench.tasks import make_task

    task = make_task("modular_addition(2)")

    def tensors(split, num_samples):
        arrays = make_arrays(task, length, num_samples, split=split, seed=seed)
        ends = torch.tensor(arrays.lengths - 1, dtype=torch.long)
        rows = torch.arange(len(ends))
        targets = torch.tensor(arrays.targets, dtype=torch.long)[rows, ends]
        return torch.tensor(arrays.inputs, dtype=torch.long), ends, targets

    train, validation = tensors("train", size), tensors("validation", None)
    torch.manual_seed(seed)
    model = LSTM(Row("lstm", HIDDEN, length))
    adam = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)

    def loss_of(batch):
        inputs, ends, targets = batch
        logits = model(inputs)[torch.arange(len(ends)), ends]
        return F.cross_entropy(logits[:, :2], targets)

    order, place = torch.randperm(size), 0
    for step in range(1, STEPS.value + 1):
        chosen = order[place : place + BATCH_SIZE]
        place += BATCH_SIZE
        if place >= size:
            order, place = torch.randperm(size), 0
        loss = loss_of([part[chosen] for part in train])
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % EVAL_EVERY == 0:
            with torch.no_grad():
                if loss_of(validation) < THRESHOLD:
                    return True, step
    return False, STEPS.value


def main(argv: Sequence[str]) -> None:
    del argv
    console = Console(width=110)
    rows = []
    for length in LENGTHS.value:
        for name, measured in _measured(length):
            console.print(f"L={length} {name}: {measured['seconds']:.0f} s", highlight=False)
            rows.append({"name": name, "length": length, **measured})
    table = Table(title=f"time to N*: parity, LSTM {HIDDEN}, outcome, {STEPS.value:,} steps a run")
    for column in ("L", "search", "seconds", "training steps", "probes", "failed", "N*", "ratio"):
        table.add_column(column, justify="left" if column == "search" else "right")
    for row in rows:
        ours = next(r for r in rows if r["length"] == row["length"])
        row["ratio"] = row["seconds"] / ours["seconds"]
        table.add_row(
            str(row["length"]),
            row["name"],
            f"{row['seconds']:.0f}",
            f"{row['steps']:,}",
            str(row["probes"]),
            str(row["failed"]),
            f"{row['nstar']} ({row['largest_failed']}, {row['nstar']}]" if row["nstar"] else "-",
            f"{row['ratio']:.1f}x",
        )
    console.print(table)
    if JSON.value:
        pathlib.Path(JSON.value).write_text(json.dumps(rows, indent=1))


def _measured(length: int):
    yield "ib_bench, cost_aware", time_ours(length, "cost_aware")
    yield "ib_bench, paper", time_ours(length, "paper")
    if PYTORCH.value:
        yield "PyTorch loop, paper", time_pytorch(length)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    app.run(main)
