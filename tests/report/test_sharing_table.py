"""The sharing table shows each factor with its parts, its interval and what it cannot say."""

from made_records import make_cell, make_probe

from ib_bench.report.sharing_table import sharing_intervals, sharing_sheet
from ib_bench.report.study import make_study
from ib_bench.results import Extrapolation


def sheet_of(*cells, probes=None):
    study = make_study(cells, probes)
    return sharing_sheet(study, sharing_intervals(study))


def test_a_row_has_kappa_brackets_interval_parts_and_accuracy():
    seen = Extrapolation(820, 1e-3, 10, [6], [0.6], [0.2], 2000)
    cells = [
        make_cell(30, 27, length=2),
        make_cell(90, 81, length=3),
        make_cell(40, 36, length=3, distribution="uniform", extrapolation=seen),
    ]
    runs = {(1e-3, seed): "solved" for seed in (10, 20)}
    probes = {cell.cell_key: [make_probe(cell.nstar, runs, cell)] for cell in cells}
    table = sheet_of(*cells, probes=probes)
    (row,) = table.rows
    assert dict(zip(table.header, row, strict=True)) == {
        **{"model": "lstm", "format": "outcome", "task": "m = 5", "L": "3"},
        **{"kappa": "3", "brackets": "2.75 to 3.24", "resampled": "3", "N* joint": "40"},
        **{"N* parts": "2: 30, 3: 90", "missing": "", "accuracy at 2L": "0.50"},
        "paper's kappa": "",
    }
    assert set(table.cells[0]) == {cell.cell_key for cell in cells}
    assert any("does not" in line or "not seeds never tried" in line for line in table.legend)
    assert any(line.startswith("Budget: 3000 steps") for line in table.legend)


def test_bounds_are_shown_with_what_makes_them_bounds():
    part = make_cell(None, 0, length=2, max_size=39)
    joint = make_cell(20, 19, length=2, distribution="uniform")
    (row,) = sheet_of(part, joint).rows
    assert row[4:9] == ("> 2", "> 2", "> 2", "20", "2: > 39")


def test_missing_parts_are_named_and_leave_no_number():
    joint = make_cell(20, 19, length=4, distribution="uniform")
    (row,) = sheet_of(make_cell(9, 8, length=3), joint).rows
    assert row[4:7] == ("?", "", "") and row[9] == "2 4"


def test_a_study_without_parts_says_so():
    table = sheet_of(make_cell())
    assert not table.rows
    assert table.legend[0].startswith("No uniform cell of this study has a fixed cell")
