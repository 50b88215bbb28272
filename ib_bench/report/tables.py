"""The N* table as the paper lays it out, from cell records alone.

A row shares every setting but the sequence length and its distribution. Settings that differ among
the records are named in the row's label, so no two records ever share an entry.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence

from ib_bench.report.legend import CONTRADICTED, make_legend
from ib_bench.report.names import Column, column_of, order_of, task_of, text_of
from ib_bench.results.record import CellRecord, ProbeSummary

LABELS = ("model", "format", "task")
# What a row's records must share. Of the rest, padding and the task's table follow from the column
# and the task; they are looked at only where two records would meet in one entry.
_SHARED = ("model.", "optim.", "grid.", "data.validation_lengths", "data.label_every")


@dataclasses.dataclass(frozen=True)
class Row:
    model: str  # with the settings that tell it from other rows
    format: str
    task: str
    entries: tuple[str, ...]  # one a column; "": no finished cell

    @property
    def labels(self) -> tuple[str, str, str]:
        return self.model, self.format, self.task


@dataclasses.dataclass(frozen=True)
class Table:
    """N* of every cell, and in the legend what N* is worth: a result is never without it."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    legend: tuple[str, ...]


def nstar_table(cells: Sequence[CellRecord]) -> Table:
    """Lays out N*: model x format x task against length distribution x L (paper, table 1).

    Every record is in exactly one entry.
    """
    cells = sorted(cells, key=order_of)
    columns = sorted({column_of(cell) for cell in cells}, key=lambda column: column.order)
    rows = []
    for label, members in label_rows(cells):
        entries = {column_of(cell): entry_of(cell) for cell in members}
        texts = tuple(entries.get(column, "") for column in columns)
        rows.append(Row(label, members[0].cell["data"]["format"], task_of(members[0]), texts))
    return Table(tuple(columns), tuple(rows), tuple(make_legend(cells)))


def _settings(cell: CellRecord) -> dict[str, str]:
    """Every setting as text, under its dotted key."""
    groups = {**cell.cell, "search": cell.search}
    flat = {}
    for group, values in groups.items():
        for key, value in values.items() if isinstance(values, dict) else [("", values)]:
            flat[f"{group}.{key}".rstrip(".")] = text_of(value)
    return flat


def label_rows(cells: Sequence[CellRecord]) -> Iterable[tuple[str, list[CellRecord]]]:
    """Groups sorted records into rows, each with its model's label; none shares an entry."""
    settings = [_settings(cell) for cell in cells]
    values = defaultdict(set)
    for one in settings:
        for name, value in one.items():
            if name.startswith(_SHARED):
                values[_scope(name, one), name].add(value)
    rows = defaultdict(list)
    for cell, one in zip(cells, settings, strict=True):
        telling = tuple(name for name in one if len(values[_scope(name, one), name]) > 1)
        row = (cell.cell["model"]["name"], cell.cell["data"]["format"], cell.cell["task"])
        rows[row, tuple((name, one[name]) for name in telling)].append(cell)
    for ((model, *_), telling), members in rows.items():
        for more, part in _split(members):
            notes = ", ".join(f"{name.split('.')[-1]}={value}" for name, value in telling + more)
            yield (f"{model} ({notes})" if notes else model), part


def _scope(name: str, settings: dict[str, str]) -> str:
    """A model's settings are compared with those of its namesakes, all others with everyone's."""
    return settings["model.name"] if name.startswith("model.") else ""


def _split(cells: Sequence[CellRecord]) -> Iterable[tuple[tuple, list[CellRecord]]]:
    """Splits the records of one row by what differs between any two that share a column."""
    names = []
    facts = [
        _settings(cell) | {"record": str(number)} for number, cell in enumerate(cells, start=1)
    ]
    while True:
        parts, clash = defaultdict(list), None
        for cell, fact in zip(cells, facts, strict=True):
            part = parts[tuple((name, fact.get(name, "")) for name in names)]
            clash = clash or next(
                ((other, fact) for seen, other in part if column_of(seen) == column_of(cell)), None
            )
            part.append((cell, fact))
        if clash is None:
            return [(key, [cell for cell, _ in part]) for key, part in parts.items()]
        one, other = clash
        differing = [name for name in one | other if one.get(name) != other.get(name)]
        names += differing[:-1] or ["record"]  # the last one is always "record"


def entry_of(cell: CellRecord) -> str:
    if cell.nstar is None:
        parts = [f"- (N_max {short(cell.max_size)}, {cell.limited_by})"]
    else:
        parts = [short(cell.nstar), f"({cell.largest_failed}, {cell.nstar}]"]
        probe = probe_at_nstar(cell)
        if cell.confirmed and probe:
            parts.append(f"{probe.solved}/{probe.runs}")
        if cell.status == "saturated":
            parts.append("saturated")
    if cell.contradictions:
        parts.append(CONTRADICTED)
    return " ".join(parts)


def probe_at_nstar(cell: CellRecord) -> ProbeSummary | None:
    """Returns what was seen at N*; None where nothing was learned."""
    return next((probe for probe in cell.probes if probe.size == cell.nstar), None)


def short(number: int) -> str:
    """Writes a size as the paper does: 14, 1.3K, 16K, 2M."""
    if number < 1000:
        return str(number)
    rounded = int(float(f"{number:.1e}"))
    unit, suffix = (10**6, "M") if rounded >= 10**6 else (10**3, "K")
    return f"{rounded / unit:g}{suffix}"
