"""Figures hold what the records hold, and are drawn without a browser."""

import json
import re
from xml.etree import ElementTree

import pytest
from made_records import make_cell, make_probe
from made_study import made_study

pytest.importorskip("altair", reason="figures need the extra `report`")
pytest.importorskip("vl_convert", reason="figures need the extra `report`")

from ib_bench.report import figures, make_study  # noqa: E402
from ib_bench.report.sharing_table import sharing_intervals  # noqa: E402


def drawn(study):
    return {one.name: one for one in figures.make_figures(study, sharing_intervals(study))}


def rows(figure):
    return figure.spec["data"]["values"]


@pytest.fixture(scope="module")
def all_figures():
    return drawn(made_study(120))


def test_every_kind_of_figure_is_drawn_as_svg(all_figures):
    assert {name.split("_m_")[0] for name in all_figures} == {
        *("nstar", "nstar_dihedral_4", "accuracy", "accuracy_dihedral_4", "sharing"),
        *("sharing_against_accuracy", "success", "steps_to_solve"),
    }
    for name in ("nstar_m_2", "accuracy_m_3", "sharing", "sharing_against_accuracy", "success"):
        svg = figures.to_svg(all_figures[name])
        assert svg.startswith("<svg") and "NaN" not in svg, name
    assert all(figure.title and figure.note for figure in all_figures.values())


def test_specs_are_plain_json_with_their_data_and_load_nothing(all_figures):
    for figure in all_figures.values():
        text = json.dumps(figure.spec, allow_nan=False)
        assert '"url"' not in text and '"datasets"' not in text


def test_nstar_is_drawn_with_its_bracket_and_what_was_not_learned_at_nmax():
    cells = [make_cell(14, 9), make_cell(None, 0, length=10, max_size=77)]
    (figure,) = drawn(make_study(cells)).values()
    assert figure.task == "m = 5"
    learned, missed = sorted(rows(figure), key=lambda row: row["L"])
    assert (learned["N"], learned["low"], learned["learned"]) == (14, 9, True)
    assert (missed["N"], missed["answer"], missed["learned"]) == (77, "> 77", False)


def test_every_cell_is_in_the_figure_of_its_task(all_figures):
    points = [rows(one) for name, one in all_figures.items() if name.startswith("nstar_")]
    assert sum(row["L"] is not None for some in points for row in some) == 120


def test_a_point_stands_in_the_panel_of_its_model_and_format_whatever_panels_are_empty():
    model = {"name": "transformer"}
    cells = [make_cell(fmt="outcome"), make_cell(fmt="cot"), make_cell(fmt="acot", model=model)]
    runs = {(1e-3, 10): "solved"}
    probes = {cell.cell_key: [make_probe(14, runs, cell)] for cell in (cells[1], cells[2])}
    all_drawn = drawn(make_study(cells, probes))
    assert points_of(all_drawn["steps_to_solve"]) == [[1, 0], [0, 1]]  # lstm cot, transformer acot
    assert points_of(all_drawn["nstar_m_5"]) == [[1, 1, 0], [0, 0, 1]]


def points_of(figure) -> list[list[int]]:
    """Counts the points of every panel as it is drawn, from left to right, from above to below."""
    tree = ElementTree.fromstring(figures.to_svg(figure))
    (panels,) = [one for one in tree.iter() if "role-scope cell" in one.get("class", "")]
    counts = {}
    for panel in panels:
        x, y = re.findall(r"[\d.]+", panel.get("transform"))
        marks = [one for one in panel.iter() if "mark-symbol role-mark" in one.get("class", "")]
        counts[float(y), float(x)] = sum(len(mark) for mark in marks)
    heights = sorted({y for y, _ in counts})
    return [[counts[place] for place in sorted(counts) if place[0] == y] for y in heights]


def test_sharing_bars_are_numbers_or_bounds_with_a_direction():
    part = make_cell(40, 39, length=2)
    cells = [part, make_cell(20, 19, length=2, distribution="uniform")]
    cells += [
        make_cell(None, 0, length=2, fmt="acot", max_size=99),
        make_cell(20, 19, length=2, fmt="acot", distribution="uniform"),
        make_cell(50, 49, length=2, fmt="cot"),
        make_cell(None, 0, length=2, fmt="cot", distribution="uniform", max_size=99),
    ]
    bars = {row["format"]: row for row in rows(drawn(make_study(cells))["sharing"])}
    assert {name: (row["kappa"], row["kind"]) for name, row in bars.items()} == {
        "outcome": (2, "value"),
        "acot": (5, "at least"),
        "cot": (0.5, "at most"),
    }


def test_success_curves_are_drawn_only_where_no_run_was_cancelled():
    cell, other = make_cell(), make_cell(fmt="acot")
    ends = {
        10: ["exhausted"] * 3,
        14: ["solved", "exhausted", "exhausted"],
        20: ["solved"] * 3,
    }
    probes = {
        one.cell_key: [
            make_probe(size, {(1e-3, seed): end for seed, end in enumerate(some)}, one)
            for size, some in ends.items()
        ]
        for one in (cell, other)
    }
    cut = {(1e-3, 0): "solved", (1e-3, 1): "cancelled"}
    probes[other.cell_key].append(make_probe(40, cut, other))
    figure = drawn(make_study([cell, other], probes))["success"]
    (title,) = {row["cell"] for row in rows(figure)}
    assert re.fullmatch(r"lstm outcome m = 5 fixed L=5: N50 14 \(.* to .*\)", title)
    shares = {row["N"]: row["share"] for row in rows(figure) if "share" in row}
    assert shares == {10: 0, 14: pytest.approx(1 / 3), 20: 1}


def test_steps_are_those_of_the_fastest_solved_run():
    cell = make_cell()
    runs = {(1e-3, 10): "solved", (1e-3, 20): "exhausted"}
    figure = drawn(make_study([cell], {cell.cell_key: [make_probe(14, runs, cell)]}))
    assert [(row["N"], row["steps"]) for row in rows(figure["steps_to_solve"])] == [(14, 500)]
    assert "no trajectories" in figure["steps_to_solve"].note
