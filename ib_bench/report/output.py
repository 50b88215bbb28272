"""Where results are read: the table as Markdown or on a terminal, a row a cell as CSV; the files.

Strings of a record are text here, never markup.
"""

import csv
import dataclasses
import io
import os
from collections.abc import Sequence
from typing import Any

import rich.box
import rich.table
from etils import epath
from rich.console import Console
from rich.text import Text

from ib_bench.files import write_whole
from ib_bench.report import sheet
from ib_bench.report.names import modulus_of, order_of, text_of
from ib_bench.report.sheet import Sheet
from ib_bench.report.study import no_cells
from ib_bench.report.tables import LABELS, Table, nstar_table, probe_at_nstar
from ib_bench.results.record import CellRecord
from ib_bench.results.store import Store


def to_markdown(table: Table) -> str:
    """Writes a GitHub table, and the legend as a list below it."""
    return sheet.to_markdown(nstar_sheet(table))


def nstar_sheet(table: Table) -> Sheet:
    """Returns the table as rows of text."""
    header = (*LABELS, *(column.label for column in table.columns))
    rows = tuple((*row.labels, *row.entries) for row in table.rows)
    return Sheet("nstar", "N*", header, rows, table.legend)


def print_table(table: Table, console: Console) -> None:
    """Prints the table: whole where it fits the console, else in parts, one a distribution."""
    unbounded = console.options.update(width=10**6)

    def fits(terminal: rich.table.Table) -> bool:
        return console.measure(terminal, options=unbounded).maximum <= console.width

    whole = _terminal_table(table)
    if fits(whole):
        console.print(whole)
    else:
        parts = [_part_of(table, name) for name in _distributions(table)]
        wrap = not all(fits(_terminal_table(part)) for part in parts)
        for part in parts:
            console.print(_terminal_table(part, wrap))
    for line in table.legend:
        console.print(Text(line, style="dim"))


def _distributions(table: Table) -> list[str]:
    return list(dict.fromkeys(column.distribution for column in table.columns))


def _part_of(table: Table, distribution: str) -> Table:
    """Returns the columns of one distribution, and the rows that have an entry there."""
    chosen = [k for k, column in enumerate(table.columns) if column.distribution == distribution]
    rows = [
        dataclasses.replace(row, entries=tuple(row.entries[k] for k in chosen))
        for row in table.rows
        if any(row.entries[k] for k in chosen)
    ]
    return Table(tuple(table.columns[k] for k in chosen), tuple(rows), table.legend)


def _terminal_table(table: Table, wrap: bool = False) -> rich.table.Table:
    """Makes all strings `Text`, so nothing in a record is markup; `wrap`: brackets below N*."""
    terminal = rich.table.Table(box=rich.box.SIMPLE_HEAD)
    for label in LABELS:
        terminal.add_column(Text(label), overflow="fold")
    for column in table.columns:
        terminal.add_column(Text(f"{column.distribution}\nL={column.max_length}"), overflow="fold")
    for row in table.rows:
        entries = (entry.replace(" (", "\n(", 1) if wrap else entry for entry in row.entries)
        terminal.add_row(*(Text(text) for text in (*row.labels, *entries)))
    return terminal


def to_csv(cells: Sequence[CellRecord]) -> str:
    """Writes one row a cell, all of its settings and numbers spelled out; "" where there is none.

    Lists are separated by spaces; a contradiction is "learned:failed".
    """
    settings = sorted({key for cell in cells for key in cell.cell["model"]} - {"name"})
    rows = [_csv_row(cell, settings) for cell in sorted(cells, key=order_of)]
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0] if rows else (), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _csv_row(cell: CellRecord, model_settings: Sequence[str]) -> dict[str, Any]:
    data, model = cell.cell["data"], cell.cell["model"]
    optim, grid = cell.cell["optim"], cell.cell["grid"]
    probe, low = probe_at_nstar(cell), cell.largest_failed
    width = f"{cell.nstar / low - 1:.4g}" if cell.nstar and low else ""
    return {
        "cell_key": cell.cell_key,
        "model": model["name"],
        **{f"model.{key}": text_of(model.get(key, "")) for key in model_settings},
        "task": cell.cell["task"],
        "modulus": modulus_of(cell.cell["task"]),
        "format": data["format"],
        "length_distribution": data["length_distribution"],
        "max_length": data["max_length"],
        "status": cell.status,
        "nstar": cell.nstar,
        "largest_failed": low,
        "max_size": cell.max_size,
        "limited_by": cell.limited_by,
        "relative_width": width,  # of the bracket: N* / largest failed - 1
        "solved": probe and probe.solved,
        "runs": probe and probe.runs,
        "confirmed": cell.confirmed,
        "num_probes": len(cell.probes),
        "num_failed_probes": sum(one.verdict == "failed" for one in cell.probes),
        "contradictions": " ".join(f"{low}:{high}" for low, high in cell.contradictions),
        "chance_at_L": cell.chance[-1] if cell.chance else None,
        "num_validation": cell.num_validation,
        "parameters": cell.parameters,
        "steps": optim["steps"],
        "batch_size": optim["batch_size"],
        "threshold": optim["threshold"],
        "learning_rates": text_of(grid["learning_rates"]),
        "seeds": text_of(grid["seeds"]),
        "policy": cell.search.get("policy"),
        "tolerance": cell.search.get("tolerance"),
        "protocol": cell.protocol,
        "table": cell.cell["table"],
        "useful_lane_steps": cell.lane_steps.useful,
        "cancelled_lane_steps": cell.lane_steps.cancelled,
        "total_lane_steps": cell.lane_steps.total,
        "compile_seconds": cell.seconds.compile,
        "run_seconds": cell.seconds.run,
        "device": cell.environment.get("device"),
        "jax": cell.environment.get("jax"),
        "commit": cell.environment.get("commit"),
    }


def finished_cells(store: Store) -> list[CellRecord]:
    """Returns the records of a store's finished cells, of which a report needs at least one.

    Raises:
      ValueError: there is none.
    """
    cells = store.cells()
    if not cells:
        raise ValueError(no_cells(store))
    return cells


def write_report(store: Store, directory: str | os.PathLike) -> list[epath.Path]:
    """Writes nstar.md and nstar.csv from a store's finished cells; returns their paths.

    Raises:
      ValueError: there is none.
    """
    cells = finished_cells(store)
    texts = {"nstar.md": to_markdown(nstar_table(cells)), "nstar.csv": to_csv(cells)}
    paths = [epath.Path(directory) / name for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_whole(path, text)
    return paths
