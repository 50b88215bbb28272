"""What the benchmarks count: operations of a step, runs a stall rule would stop; their tables."""

import json
import pathlib

import pytest

from benchmarks import costs, products
from benchmarks.layouts import LAYOUTS
from benchmarks.output import describe_machine, write_json
from benchmarks.readme import FOLDER, READMES, fill_in
from benchmarks.rows import ROWS, Row
from benchmarks.stall_rule import judge, stops


def run_of(train, loss):
    return {"train": train, "loss": loss}


def test_a_run_stalls_once_it_has_fitted_and_waited():
    run = run_of([1.0, 1e-5, 1e-5, 1e-5, 1e-5], [0.5, 0.4, 0.6, 0.7, 0.8])
    assert list(stops(run, 250, 500)) == [1000, 1250]
    assert list(stops(run, 250, 1000)) == []


def test_a_run_that_still_improves_or_has_not_fitted_does_not_stall():
    assert list(stops(run_of([1e-5] * 4, [0.4, 0.3, 0.2, 0.1]), 250, 250)) == []
    assert list(stops(run_of([1.0] * 4, [0.4, 0.5, 0.6, 0.7]), 250, 250)) == []


def test_a_rule_is_judged_by_what_it_loses_and_what_it_saves():
    late = run_of([1e-5] * 4, [0.3, 0.4, 0.5, 1e-5])  # solved after it seemed to be over
    soon = run_of([1e-5] * 2, [0.3, 1e-5])
    never = run_of([1e-5] * 8, [0.3, *[0.4] * 7])
    found = judge([{"eval_every": 250, "runs": [late, soon, never]}], patience=500)
    assert (found.solved, found.lost) == (2, 1)
    assert (found.steps, found.kept) == (2000, 750)


def test_operations_are_those_of_the_matrix_products():
    lstm = Row("lstm", 32, 5)
    assert lstm.flops == 3 * (2 * 64 * 5 * 32 * 128 + 2 * 5 * 32 * 128 + 2 * 64 * 5 * 32 * 5)
    deep = Row("transformer", 64, 5, "cot", layers=2, heads=2)
    rows = 64 * 10
    layer = 2 * rows * 12 * 64**2 + 4 * rows * 10 * 64
    assert deep.flops == pytest.approx(3 * (2 * layer + 2 * rows * 64 * 5))


def test_products_are_measured_one_by_one():
    row = products.measure((4, 3, 2), rounds=1, with_pytorch=False)
    assert row["name"] == "4 x 3 by 3 x 2"
    assert min(row[name] for name in ("forward", "rows", "weights")) > 0


def test_rows_have_names_of_their_own():
    assert len({row.name for row in ROWS}) == len(ROWS) == 14


def test_a_table_is_put_between_its_marks_and_the_text_around_it_stays(tmp_path):
    row = {"name": "paper", "failed": 3.756, "learned": 8.5, "cost": 196.3, "cost_share": 1.0}
    about = describe_machine(peak=100.4) | {"date": "2026-11-30", "commit": "0123456789" * 4}
    write_json(str(tmp_path / "policies.json"), about, [row])
    text = "before\n<!-- policies -->old<!-- /policies -->\nafter <!-- lanes --><!-- /lanes -->"
    found = fill_in(text, tmp_path)
    assert found.startswith("before\n") and "old" not in found
    assert "| paper | 3.76 | 8.50 | 196.3 | - | 100% |" in found
    assert "Measured 2026-11-30" in found and "peak 100 GFLOP/s" in found
    assert "commit 01234567." in found
    assert found.endswith("Not measured yet.\n\n<!-- /lanes -->")
    assert fill_in(found, tmp_path) == found


def test_the_tables_of_the_readme_are_those_that_were_measured():
    texts = [readme.read_text() for readme in READMES]
    for text in texts:
        assert fill_in(text, FOLDER / "measured") == text
    for name in LAYOUTS:
        assert f"<!-- {name} -->" in "".join(texts)


def test_every_measured_row_has_a_name_and_says_where_it_was_measured():
    paths = list(pathlib.Path(FOLDER / "measured").glob("*.json"))
    assert paths
    for path in paths:
        found = json.loads(path.read_text())
        assert {"date", "cores", "python", "jax", "commit"} <= set(found["about"])
        assert all("name" in row for row in found["rows"])


@pytest.mark.parametrize("name", costs.PRESETS)
def test_a_preset_of_the_paper_says_what_it_costs_and_has_a_small_form(name):
    path = pathlib.Path(costs.__file__).parent.parent / "configs" / "paper" / f"{name}.py"
    text = path.read_text()
    assert costs.describe(name) in text, "run `python -m benchmarks.costs --write`"
    for argument, end in (("", ""), (":small", "_small")):
        command = f"ib_bench run --config=configs/paper/{name}.py{argument} "
        assert f"{command}--workdir=results/{name}{end}\n" in text
