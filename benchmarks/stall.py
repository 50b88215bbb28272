"""How often a stall rule would stop a run that later is solved, and what it saves.

    .venv/bin/python -m benchmarks.stall --folder=trajectories

Trains every run of a few cells of configs/cpu.py with its whole budget, at sizes around N*, and
writes the losses of every evaluation, one file a cell; a second start goes on. Then each rule is
replayed on them: a run is *stalled* once its training loss is below the threshold and its best
validation loss is older than `patience` steps.
"""

import itertools
import json
import pathlib
from collections.abc import Sequence
from typing import Any

from absl import app, flags
from rich.console import Console

from benchmarks.cells import make_study
from benchmarks.layouts import STALL
from benchmarks.output import describe_machine, print_rows, write_json
from benchmarks.stall_rule import THRESHOLD, judge

FOLDER = flags.DEFINE_string("folder", None, "where trajectories are kept", required=True)
JSON = flags.DEFINE_string("json", None, "a file for the rows")
STEPS = flags.DEFINE_integer("steps", 6_000, "budget of a run; twice that of configs/cpu.py")

PATIENCE = (250, 500, 1000, 1500, 2000, 3000)
SEEDS = (10, 20, 30, 40, 50)
CELLS = (  # model settings, format, m, L, length distribution, sizes around N*
    *(
        ({"name": "lstm", "hidden": 32}, "outcome", 2, length, distribution, (12, 18, 24, 36, 60))
        for length, distribution in itertools.product((5, 8), ("uniform", "short_to_long"))
    ),
    ({"name": "lstm", "hidden": 32}, "acot", 2, 5, "uniform", (6, 10, 14, 20)),
    ({"name": "lstm", "hidden": 32}, "acot", 3, 5, "uniform", (40, 60, 80, 120)),
    ({"name": "lstm", "hidden": 32}, "acot", 3, 8, "fixed", (12, 18, 24, 40)),
    ({"name": "dense_ssm", "hidden": 32}, "outcome", 2, 5, "uniform", (8, 12, 16, 24)),
    ({"name": "dense_ssm", "hidden": 32}, "outcome", 3, 5, "uniform", (60, 80, 100, 140)),
    ({"name": "dense_ssm", "hidden": 32}, "acot", 3, 5, "uniform", (60, 80, 100, 140)),
    ({"name": "dense_ssm", "hidden": 32}, "outcome", 5, 5, "fixed", (120, 160, 200, 280)),
)


def record(settings, format_, modulus, length, distribution, sizes) -> dict[str, Any]:
    """Trains all runs of a cell at these sizes; returns their losses at every evaluation."""
    from ib_bench.training.lanes import Lanes
    from ib_bench.training.run import make_run_operands

    study = make_study(
        task__modulus=modulus,
        data__max_length=length,
        data__length_distribution=distribution,
        data__format=format_,
        **{f"model__{key}": value for key, value in settings.items()},
    )
    (cell,) = study.cells
    program, cell_data = cell.program, cell.make_data()
    sizes = [size for size in sizes if size <= cell.split.num_train]
    waiting = list(itertools.product(sizes, (3e-3, 1e-3), SEEDS))
    lanes = Lanes(program, study.lanes, len(waiting), make_run_operands(cell_data, *waiting[0]))
    runs: list[dict] = []
    under_way: dict[int, dict] = {}
    while waiting or under_way:
        fresh = {}
        for lane in set(range(lanes.num_lanes)) - set(under_way):
            if waiting:
                size, rate, seed = waiting.pop(0)
                under_way[lane] = {
                    "size": size,
                    "rate": rate,
                    "seed": seed,
                    "train": [],
                    "loss": [],
                }
                fresh[lane] = make_run_operands(cell_data, size, rate, seed)
        lanes.load(fresh)
        for lane, progress in lanes.advance(under_way).items():
            run = under_way[lane]
            run["train"].append(float(f"{progress.train_loss:.4g}"))
            run["loss"].append(float(f"{progress.loss:.4g}"))
            if progress.loss < THRESHOLD or progress.step >= STEPS.value:
                runs.append(under_way.pop(lane))
    return {"cell": cell.label, "eval_every": program.eval_every, "runs": runs}


def main(argv: Sequence[str]) -> None:
    del argv
    from ib_bench.training.devices import keep_compiled, use_every_core

    use_every_core()
    keep_compiled("auto")
    console = Console(width=100)
    folder = pathlib.Path(FOLDER.value)
    folder.mkdir(parents=True, exist_ok=True)
    cells = []
    for number, cell in enumerate(CELLS):
        path = folder / f"{number}.json"
        if not path.exists():
            path.write_text(json.dumps(record(*cell)))
        cells.append(json.loads(path.read_text()))
        console.print(f"{cells[-1]['cell']}: {len(cells[-1]['runs'])} runs", highlight=False)
    rows = []
    for patience in PATIENCE:
        found = judge(cells, patience)
        rows.append(
            {
                "name": patience,
                "solved": found.solved,
                "lost": found.lost,
                "lost_share": found.lost / max(1, found.solved),
                "kept_share": found.kept / max(1, found.steps),
            }
        )
    print_rows(STALL, rows, console)
    if JSON.value:
        write_json(JSON.value, describe_machine(), rows)


if __name__ == "__main__":
    app.run(main)
