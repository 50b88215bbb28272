"""The paper's tables 1 to 4 as it lays them out, each entry beside the paper's own."""

import dataclasses
from collections.abc import Callable, Sequence

from ib_bench.metrics import accuracy_at_twice
from ib_bench.report.legend import make_legend
from ib_bench.report.names import column_of, task_of
from ib_bench.report.paper import (
    BUDGET,
    TITLE,
    Reference,
    find_accuracy_at_twice,
    find_nstar,
)
from ib_bench.report.sheet import Sheet
from ib_bench.report.study import Study
from ib_bench.report.tables import LABELS, label_rows, short
from ib_bench.results.record import CellRecord


@dataclasses.dataclass(frozen=True)
class _Layout:
    number: int  # of the paper's table
    title: str
    holds: Callable[[CellRecord], bool]
    entry: Callable[[CellRecord], str]


def paper_tables(study: Study) -> list[Sheet]:
    """Lays out those of the paper's tables that the study has cells of."""
    tables = []
    for layout in _LAYOUTS:
        cells = [cell for cell in study.cells if layout.holds(cell)]
        if cells:
            tables.append(_lay_out(layout, cells))
    return tables


def paper_sheet(study: Study) -> Sheet:
    """Lists every cell for which the paper has a number, ours and its own side by side."""
    rows, keys = [], []
    for cell in study.cells:
        nstar, accuracy = find_nstar(cell), find_accuracy_at_twice(cell)
        if not nstar and not accuracy:
            continue
        data, seen = cell.cell["data"], accuracy_at_twice(cell)
        rows.append(
            (
                *(study.labels[cell.cell_key], data["format"], task_of(cell)),
                *(data["length_distribution"], str(data["max_length"])),
                "-" if cell.nstar is None else str(cell.nstar),
                _value(nstar),
                _ratio(cell, nstar),
                "" if seen is None else f"{seen:.2f}",
                f"{accuracy.value:.2f}" if accuracy else "",
                "; ".join(one.source for one in (nstar, accuracy) if one),
                "yes" if (nstar or accuracy).same_model else "no",
            )
        )
        keys.append((cell.cell_key,))
    header = (
        *("model", "format", "task", "distribution", "L", "N*", "paper's N*", "ratio"),
        *("accuracy at 2L", "paper's accuracy", "paper's place", "model of the paper's size"),
    )
    legend = (*_legend(), *make_legend(study.cells))
    return Sheet("paper", "Against the paper", header, tuple(rows), legend, tuple(keys))


def _lay_out(layout: _Layout, cells: Sequence[CellRecord]) -> Sheet:
    columns = sorted({column_of(cell) for cell in cells}, key=lambda column: column.order)
    rows = []
    for label, members in label_rows(cells):
        entries = {column_of(cell): layout.entry(cell) for cell in members}
        labels = (label, members[0].cell["data"]["format"], task_of(members[0]))
        rows.append((*labels, *(entries.get(column, "") for column in columns)))
    header = (*LABELS, *(column.label for column in columns))
    title = f"Table {layout.number}: {layout.title}"
    legend = (*_legend(), *make_legend(cells))
    return Sheet(f"table{layout.number}", title, header, tuple(rows), legend)


def _legend() -> tuple[str, ...]:
    return (
        f"paper: {TITLE}; {BUDGET}. x: ours divided by the paper's, where the model has the "
        "paper's size; -: not learned; *: the placement in the paper's table is inferred.",
    )


def _nstar_entry(cell: CellRecord) -> str:
    ours, paper = "-" if cell.nstar is None else short(cell.nstar), find_nstar(cell)
    if not paper:
        return ours
    ratio = _ratio(cell, paper)
    return f"{ours} (paper {_value(paper)}{', x' + ratio if ratio else ''})"


def _accuracy_entry(cell: CellRecord) -> str:
    ours, paper = accuracy_at_twice(cell), find_accuracy_at_twice(cell)
    text = "" if ours is None else f"{ours:.2f}"
    return f"{text or '?'} (paper {paper.value:.2f})" if paper else text


def _value(paper: Reference | None) -> str:
    if not paper:
        return ""
    text = "-" if paper.value is None else short(int(paper.value))
    return text + ("*" if "inferred" in paper.source else "")


def _ratio(cell: CellRecord, paper: Reference | None) -> str:
    if not paper or not paper.same_model or not paper.value or cell.nstar is None:
        return ""
    return f"{cell.nstar / paper.value:.2g}"


def _is_transformer(cell: CellRecord, *, deep: bool | None = None) -> bool:
    model = cell.cell["model"]
    fits = deep is None or (model.get("layers", 0) > 2) == deep
    return model["name"] == "transformer" and fits


_LAYOUTS = (
    _Layout(
        *(1, "N* of transformers (the paper: 6 layers)"),
        lambda cell: _is_transformer(cell, deep=True),
        _nstar_entry,
    ),
    _Layout(
        *(2, "accuracy of transformers at 2L, rescaled so that chance is 0 (?: not evaluated)"),
        lambda cell: _is_transformer(cell) and (accuracy_at_twice(cell) is not None),
        _accuracy_entry,
    ),
    _Layout(
        *(3, "N* of LSTMs (the paper: hidden 256)"),
        lambda cell: cell.cell["model"]["name"] == "lstm",
        _nstar_entry,
    ),
    _Layout(
        *(4, "N* of transformers of at most 2 layers (the paper: 2 layers)"),
        lambda cell: _is_transformer(cell, deep=False),
        _nstar_entry,
    ),
)
