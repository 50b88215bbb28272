"""The board: one offline page and one Markdown table a track, from checked submissions."""

import json
import pathlib
from collections.abc import Sequence

from ib_bench.files import write_whole
from ib_bench.leaderboard.ranking import Entry, rank
from ib_bench.leaderboard.submission import Submission
from ib_bench.leaderboard.tracks import TRACKS, Track, load_track
from ib_bench.metrics.profile import MOST_TAU
from ib_bench.report import sheet
from ib_bench.report.folder import missing_packages
from ib_bench.report.legend import make_legend
from ib_bench.report.names import text_of
from ib_bench.report.page import figures_section, fill_page, sheet_section
from ib_bench.report.sheet import Sheet
from ib_bench.report.tables import entry_of, short
from ib_bench.results import CellRecord
from ib_bench.specs import CellSpec

_HIGH = 0.9  # rescaled accuracy that counts as generalising
_MISSING = "missing"
_RANKING = (
    *("rank", "model", "score", "parameters", "learned", "within 2x", "kappa outcome"),
    *("kappa acot", "2L", "cells", "lane-steps", "device", "versions", "commit", "verified"),
)
_RANKING_LEGEND = (
    f"score: area under the performance profile over log tau, from 1 to {MOST_TAU:g}; 1 is the "
    "best N* in every cell. Up to: if every N* were at the lower end of its bracket.",
    "rank: 1 and the number of models whose score is above the highest that this one's brackets "
    "allow; models that the brackets do not tell apart share a rank, marked =.",
    "learned: cells learned of those asked; one that is not learned counts as infinite, one that "
    "is missing too, and is shown as missing. A cell that no model learned counts for none.",
    "within 2x: share of cells with N* at most twice the best model's.",
    "kappa: sharing factor of modular addition, m = 5, in either format (paper, section 4).",
    f"2L: cells of mixed lengths with a rescaled accuracy of at least {_HIGH:g} at twice the "
    "training length.",
    "verified: a maintainer has run cells again and found what the records say. All others are "
    "checked for consistency only: every number follows from the submitted runs.",
)


def write_board(
    submissions: Sequence[Submission], verified: dict[str, str], out: pathlib.Path
) -> list[pathlib.Path]:
    """Writes README.md, and index.html and profiles.svg where Altair is installed.

    Args:
      submissions: checked ones.
      verified: hashes of records that a rerun has confirmed, by submission.
      out: the folder.

    Returns:
      The paths of what was written.

    Raises:
      ValueError: there is no submission.
    """
    if not submissions:
        raise ValueError("submissions: none; pack one with ib_bench submit pack")
    boards = []
    for name in TRACKS:
        some = [one for one in submissions if one.description.track == name]
        if some:
            track = load_track(name)
            boards.append((track, rank(some, track, verified)))
    files = {"README.md": _markdown(boards)}
    if not missing_packages():
        from ib_bench.report import figures  # imports Altair

        drawn = [
            figures.profile_figure(_curves(entries), MOST_TAU, f"profiles_{track.name}")
            for track, entries in boards
        ]
        files |= {f"{figure.name}.svg": figures.to_svg(figure) for figure in drawn}
        files["index.html"] = _page(boards, drawn, figures.library())
    for name, text in files.items():
        write_whole(out / name, text)
    return [out / name for name in files]


# --- tables -------------------------------------------------------------------------------------


def ranking_sheet(track: Track, entries: Sequence[Entry]) -> Sheet:
    """Lays out one model a row, the best first."""
    ranks = [entry.rank for entry in entries]
    rows = tuple(_ranking_row(track, entry, ranks.count(entry.rank) > 1) for entry in entries)
    legend = (*_RANKING_LEGEND, *make_legend(_cells(entries)))
    return Sheet(f"{track.name}-ranking", f"Track {track.name}", _RANKING, rows, legend)


def _ranking_row(track: Track, entry: Entry, tied: bool) -> tuple[str, ...]:
    cells, profile = list(entry.cells.values()), entry.profile
    kappa = {one.joint.cell["data"]["format"]: one.bounds.text for one in entry.sharing}
    accuracies = entry.accuracies.values()
    score = f"{profile.score:.2f}"
    if (highest := f"{profile.highest_score:.2f}") != score:
        score += f" (up to {highest})"
    return (
        f"{entry.rank}=" if tied else str(entry.rank),
        entry.title,
        score,
        _range([cell.parameters for cell in cells]),
        f"{sum(cell.nstar is not None for cell in cells)} of {len(track.cells)}",
        f"{profile.share(2):.0%}",
        kappa.get("outcome", ""),
        kappa.get("acot", ""),
        f"{sum(value >= _HIGH for value in accuracies)} of {len(accuracies)}",
        f"{len(cells)} of {len(track.cells)}",
        short(sum(cell.lane_steps.total for cell in cells)),
        _values(cells, "device"),
        ", ".join(f"{name} {_values(cells, name)}" for name in ("ib_bench", "jax")),
        " ".join(sorted({cell.environment["commit"][:7] for cell in cells})),
        "verified" if entry.verified else "",
    )


def nstar_sheet(track: Track, entries: Sequence[Entry]) -> Sheet:
    """N* of every cell: models are rows, the track's cells columns."""
    columns = _columns(track, list(track.cells))
    rows = tuple(
        (
            entry.title,
            *(
                entry_of(entry.cells[question]) if question in entry.cells else _MISSING
                for question in track.cells
            ),
        )
        for entry in entries
    )
    legend = ("missing: the submission has no answer.", *make_legend(_cells(entries)))
    title = f"N*, track {track.name}"
    return Sheet(f"{track.name}-nstar", title, ("model", *columns), rows, legend)


def accuracy_sheet(track: Track, entries: Sequence[Entry]) -> Sheet:
    """Rescaled accuracy at 2L of the cells of mixed lengths."""
    questions = [q for q in track.cells if any(q in entry.accuracies for entry in entries)]
    rows = tuple(
        (
            entry.title,
            *(
                f"{entry.accuracies[question]:.2f}"
                if question in entry.accuracies
                else ("" if question in entry.cells else _MISSING)
                for question in questions
            ),
        )
        for entry in entries
    )
    legend = (
        "Accuracy at twice the training length, (accuracy - chance) / (1 - chance), of the run "
        "with the lowest validation loss at the largest N that was tried and has one.",
        *make_legend(_cells(entries)),
    )
    title = f"Accuracy at 2L, track {track.name}"
    header = ("model", *_columns(track, questions))
    return Sheet(f"{track.name}-accuracy", title, header, rows, legend)


def _submissions_sheet(track: Track, entries: Sequence[Entry]) -> Sheet:
    rows = []
    for entry in entries:
        said = entry.submission.description
        model = dict(entry.submission.cells[0].cell["model"])
        name = model.pop("name")
        settings = ", ".join(f"{key} {text_of(value)}" for key, value in model.items())
        rows.append((said.title, said.authors, said.description, f"{name}: {settings}", said.url))
    header = ("model", "authors", "description", "settings", "link")
    legend = ("What submitters say of their models; nobody has checked it.",)
    title = f"Submissions, track {track.name}"
    return Sheet(f"{track.name}-submissions", title, header, tuple(rows), legend)


def _columns(track: Track, questions: Sequence[str]) -> list[str]:
    return [_short_label(track.cells[question]) for question in questions]


def _short_label(cell: CellSpec) -> str:
    data = cell.data
    distribution = "" if data.length_distribution == "uniform" else f" {data.length_distribution}"
    task = cell.task.replace("modular_addition(", "m = ").replace("permutation_composition(", "S_")
    return f"{data.format} {task.removesuffix(')')} L={data.max_length}{distribution}"


def _cells(entries: Sequence[Entry]) -> list[CellRecord]:
    return [cell for entry in entries for cell in entry.cells.values()]


def _values(cells: Sequence[CellRecord], key: str) -> str:
    return ", ".join(sorted({str(cell.environment[key]) for cell in cells}))


def _range(values: Sequence[int]) -> str:
    ends = dict.fromkeys(f"{value:,}" for value in (min(values), max(values)))
    return " to ".join(ends)


def _curves(entries: Sequence[Entry]) -> dict[str, tuple[float, ...]]:
    titles = [entry.title for entry in entries]
    return {
        entry.title
        if titles.count(entry.title) == 1
        else f"{entry.title} ({entry.submission.description.name})": entry.profile.ratios
        for entry in entries
    }


# --- Markdown and page --------------------------------------------------------------------------


def _markdown(boards: Sequence[tuple[Track, list[Entry]]]) -> str:
    parts = [
        "# Leaderboard",
        "",
        "How many training sequences a model needs before it tracks state. Written by "
        "`ib_bench leaderboard` from `submissions/`; do not edit. How to enter: "
        "[docs/bring_your_model.md](../docs/bring_your_model.md). With sorting, filters and the "
        "chart that can be pointed at: `index.html`.",
    ]
    for track, entries in boards:
        ranking = ranking_sheet(track, entries)
        parts += ["", f"## {ranking.title}", "", f"![Profiles](profiles_{track.name}.svg)", ""]
        parts += [sheet.to_markdown(ranking), "", "### N*", ""]
        parts += [sheet.to_markdown(_without_legend(nstar_sheet(track, entries)))]
        parts += ["### Accuracy at 2L, rescaled", ""]
        parts += [sheet.to_markdown(_without_legend(accuracy_sheet(track, entries)))]
    return "\n".join(parts)


def _without_legend(one: Sheet) -> Sheet:
    return Sheet(one.name, one.title, one.header, one.rows, ())


def _page(boards: Sequence[tuple[Track, list[Entry]]], drawn, library: str) -> str:
    sections = []
    for number, (track, entries) in enumerate(boards):
        nstar, accuracy = nstar_sheet(track, entries), accuracy_sheet(track, entries)
        figure = figures_section(make_legend(_cells(entries)), [drawn[number]], first=number)
        sections += [
            (f"Track {track.name}", track.name, sheet_section(ranking_sheet(track, entries), {})),
            ("Profiles", f"{track.name}-profiles", figure),
            ("N*", f"{track.name}-cells", sheet_section(nstar, {}, range(1, len(nstar.header)))),
            ("Accuracy at 2L", f"{track.name}-2l", sheet_section(accuracy, {})),
            (
                "Submissions",
                f"{track.name}-said",
                sheet_section(_submissions_sheet(track, entries), {}),
            ),
        ]
    everyone = [entry for _, entries in boards for entry in entries]
    facts = {
        "submissions": str(len(everyone)),
        "verified": str(sum(entry.verified for entry in everyone)),
        "cells": f"{len(_cells(everyone)):,}",
        "training steps": f"{sum(cell.lane_steps.total for cell in _cells(everyone)):,}",
        "tracks": " ".join(track.name for track, _ in boards),
    }
    content = {"figures": [figure.spec for figure in drawn]}
    return fill_page("Leaderboard", facts, sections, content, library)


def read_verified(path: pathlib.Path) -> dict[str, str]:
    """Returns the hashes that maintainers have confirmed by a rerun, by submission."""
    return json.loads(path.read_text()) if path.is_file() else {}
