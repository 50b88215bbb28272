"""How a report speaks of records: in which words and in which order.

Table, legend and CSV share it, and it knows none of them.
"""

import dataclasses
import json
import re
from collections.abc import Sequence
from typing import Any

from ib_bench.results.record import CellRecord

DISTRIBUTIONS = ("fixed", "uniform", "short_to_long")  # the paper's order, table 1
FORMATS = ("outcome", "cot", "acot")


@dataclasses.dataclass(frozen=True)
class Column:
    distribution: str
    max_length: int

    @property
    def label(self) -> str:
        return f"{self.distribution} L={self.max_length}"

    @property
    def order(self) -> tuple:
        """Sorts the paper's distributions as it does, any others after them."""
        return _place(self.distribution, DISTRIBUTIONS), self.max_length


def column_of(cell: CellRecord) -> Column:
    """Returns the column in which the cell's entry stands."""
    return Column(cell.cell["data"]["length_distribution"], cell.cell["data"]["max_length"])


def order_of(cell: CellRecord) -> tuple:
    """Sorts by row, then column; m = 5 comes before m = 10, and other tasks after both."""
    task = cell.cell["task"]
    modulus = modulus_of(task)
    return (
        cell.cell["model"]["name"],
        _place(cell.cell["data"]["format"], FORMATS),
        (modulus is None, modulus or 0, natural_order(task)),
        natural_order(json.dumps([cell.cell["model"], cell.cell["optim"], cell.cell["grid"]])),
        column_of(cell).order,
        cell.cell_key,
    )


def natural_order(text: str) -> list:
    """A sort key by which "hidden 64" comes before "hidden 128"."""
    parts = re.findall(r"[0-9]+|[^0-9]+", text)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


def modulus_of(task: str) -> int | None:
    """Returns m of modular addition, None for any other task."""
    match = re.fullmatch(r"modular_addition\(([0-9]+)\)", task)
    return int(match[1]) if match else None


def task_of(cell: CellRecord) -> str:
    """Names the task as the paper does: modular addition by its modulus alone."""
    modulus = modulus_of(cell.cell["task"])
    return cell.cell["task"] if modulus is None else f"m = {modulus}"


def text_of(value: Any) -> str:
    """Writes a setting; the items of a list are separated by spaces."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _place(name: str, order: Sequence[str]) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order)), name
