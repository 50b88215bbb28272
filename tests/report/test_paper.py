"""The paper's numbers stand beside the cells they belong to, and beside no others."""

import pytest
from made_records import make_cell

from ib_bench.report import sheet
from ib_bench.report.paper import (
    Reference,
    find_accuracy_at_twice,
    find_kappa,
    find_nstar,
    paper_numbers,
)
from ib_bench.report.paper_tables import paper_sheet, paper_tables
from ib_bench.report.study import make_study
from ib_bench.results import Extrapolation

LSTM = {"hidden": 256}
DEEP = {"name": "transformer", "hidden": 256, "layers": 6, "heads": 4}
SHALLOW = DEEP | {"layers": 2}
PARITY = "modular_addition(2)"


def test_the_numbers_carry_their_source():
    assert paper_numbers()["source"] == "arXiv 2602.18333"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (
            {"model": LSTM, "task": PARITY, "length": 10, "distribution": "uniform"},
            Reference(34, "table 3", True),
        ),
        (
            {"model": LSTM, "task": "modular_addition(3)", "length": 20},
            Reference(None, "table 3", True),
        ),
        ({"task": PARITY}, Reference(14, "table 3", False)),  # another width
        (
            {"model": DEEP, "task": PARITY, "length": 10},
            Reference(364, "table 1, placement inferred", True),
        ),
        (
            {"model": SHALLOW, "task": PARITY, "length": 10, "distribution": "short_to_long"},
            Reference(971, "table 4, placement inferred", True),
        ),
        (
            {"model": DEEP, "length": 20, "fmt": "acot"},
            Reference(2_000_000, "observation 3.1, distribution not stated", True),
        ),
    ],
)
def test_nstar_is_found_by_model_task_format_length_and_distribution(cell, expected):
    assert find_nstar(make_cell(**cell)) == expected


@pytest.mark.parametrize(
    "cell",
    [
        {"model": LSTM, "length": 8},
        {"model": LSTM, "fmt": "acot"},
        {"model": LSTM, "task": "modular_addition(7)"},
        {"model": LSTM, "task": "permutation_composition(5)"},
        {"model": DEEP | {"layers": 4}, "task": PARITY, "length": 10},
        {"model": {"name": "dense_ssm"}},
    ],
)
def test_where_the_paper_has_no_number_there_is_none(cell):
    assert find_nstar(make_cell(**cell)) is None


def test_kappa_and_accuracy_are_found_too():
    assert find_kappa(make_cell(model=DEEP, fmt="cot")) == Reference(
        0.28, "figure 6, L not stated", True
    )
    assert find_kappa(make_cell(model=DEEP)) is None
    cell = make_cell(model=DEEP, task="modular_addition(3)", length=10, distribution="uniform")
    assert find_accuracy_at_twice(cell) == Reference(0.04, "table 2", True)


def test_an_entry_is_ours_the_papers_and_their_ratio_where_the_model_has_the_papers_size():
    cells = [
        make_cell(28, 27, model=LSTM, task=PARITY),
        make_cell(52, 50, model=LSTM, task=PARITY, distribution="uniform"),
        make_cell(None, 0, model=LSTM, task=PARITY, length=10),
        make_cell(28, 27, model={"hidden": 8}, task=PARITY),
        make_cell(9, 8, model=LSTM, task=PARITY, length=8),
    ]
    (table,) = paper_tables(make_study(cells))
    assert (table.name, table.title[:8]) == ("table3", "Table 3:")
    assert table.header[3:] == ("fixed L=5", "fixed L=8", "fixed L=10", "uniform L=5")
    assert [row[3:] for row in table.rows] == [
        ("28 (paper 14)", "", "", ""),
        ("28 (paper 14, x2)", "9", "- (paper 202)", "52 (paper 26, x2)"),
    ]
    assert "250,000 steps" in table.legend[0]
    assert any(line.startswith("Budget: 3000 steps") for line in table.legend)


def test_transformers_are_in_tables_1_2_and_4_by_depth_and_what_was_evaluated():
    seen = Extrapolation(820, 1e-3, 10, [20], [0.55], [0.5], 2000)
    deep = make_cell(400, 390, model=DEEP, task=PARITY, length=10, extrapolation=seen)
    shallow = make_cell(600, 590, model=SHALLOW, task=PARITY, length=10)
    tables = {table.name: table for table in paper_tables(make_study([deep, shallow]))}
    assert {name: [row[3] for row in table.rows] for name, table in tables.items()} == {
        "table1": ["400 (paper 364*, x1.1)"],
        "table2": ["0.10 (paper 0.00)"],
        "table4": ["600 (paper 594*, x1)"],
    }


def test_the_list_holds_only_cells_that_the_paper_has_a_number_for():
    cells = [make_cell(28, 27, model=LSTM, task=PARITY), make_cell(length=8)]
    listed = paper_sheet(make_study(cells))
    assert listed.cells == ((cells[0].cell_key,),)
    (row,) = listed.rows
    assert row[5:8] == ("28", "14", "2") and row[-2:] == ("table 3", "yes")
    assert sheet.to_csv(listed).splitlines()[1].endswith(cells[0].cell_key)
