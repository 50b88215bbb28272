"""What a benchmark found, and where: printed, kept as JSON, and put into README.md."""

import dataclasses
import datetime
import json
import os
import pathlib
import platform
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclasses.dataclass(frozen=True)
class Column:
    """One column: what stands in its head, which key of a row it shows, and how."""

    title: str
    key: str
    format: str = "{}"

    def text(self, row: Mapping[str, Any]) -> str:
        value = row.get(self.key)
        return "-" if value is None else self.format.format(value)


@dataclasses.dataclass(frozen=True)
class Layout:
    """A benchmark's table; the first column is aligned to the left, the others to the right."""

    title: str
    columns: tuple[Column, ...]


def describe_machine(**more: Any) -> dict[str, Any]:
    """Returns date, cores, versions and commit, beside what a benchmark adds."""
    from ib_bench.results.environment import describe_software

    software = describe_software()
    kept = ("python", "jax", "jaxlib", "numpy", "ib_bench", "commit")
    return {
        "date": datetime.date.today().isoformat(),
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        **{name: software[name] for name in kept},
        **more,
    }


def write_json(path: str, about: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes the rows of a benchmark and where they were measured."""
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")


def print_rows(layout: Layout, rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Prints the table on a terminal."""
    table = Table(title=layout.title)
    for number, column in enumerate(layout.columns):
        table.add_column(column.title, justify="right" if number else "left")
    for row in rows:
        table.add_row(*(column.text(row) for column in layout.columns))
    console.print(table, highlight=False)


def to_markdown(layout: Layout, about: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """Writes the table as Markdown, and below it where and when it was measured."""
    lines = [[column.title for column in layout.columns]]
    lines += [["---", *["---:"] * (len(layout.columns) - 1)]]
    lines += [[column.text(row) for column in layout.columns] for row in rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{table}\n\n{_origin(about)}\n"


def _origin(about: Mapping[str, Any]) -> str:
    parts = [about["date"], f"{about['cores']} cores ({about['machine']})"]
    if "device" in about:
        parts.append(about["device"])
    if "peak" in about:
        parts.append(f"matrix-product peak {about['peak']:.0f} GFLOP/s (float32)")
    versions = [f"{name} {about[name]}" for name in ("python", "jax", "torch") if about.get(name)]
    commit = about["commit"]
    commit = commit if commit == "unknown" else commit[:8] + commit[40:]
    return "Measured " + ", ".join([*parts, *versions, f"commit {commit}"]) + "."
