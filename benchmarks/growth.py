"""How the cost of a study grows with its cells and with its machines, by simulation.

    .venv/bin/python -m benchmarks.growth --json=benchmarks/measured/growth.json \
        --svg=launch/growth.svg

Cells, their programs, their core-seconds and the compile seconds of their programs are those that
docs/results/cpu measured, drawn with replacement; units are cut and handed out by the code that
does it in a study. A slot is one core of the machine that was measured. A slot may be preempted:
then a unit loses half a checkpoint interval, and pays for its start again.
"""

import dataclasses
import heapq
import io
import json
import lzma
import pathlib
import random
import tarfile
from collections.abc import Sequence
from typing import Any, NamedTuple

from absl import app, flags
from rich.console import Console

from benchmarks.layouts import GROWTH
from benchmarks.output import describe_machine, print_rows, write_json

JSON = flags.DEFINE_string("json", None, "a file for the rows")
SVG = flags.DEFINE_string("svg", None, "a file for the plot")
RECORDS = flags.DEFINE_string("records", "docs/results/cpu/records.tar.xz", "what was measured")
START = flags.DEFINE_float("start_seconds", 10.0, "of a worker, from nothing to its first compile")
EVERY = flags.DEFINE_float("preempted_every", 0.0, "hours between preemptions of a slot; 0: never")
CHECKPOINT = flags.DEFINE_float("checkpoint_minutes", 5.0, "between checkpoints")

CELLS = (10, 100, 1_000, 10_000)
SLOTS = (1, 4, 16, 64, 256)


class Program(NamedTuple):
    """What a unit has in common."""

    name: str
    num_positions: int


@dataclasses.dataclass(frozen=True)
class Cell:
    key: str
    program: Program
    seconds: float  # of one core
    compile_seconds: float


@dataclasses.dataclass(frozen=True)
class Study:
    """As much of a StudySpec as sharing it out needs."""

    cells: tuple[Cell, ...]

    def groups(self):
        groups = {}
        for cell in self.cells:
            groups.setdefault(cell.program, []).append(cell)
        return list(groups.items())


def measured_cells(path: str) -> list[Cell]:
    """Reads the cells of a study that was run."""
    cells = []
    with tarfile.open(fileobj=io.BytesIO(lzma.open(path).read())) as archive:
        for member in archive:
            if not member.name.startswith("cells/") or not member.isfile():
                continue
            record = json.load(archive.extractfile(member))
            spec = record["cell"]
            name = json.dumps(
                [spec["model"], spec["data"]["format"], spec["data"]["padded_length"]]
            )
            program = Program(name, spec["data"]["padded_length"])
            # Wall seconds of chunks in which all devices were at work.
            seconds = record["seconds"]["run"] * record["environment"]["num_devices"]
            compile_seconds = record["seconds"]["compile"]
            cells.append(Cell(record["cell_key"], program, seconds, compile_seconds))
    return cells


def draw(measured: list[Cell], count: int, seed: int) -> Study:
    """Makes a study of so many cells, each one of the measured ones."""
    draws = random.Random(seed)
    drawn = [draws.choice(measured) for _ in range(count)]
    return Study(tuple(dataclasses.replace(cell, key=str(k)) for k, cell in enumerate(drawn)))


def unit_seconds(cells: Sequence[Cell], preempted_every: float, checkpoint: float) -> float:
    """Seconds that a unit takes on one slot, the work that preemptions repeat included."""
    fixed = START.value + max(cell.compile_seconds for cell in cells)
    work = sum(cell.seconds for cell in cells)
    if preempted_every:
        work += work / preempted_every * (fixed + checkpoint / 2)
    return fixed + work


def simulate(study: Study, slots: int) -> tuple[float, float, int]:
    """Hands units to slots as they become free.

    Returns:
      Wall seconds, busy seconds of all slots, units.
    """
    from ib_bench.executors.ray import UNITS_PER_SLOT
    from ib_bench.executors.units import make_units

    most_cells = max(1, -(-len(study.cells) // (UNITS_PER_SLOT * slots)))
    units = make_units(study, most_cells)
    free = [0.0] * slots
    busy = 0.0
    for unit in units:
        seconds = unit_seconds(unit.cells, 3600 * EVERY.value, 60 * CHECKPOINT.value)
        busy += seconds
        heapq.heappush(free, heapq.heappop(free) + seconds)
    return max(free), busy, len(units)


def rows_of(measured: list[Cell]) -> list[dict[str, Any]]:
    rows = []
    for count in CELLS:
        study = draw(measured, count, seed=count)
        work = sum(cell.seconds for cell in study.cells)
        for slots in SLOTS:
            wall, busy, units = simulate(study, slots)
            rows.append(
                {
                    "name": f"{count:,} cells, {slots} slots",
                    "cells": count,
                    "slots": slots,
                    "units": units,
                    "wall_hours": wall / 3600,
                    "slot_hours": slots * wall / 3600,
                    "overhead": busy / work - 1,
                    "efficiency": work / (slots * wall),
                }
            )
    return rows


def plot(rows: list[dict[str, Any]]) -> str:
    """Draws wall hours against slots, a line for each number of cells."""
    import altair as alt
    import vl_convert

    data = [{**row, "study": f"{row['cells']:,} cells"} for row in rows]
    order = [f"{count:,} cells" for count in CELLS]
    chart = (
        alt.Chart(alt.Data(values=data))
        .mark_line(point=True)
        .encode(
            x=alt.X("slots:Q", scale=alt.Scale(type="log", base=2), title="slots"),
            y=alt.Y("wall_hours:Q", scale=alt.Scale(type="log"), title="wall hours"),
            color=alt.Color("study:N", sort=order, title=None),
        )
        .properties(width=420, height=260, title="Wall time of a study like configs/cpu.py")
    )
    return vl_convert.vegalite_to_svg(chart.to_dict())


def main(argv: Sequence[str]) -> None:
    del argv
    rows = rows_of(measured_cells(RECORDS.value))
    print_rows(GROWTH, rows, Console(width=110))
    if SVG.value:
        pathlib.Path(SVG.value).write_text(plot(rows))
    if JSON.value:
        write_json(JSON.value, describe_machine(), rows)


if __name__ == "__main__":
    app.run(main)
