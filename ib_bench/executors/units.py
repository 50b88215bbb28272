"""How a study is cut into pieces of work: whole cells, those of one program together."""

import re
from typing import NamedTuple

from ib_bench.specs import CellSpec, ProgramSpec, StudySpec


class Unit(NamedTuple):
    """Cells of one program: what a worker answers at a time, in one set of lanes."""

    program: ProgramSpec
    cells: tuple[CellSpec, ...]


def make_units(study: StudySpec, most_cells: int | None = None) -> list[Unit]:
    """Cuts a study into units, in the order of their first cells.

    Args:
      study: its cells are shared out, each once.
      most_cells: of a unit; None for no limit. Every unit compiles its program anew.
    """
    units = []
    for program, cells in study.groups():
        step = most_cells or len(cells)
        units += [
            Unit(program, tuple(cells[first : first + step]))
            for first in range(0, len(cells), step)
        ]
    return units


def parse_shard(text: str) -> tuple[int, int]:
    """Reads "i/n", shard i of n, counted from 0.

    Raises:
      ValueError: it is something else.
    """
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if not match or not 0 <= int(match[1]) < int(match[2]):
        raise ValueError(
            f"shard: {text!r} is no shard; use i/n with i from 0 to n - 1, for example 0/4"
        )
    return int(match[1]), int(match[2])


def cells_of_shard(study: StudySpec, index: int, count: int) -> tuple[CellSpec, ...]:
    """Returns the cells of one of `count` shards.

    Every cell is in exactly one shard, by the study alone: machines that never speak with each
    other share it so. Programs stay together unless one is more than a shard's half; the next unit,
    largest first, goes to the shard with the least work. Work is counted in cells times positions.
    """
    most_cells = max(1, -(-len(study.cells) // (2 * count)))
    units = make_units(study, most_cells)
    order = sorted(range(len(units)), key=lambda k: -_work(units[k]))
    load = [0] * count
    mine = set()
    for k in order:
        shard = load.index(min(load))
        load[shard] += _work(units[k])
        if shard == index:
            mine.update(cell.key for cell in units[k].cells)
    return tuple(cell for cell in study.cells if cell.key in mine)


def _work(unit: Unit) -> int:
    return len(unit.cells) * unit.program.num_positions
