"""One HTML page that holds a whole report and needs nothing else: no network, no other file.

Every string of a record becomes text: escaped where it stands in the page, and inside JSON without
a "<". Altair is not imported here; whoever has figures and a library hands them in.
"""

import html
import importlib.resources
import json
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from ib_bench.report.claims import VERDICTS, Claim
from ib_bench.report.legend import make_legend
from ib_bench.report.names import task_of, text_of
from ib_bench.report.sheet import Sheet
from ib_bench.report.study import Study
from ib_bench.report.tables import LABELS, entry_of
from ib_bench.results.record import CellRecord, ProbeRecord

_LONG = 40  # characters; a longer entry may wrap
_AT_SIGHT = ("Budget:", "Grid:")  # lines of a legend that stand below the table, not folded away


class Drawn(Protocol):
    """What the page needs of a figure."""

    name: str
    title: str
    note: str
    spec: dict[str, Any]
    task: str


def make_page(
    study: Study,
    title: str,
    claims: Sequence[Claim],
    sheets: Sequence[Sheet],
    figures: Sequence[Drawn],
    library: str,
) -> str:
    """Writes the page.

    Args:
      study: the records.
      title: what the study is called.
      claims: the observations with their comparisons.
      sheets: further tables, in order; the first is the N* table.
      figures: charts as Vega-Lite.
      library: JavaScript that defines `vegaEmbed`.
    """
    numbers = {cell.cell_key: number for number, cell in enumerate(study.cells)}
    nstar, *others = sheets
    sections = [
        ("N*", "nstar", sheet_section(nstar, numbers)),
        ("Observations", "claims", _claims_section(study, claims)),
        *(
            (sheet.title.partition(":")[0], sheet.name, sheet_section(sheet, numbers))
            for sheet in others
        ),
        ("Figures", "figures", figures_section(make_legend(study.cells), figures)),
        ("Cells", "all-cells", _cells_section(study)),
    ]
    content = {
        "cells": [_cell_data(cell, study.probes.get(cell.cell_key, ())) for cell in study.cells],
        "claims": [
            [
                [one.verdict, one.text, [numbers[key] for key in one.cells]]
                for one in claim.comparisons
            ]
            for claim in claims
        ],
        "figures": [figure.spec for figure in figures],
    }
    return fill_page(title, _facts(study), sections, content, library)


def fill_page(
    title: str,
    facts: Mapping[str, str],
    sections: Sequence[tuple[str, str, str]],
    content: Mapping[str, Any],
    library: str,
) -> str:
    """Puts a page together from parts that are markup already.

    Args:
      title: text.
      facts: texts that stand below the title, by what they are.
      sections: (link, id, markup) of each.
      content: what the page's script reads: cells, claims, figures.
      library: JavaScript that defines `vegaEmbed`.
    """
    links = "\n".join(f'<a href="#{name}">{_text(label)}</a>' for label, name, _ in sections)
    told = (
        f"<div><dt>{_text(name)}</dt><dd>{_text(fact)}</dd></div>" for name, fact in facts.items()
    )
    return string.Template(_asset("page.html")).substitute(
        title=_text(title),
        style=_asset("page.css"),
        facts="\n".join(told),
        links=links,
        sections="\n".join(
            f'<section id="{name}">\n{body}\n</section>' for _, name, body in sections
        ),
        data=_json({"cells": [], "claims": [], "figures": []} | dict(content)),
        library=_script(library),
        script=_script(_asset("page.js")),
    )


# --- sections -----------------------------------------------------------------------------------


def _facts(study: Study) -> dict[str, str]:
    status = [cell.status for cell in study.cells]
    steps = sum(cell.lane_steps.total for cell in study.cells)
    return {
        "cells": f"{len(status):,}",
        "learned": f"{sum(one != 'not_learned' for one in status):,}",
        "not learned": f"{status.count('not_learned'):,}",
        "models": str(len({json.dumps(cell.cell["model"]) for cell in study.cells})),
        "tasks": str(len({cell.cell["task"] for cell in study.cells})),
        "training steps": f"{steps:,}",
    }


def sheet_section(sheet: Sheet, numbers: Mapping[str, int], entries: Iterable[int] = ()) -> str:
    """Writes a table with its filter and its legend.

    Args:
      sheet: its rows.
      numbers: of cells by key, for links to them.
      entries: columns that hold N*.
    """
    header = [*sheet.header, *(["cells"] if sheet.cells else [])]
    keys = sheet.cells or [()] * len(sheet.rows)
    if sheet.header[: len(LABELS)] == LABELS and not sheet.cells:
        entries = range(len(LABELS), len(sheet.header))
    entries, rows = set(entries), []
    for row, some in zip(sheet.rows, keys, strict=True):
        cells = [
            _entry(text) if column in entries else _cell(text) for column, text in enumerate(row)
        ]
        if sheet.cells:
            links = " ".join(_cell_link(numbers[key]) for key in some)
            cells.append(f'<td class="links">{links}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f"<h2>{_text(sheet.title)}</h2>\n{_table(f'sheet-{sheet.name}', header, rows)}\n"
        f"{_legend(sheet.legend)}"
    )


def _entry(text: str) -> str:
    """Sets N* apart from what stands behind it: "14 (13, 14] 3/6", "- (N_max 26, universe)"."""
    head, space, tail = text.partition(" ")
    more = f" <small>{_text(tail)}</small>" if space else ""
    mark = ' class="none"' if head == "-" else ""
    return f"<td{mark}><b>{_text(head)}</b>{more}</td>"


def _cell(text: str) -> str:
    wide = ' class="long"' if len(text) > _LONG else ""
    return f"<td{wide}>{_text(text)}</td>"


def _claims_section(study: Study, claims: Sequence[Claim]) -> str:
    rows = []
    for number, claim in enumerate(claims):
        counts, total = claim.counts, max(1, len(claim.comparisons))
        share = "".join(
            f'<i class="{verdict}" style="width:{100 * counts[verdict] / total:.2f}%"></i>'
            for verdict in VERDICTS
        )
        entries = "".join(f"<td>{counts[verdict]}</td>" for verdict in VERDICTS)
        rows.append(
            f'<tr data-open="claim-{number}" tabindex="0"><td>{_text(claim.id)}</td>'
            f'<td class="long">{_text(claim.text)}</td>'
            f'<td><div class="share">{share}</div></td>{entries}</tr>'
        )
    header = ["id", "claim", "share", *VERDICTS]
    note = (
        "Each of the paper's observations, held against every pair of cells that differ in nothing "
        "but what it compares. Open a row for the comparisons and their cells."
    )
    tags = " ".join(f'<span class="tag {one}"></span>{one}&ensp;' for one in VERDICTS)
    return (
        f"<h2>The paper's observations</h2>\n"
        f'<p class="note">{note}</p>\n<p class="note">{tags}</p>\n'
        f"{_table('sheet-claims', header, rows, find=False)}\n{_legend(make_legend(study.cells))}"
    )


def figures_section(legend: Iterable[str], figures: Sequence[Drawn], first: int = 0) -> str:
    """One figure after the other; of those of one task each, the chosen task's.

    Args:
      legend: what the figures depend on.
      figures: in their order.
      first: the place of the first of them among all figures of the page.
    """
    tasks = list(dict.fromkeys(figure.task for figure in figures if figure.task))
    options = "".join(f"<option>{_text(task)}</option>" for task in tasks)
    parts = ["<h2>Figures</h2>"]
    if len(tasks) > 1:
        parts.append(f'<div class="bar"><label>task <select>{options}</select></label></div>')
    for number, figure in enumerate(figures, first):
        parts.append(
            f'<figure data-task="{_text(figure.task)}"><h3>{_text(figure.title)}</h3>'
            f'<div class="chart" data-figure="{number}"></div>'
            f"<figcaption>{_text(figure.note)}</figcaption></figure>"
        )
    parts.append(_legend(legend))
    return "\n".join(parts)


def _cells_section(study: Study) -> str:
    rows = []
    for number, cell in enumerate(study.cells):
        data = cell.cell["data"]
        texts = (
            *(study.labels[cell.cell_key], data["format"], task_of(cell)),
            *(data["length_distribution"], str(data["max_length"])),
        )
        ends = (cell.status.replace("_", " "), f"{cell.max_size}", str(len(cell.probes)))
        rows.append(
            f'<tr id="cell-{number}" data-open="cell-{number}" tabindex="0"><td>{number + 1}</td>'
            f"{''.join(f'<td>{_text(text)}</td>' for text in texts)}{_entry(entry_of(cell))}"
            f"{''.join(f'<td>{_text(text)}</td>' for text in ends)}</tr>"
        )
    header = [
        *("#", "model", "format", "task", "distribution", "L", "N* (bracket]", "status"),
        *("N_max", "probes"),
    ]
    note = "Open a row for every size that was tried, and for what the answer depends on."
    return (
        f'<h2>Cells</h2>\n<p class="note">{note}</p>\n{_table("cells", header, rows)}\n'
        f"{_legend(make_legend(study.cells))}"
    )


# --- parts --------------------------------------------------------------------------------------


def _table(name: str, header: Sequence[str], rows: Sequence[str], find: bool = True) -> str:
    head = "".join(f"<th>{_text(text)}</th>" for text in header)
    search = (
        f'<div class="bar"><input type="search" data-table="{name}" '
        f'placeholder="filter: words that a row must hold" aria-label="filter rows">'
        "<output></output></div>\n"
    )
    return (
        f'{search if find else ""}<div class="scroll"><table class="sheet" id="{name}">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody></table></div>"
    )


def _legend(lines: Iterable[str]) -> str:
    lines = list(lines)
    items = "\n".join(f"<li>{_text(line)}</li>" for line in lines)
    at_sight = " ".join(line for line in lines if line.startswith(_AT_SIGHT))
    return (
        f'<p class="note small">{_text(at_sight)}</p>\n<details><summary>What these numbers mean '
        f"and depend on: chance, versions, devices, cost</summary><ul>\n{items}\n</ul></details>"
    )


def _cell_link(number: int) -> str:
    return f'<a href="#cell-{number}" data-cell="{number}">#{number + 1}</a>'


def _cell_data(cell: CellRecord, probes: Sequence[ProbeRecord]) -> dict[str, Any]:
    """What an opened row shows."""
    runs = {probe.size: probe.runs for probe in probes}
    optim, grid = cell.cell["optim"], cell.cell["grid"]
    facts = {
        "key": cell.cell_key,
        "model": ", ".join(
            f"{name} {text_of(value)}" for name, value in cell.cell["model"].items()
        ),
        "parameters": f"{cell.parameters:,}",
        "budget": f"{optim['steps']} steps, batch {optim['batch_size']}",
        "grid": f"rates {text_of(grid['learning_rates'])}, seeds {text_of(grid['seeds'])}",
        "N_max": f"{cell.max_size}, set by the {cell.limited_by}",
        "chance": " or ".join(dict.fromkeys(f"{level:.3g}" for level in cell.chance)),
        "validation": f"{cell.num_validation} sequences",
        "search": ", ".join(
            f"{name} {text_of(value)}" for name, value in sorted(cell.search.items()) if value != []
        ),
        "contradictions": ", ".join(f"{a} learned, {b} failed" for a, b in cell.contradictions),
        "cost": f"{cell.lane_steps.total:,} steps, {cell.seconds.run:.1f} s",
        "made with": ", ".join(
            f"{name} {cell.environment[name]}"
            for name in ("commit", "jax", "platform", "device")
            if name in cell.environment
        ),
    }
    if (seen := cell.extrapolation) is not None:
        pairs = zip(seen.lengths, seen.rescaled, strict=True)
        facts["accuracy beyond"] = (
            f"{', '.join(f'{length}: {accuracy:.2f}' for length, accuracy in pairs)} "
            f"(rescaled, at N = {seen.size})"
        )
    rows = []
    for probe in cell.probes:
        some = runs.get(probe.size, [])
        steps = [run.steps for run in some if run.outcome == "solved"]
        losses = sorted(run.best_loss for run in some if run.best_loss is not None)
        rows.append(
            [
                *(probe.size, probe.verdict, probe.solved, probe.runs),
                min(steps, default=""),
                *(f"{loss:.2e}" for loss in _spread(losses)),
            ]
        )
    return {"facts": [[name, text] for name, text in facts.items() if text], "probes": rows}


def _spread(values: Sequence[float]) -> list[float]:
    """Returns smallest, middle and largest of sorted values, or none of them."""
    return [values[0], values[len(values) // 2], values[-1]] if values else []


# --- text ---------------------------------------------------------------------------------------


def _text(text: str) -> str:
    return html.escape(str(text))


def _json(content: Any) -> str:
    """Writes JSON that no HTML parser takes for markup."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("&", "\\u0026")


def _script(code: str) -> str:
    """Keeps a string inside a script from ending it."""
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _asset(name: str) -> str:
    return (importlib.resources.files("ib_bench.report") / name).read_text()
