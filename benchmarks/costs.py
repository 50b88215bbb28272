"""What the presets of configs/paper cost: lane-steps and hours, written into their headers.

    .venv/bin/python -m benchmarks.costs           # prints them
    .venv/bin/python -m benchmarks.costs --write   # and puts them in place

A cell is counted as two failed probes (`benchmarks.policies` finds 1.8) with their whole budget;
learned probes come free beside them. Hours follow from the matrix products alone and from a rate:
that of two cores is measured (`benchmarks.throughput`), that of an H200 is a guess, a fifth of its
67 TFLOP/s in float32: nothing was run on one.
"""

import importlib
import pathlib
import re
from collections.abc import Sequence

from absl import app, flags

from benchmarks.rows import Row

WRITE = flags.DEFINE_bool("write", False, "write the costs into the headers of the presets")

PRESETS = (*(f"table{k}" for k in range(1, 5)), *(f"figure{k}" for k in range(2, 10)))
FAILED_PROBES = 2
# GFLOP/s. Small models spend most of their time beside products: 1,100 to 6,900 steps/s.
RATES = {"paper": {"two cores": 90.0, "an H200": 67e3 / 5}, "small": {"two cores": 25.0}}


def flops_of(cell) -> float:
    """Returns the floating-point operations of one training step of a cell."""
    settings = dict(cell.model.settings)
    row = Row(
        cell.model.name,
        settings["hidden"],
        cell.program.padded_length,
        cell.data.format,
        settings.get("layers", 0),
        settings.get("heads", 0),
    )
    return row.flops


def describe(name: str) -> str:
    """Writes the cost of a preset as its header says it."""
    from ib_bench.configure import make_study

    preset = importlib.import_module(f"ib_bench.configs.paper.{name}")
    lines = []
    for size, rates in RATES.items():
        study = make_study(preset.get_config(size))
        steps = [FAILED_PROBES * len(cell.grid.runs) * cell.optim.steps for cell in study.cells]
        work = sum(count * flops_of(cell) for count, cell in zip(steps, study.cells, strict=True))
        times = [f"{_duration(work / rate / 1e9)} on {what}" for what, rate in rates.items()]
        label = "Cost" if size == "paper" else "  :small"
        lines.append(
            f"{label}: {len(study.cells)} cells, {_count(sum(steps))} lane-steps, about "
            f"{' or '.join(times)}"
        )
    return ";\n".join(lines) + " (benchmarks/costs.py)."


def _count(steps: float) -> str:
    for unit, name in ((1e9, "billion"), (1e6, "million")):
        if steps >= unit:
            return f"{_short(steps / unit)} {name}"
    return f"{steps:,.0f}"


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"


def _duration(seconds: float) -> str:
    for unit, name in ((365.25 * 86400, "years"), (86400, "days"), (3600, "hours")):
        if seconds >= unit:
            return f"{_short(seconds / unit)} {name}"
    return f"{max(2, seconds / 60):.0f} minutes"


def main(argv: Sequence[str]) -> None:
    del argv
    for name in PRESETS:
        cost = describe(name)
        print(f"{name}\n{cost}")
        if WRITE.value:
            path = pathlib.Path(__file__).parent.parent / "configs" / "paper" / f"{name}.py"
            text = path.read_text()
            old = re.search(r"Cost: .*?\(benchmarks/costs\.py\)\.", text, re.DOTALL)[0]
            path.write_text(text.replace(old, cost))


if __name__ == "__main__":
    app.run(main)
