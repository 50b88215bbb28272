"""A sheet: rows of text under a header, with the legend without which its numbers mean nothing.

Strings of a record are text here, never markup.
"""

import csv
import dataclasses
import io
import re


@dataclasses.dataclass(frozen=True)
class Sheet:
    name: str  # of its files
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...] = ()  # per row, keys of the cells it rests on


def to_markdown(sheet: Sheet) -> str:
    """Writes a GitHub table, and the legend as a list below it."""
    lines = [[plain(text) for text in row] for row in sheet.rows]
    rows = [f"| {' | '.join(row)} |" for row in [sheet.header, ["---"] * len(sheet.header), *lines]]
    return "\n".join([*rows, "", *(f"- {plain(line)}" for line in sheet.legend)]) + "\n"


def to_csv(sheet: Sheet) -> str:
    """Writes the rows, and the keys of their cells separated by spaces; no legend."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    keys = [(" ".join(some),) for some in sheet.cells] or [()] * len(sheet.rows)
    writer.writerow([*sheet.header, *(["cells"] if sheet.cells else [])])
    writer.writerows((*row, *some) for row, some in zip(sheet.rows, keys, strict=True))
    return out.getvalue()


def plain(text: str) -> str:
    """Escapes what markdown would read as markup; underscores inside words are none."""
    return re.sub(r"([\\`*<&\[|~#]|(?<!\w)_|_(?!\w))", r"\\\1", " ".join(text.split()))
