"""Wall time to the N* of one cell: ib_bench against a straightforward PyTorch loop.

    .venv/bin/pip install -e '.[bench]'
    .venv/bin/python -m benchmarks.time_to_nstar --json=time_to_nstar.json

The cell: parity, LSTM 64, outcome, uniform lengths; three learning rates, five seeds, the same
data, budget, tolerance and stopping rules on both sides. The loop follows the paper's search, one
run after the other, and leaves a size as soon as one run has solved it. ib_bench starts with an
empty workdir and an empty compile cache, so its time holds every compilation; it is measured before
the loop and after it. The last search has `optim.stall` besides, which the loop has not.
"""

import importlib.metadata
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from absl import app, flags
from rich.console import Console

from benchmarks.cells import run_command
from benchmarks.layouts import TIME_TO_NSTAR
from benchmarks.output import describe_machine, print_rows, write_json

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

SEARCHES = {
    "cost_aware": {"search.policy": "cost_aware"},
    "cost_aware, again": {"search.policy": "cost_aware"},
    "paper": {"search.policy": "paper"},
    "cost_aware, stall": {"search.policy": "cost_aware", "optim.stall": 500},
}
SHARE_PROGRAMS = ("cost_aware", "cost_aware, again")
SEARCH = flags.DEFINE_multi_enum("search", list(SEARCHES), list(SEARCHES), "which to measure")


def time_searches(length: int) -> dict[str, dict[str, Any]]:
    """Runs every search once; only "again" finds its programs compiled."""
    with tempfile.TemporaryDirectory() as cache:
        return {
            name: time_ours(length, search, cache if name in SHARE_PROGRAMS else "")
            for name, search in SEARCHES.items()
            if name in SEARCH.value
        }


def time_ours(length: int, search: dict[str, Any], cache: str) -> dict[str, Any]:
    """Runs `ib_bench run` in a process of its own; returns its time, steps and answer."""
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
            "lanes.compile_cache": cache,
            **search,
        }
        command = run_command(folder, settings)
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
    search = SearchSpec("nstar", "paper", 16_000_000, TOLERANCE, 1, 100, 50.0, (), False)
    known = Knowledge(min(split.num_train, STEPS.value * BATCH_SIZE))
    torch.set_num_threads(_better_threads(length))
    started, total = time.perf_counter(), 0
    while sizes := propose(known, search):
        (size,), solved = sizes, False
        for learning_rate in LEARNING_RATES:
            for seed in SEEDS:
                if not solved:
                    solved, steps = train_pytorch(length, size, learning_rate, seed)
                    total += steps
        if solved:
            known = known._replace(learned=(*known.learned, size))
        else:
            known = known._replace(failed=(*known.failed, size))
        verdict = "learned" if solved else "failed"
        Console(stderr=True).log(f"PyTorch, L={length}, N={size}: {verdict}; {total} steps so far")
    return {
        "seconds": time.perf_counter() - started,
        "steps": total,
        "nstar": known.high,
        "largest_failed": known.low,
        "probes": known.num_probes,
        "failed": len(known.failed),
    }


def _better_threads(length: int) -> int:
    """Returns one or all: where matrices are small, threads cost more than they bring."""
    from benchmarks.pytorch_models import make_step
    from benchmarks.rows import Row

    times = {}
    for threads in (1, len(os.sched_getaffinity(0))):
        step = make_step(Row("lstm", HIDDEN, length), threads)
        for _ in range(50):
            step()
        started = time.perf_counter()
        for _ in range(200):
            step()
        times[threads] = time.perf_counter() - started
    return min(times, key=times.get)


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


def measure(length: int) -> list[dict[str, Any]]:
    """Returns a row per search of ours; the loop's figures stand in each."""
    before = time_searches(length)
    loop = time_pytorch(length) if PYTORCH.value else {}
    after = time_searches(length)
    rows = []
    for name in before:
        turns = before[name], after[name]
        times = [turn["seconds"] for turn in turns]
        ours, pytorch = statistics.median(times), loop.get("seconds")
        rows.append(
            {
                "name": f"L={length}, {name}",
                "ours": ours,
                "pytorch": pytorch,
                "vmap": None,
                "ratio": pytorch and pytorch / ours,
                "share_of_peak": None,
                "spread": (max(times) - min(times)) / ours,
                "budget": STEPS.value,
                **{key: turns[0][key] for key in ("steps", "probes", "failed")},
                "nstar": _bracket(turns[0]),
                "pytorch_steps": loop.get("steps"),
                "pytorch_probes": loop.get("probes"),
                "pytorch_failed": loop.get("failed"),
                "pytorch_nstar": loop and _bracket(loop) or None,
            }
        )
    return rows


def _bracket(found: dict[str, Any]) -> str:
    if found["nstar"] is None:
        return "not learned"
    return f"{found['nstar']} ({found['largest_failed']}, {found['nstar']}]"


def main(argv: Sequence[str]) -> None:
    del argv
    torch = importlib.metadata.version("torch") if PYTORCH.value else None
    rows = []
    for length in LENGTHS.value:
        rows += measure(length)
        print_rows(TIME_TO_NSTAR, rows, Console(width=130))
        if JSON.value:  # what is measured stays, whatever comes
            write_json(JSON.value, describe_machine(torch=torch), rows)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    app.run(main)
