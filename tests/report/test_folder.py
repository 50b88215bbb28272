"""A report is a folder of files, whole or without what its packages are missing for."""

import importlib.util

import pytest
from made_records import make_cell, make_probe

from ib_bench.report import folder, make_study, nstar_table, read_study, to_csv, to_markdown
from ib_bench.report.folder import write_full_report
from ib_bench.results import Store

LIGHT = [
    *("nstar.md", "nstar.csv", "claims.md", "claims.csv", "sharing.md", "sharing.csv"),
    *("paper.md", "paper.csv", "tables/table3.md", "tables/table3.csv"),
]
CELL = make_cell(task="modular_addition(2)")


def written(directory):
    paths = write_full_report(make_study([CELL]), directory, "study")
    assert all(path.exists() for path in paths)
    return [str(path.relative_to(directory)) for path in paths]


def test_without_the_packages_markdown_and_csv_still_come(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "missing_packages", lambda: ["altair"])
    assert written(tmp_path) == LIGHT
    assert (tmp_path / "nstar.md").read_text() == to_markdown(nstar_table([CELL]))
    assert (tmp_path / "nstar.csv").read_text() == to_csv([CELL])


def test_with_the_packages_the_page_and_the_figures_come_too(tmp_path):
    if folder.missing_packages():
        pytest.skip("needs the extra `report`")
    assert written(tmp_path) == [*LIGHT, "figures/nstar_m_2.svg", "index.html"]
    assert (tmp_path / "index.html").read_text().count("vegaEmbed") > 1


def test_what_is_missing_is_named_by_its_package(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert folder.missing_packages() == ["altair", "vl-convert-python"]


def test_every_markdown_file_says_on_what_its_numbers_depend(tmp_path):
    write_full_report(make_study([CELL]), tmp_path, "study")
    for path in (*tmp_path.glob("*.md"), *tmp_path.glob("tables/*.md")):
        text = path.read_text()
        assert "Budget: 3000 steps, batch 64." in text and "Chance level" in text, path


def test_a_study_is_read_with_all_of_its_runs(tmp_path):
    store = Store(tmp_path)
    store.write(CELL)
    probe = make_probe(14, {(1e-3, 10): "solved"}, CELL)
    store.write(probe)
    study = read_study([store])
    assert study.cells == (CELL,) and study.probes == {CELL.cell_key: [probe]}


def test_several_workdirs_are_one_study_and_a_cell_in_both_is_told(tmp_path, caplog):
    first, second = Store(tmp_path / "a"), Store(tmp_path / "b")
    other = make_cell(20, 19, fmt="acot")
    first.write(CELL)
    second.write(make_cell(99, 98, task="modular_addition(2)"))
    second.write(other)
    study = read_study([first, second])
    assert {cell.nstar for cell in study.cells} == {14, 20}
    assert "1 cells of" in caplog.text and CELL.cell_key in caplog.text


def test_workdirs_without_finished_cells_are_an_error_with_a_fix(tmp_path):
    with pytest.raises(ValueError, match="holds no finished cells; run `ib_bench run"):
        read_study([Store(tmp_path)])
