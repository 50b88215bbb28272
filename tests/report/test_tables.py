"""The N* table says what the records say: all of it, once, and with what it depends on."""

import csv
import io
import subprocess
import sys

import pytest
from made_records import ENVIRONMENT, make_cell
from rich.console import Console

from ib_bench.report import (
    finished_cells,
    nstar_table,
    print_table,
    to_csv,
    to_markdown,
    write_report,
)
from ib_bench.results import CellRecord, Seconds, Store


def entries(*cells: CellRecord) -> list[str]:
    """All entries of the table, row after row."""
    return [entry for row in nstar_table(cells).rows for entry in row.entries]


def legend_of(*cells: CellRecord) -> str:
    return "\n".join(nstar_table(cells).legend)


def printed(*cells: CellRecord, width: int = 100) -> str:
    console = Console(width=width, file=io.StringIO())
    print_table(nstar_table(cells), console)
    return console.file.getvalue()


# --- layout -------------------------------------------------------------------------------------


def test_columns_are_the_papers_distributions_each_with_its_lengths_ascending():
    places = [("uniform", 10), ("short_to_long", 5), ("fixed", 20), ("uniform", 5), ("fixed", 10)]
    table = nstar_table([make_cell(distribution=name, length=length) for name, length in places])
    assert [column.label for column in table.columns] == [
        *("fixed L=10", "fixed L=20", "uniform L=5", "uniform L=10", "short_to_long L=5")
    ]
    assert len(table.rows) == 1


def test_rows_are_model_then_format_then_task_with_moduli_in_numeric_order():
    cells = [
        make_cell(task="permutation_composition(5)"),
        make_cell(task="modular_addition(10)"),
        make_cell(task="modular_addition(5)"),
        make_cell(fmt="acot"),
        make_cell(fmt="cot"),
        make_cell(model={"name": "dense_ssm"}),
    ]
    assert [row.labels for row in nstar_table(cells).rows] == [
        ("dense_ssm", "outcome", "m = 5"),
        ("lstm", "outcome", "m = 5"),
        ("lstm", "outcome", "m = 10"),
        ("lstm", "outcome", "permutation_composition(5)"),
        ("lstm", "cot", "m = 5"),
        ("lstm", "acot", "m = 5"),
    ]


# --- entries ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nstar", "text"),
    [
        *((1, "1"), (14, "14"), (999, "999"), (1000, "1K"), (1262, "1.3K"), (15_962, "16K")),
        *((413_000, "410K"), (999_999, "1M"), (1_998_276, "2M"), (16_000_000, "16M")),
    ],
)
def test_sizes_are_written_as_in_the_paper_and_brackets_in_full(nstar, text):
    assert entries(make_cell(nstar, nstar - 1)) == [f"{text} ({nstar - 1}, {nstar}]"]


def test_a_cell_that_is_not_learned_differs_from_one_that_is_missing():
    not_learned = make_cell(None, 0, max_size=26, length=10)
    missing_at_5 = make_cell(task="modular_addition(2)", length=10)
    table = nstar_table([make_cell(), not_learned, missing_at_5])
    assert table.rows[0].entries == ("", "14 (13, 14]")
    assert table.rows[1].entries == ("14 (13, 14]", "- (N_max 26, universe)")


def test_a_large_limit_is_written_short_with_its_reason():
    cell = make_cell(None, 0, max_size=192_000, limited_by="search.max_size")
    assert entries(cell) == ["- (N_max 190K, search.max_size)"]


def test_the_success_rate_is_shown_only_where_all_runs_went_to_their_end():
    assert entries(make_cell(confirmed=True, solved=2)) == ["14 (13, 14] 2/6"]
    assert entries(make_cell(confirmed=False, solved=2)) == ["14 (13, 14]"]


def test_saturated_cells_are_marked():
    assert entries(make_cell(status="saturated")) == ["14 (13, 14] saturated"]
    assert "Saturated: learned only with every" in legend_of(make_cell(status="saturated"))


def test_contradictions_are_marked_and_spelled_out_below():
    cell = make_cell(contradictions=[[14, 20], [14, 26]])
    assert entries(cell) == ["14 (13, 14] !"]
    assert "lstm outcome m = 5 fixed L=5: 14 learned, 20 failed, 14 learned, 26 failed" in (
        legend_of(cell)
    )
    assert "!" not in legend_of(make_cell())


# --- every record once --------------------------------------------------------------------------


def labels(*cells: CellRecord) -> list[str]:
    return [row.model for row in nstar_table(cells).rows]


def test_settings_that_differ_are_in_the_label_and_others_are_not():
    assert labels(make_cell(), make_cell(length=10)) == ["lstm"]
    wide = make_cell(model={"hidden": 256}, optim={"steps": 9000})
    assert labels(make_cell(), wide) == [
        "lstm (hidden=64, steps=3000)",
        "lstm (hidden=256, steps=9000)",
    ]


def test_a_row_never_mixes_settings_even_where_no_entry_is_shared():
    cells = [make_cell(), make_cell(length=10, optim={"steps": 9000})]
    assert labels(*cells) == ["lstm (steps=3000)", "lstm (steps=9000)"]


def test_a_models_settings_are_compared_with_its_own_kind_only():
    cells = [make_cell(), make_cell(model={"name": "transformer", "hidden": 256, "layers": 2})]
    assert labels(*cells) == ["lstm", "transformer"]


def test_records_that_meet_in_one_entry_are_told_apart_by_search_padding_or_number():
    exact = {"policy": "cost_aware", "tolerance": 0.0}
    assert labels(make_cell(), make_cell(search=exact)) == [
        "lstm (tolerance=0.05)",
        "lstm (tolerance=0.0)",
    ]
    assert labels(make_cell(), make_cell(data={"padded_length": 8})) == [
        "lstm (padded_length=5)",
        "lstm (padded_length=8)",
    ]
    assert labels(make_cell(), make_cell()) == ["lstm (record=1)", "lstm (record=2)"]


def test_every_record_is_in_exactly_one_entry():
    cells = [
        make_cell(100 + k, 99, length=5 + k % 2, optim={"steps": 1000 * (k % 3)}, data=data)
        for k, data in enumerate([{}, {"padded_length": 32}, {"padded_states": 7}] * 6)
    ]
    assert sorted(filter(None, entries(*cells))) == sorted(
        f"{cell.nstar} (99, {cell.nstar}]" for cell in cells
    )


# --- legend -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fact",
    [
        "N* (a, b]: N* = b is the smallest number",
        "Learned: at least one run reaches validation loss < 0.0001",
        "Cells: 2; 1 learned, 0 saturated, 1 not learned.",
        "m = 5: 0.2 to 0.25, m = 10: 0.1",
        "lstm hidden 64, 17221 to 20000 parameters",
        "Budget: 3000 steps, batch 64. Validation: 205 sequences.",
        "learning rates 0.001 0.0001 x seeds 10 20 30; runs a size: 6.",
        "Search: cost_aware, tolerance 0.05.",
        "Protocol: version 1. Commit: 0123abc.",
        "python 3.11.2, ib_bench 0.1.0, jax 0.10.0, jaxlib 0.10.1, flax 0.12.0, optax 0.2.6",
        "numpy 2.3.0, chex 0.1.91.",
        "Devices: 2 x TFRT_CPU (cpu; map, 8 lanes each).",
        "2000 lane-steps: 80 % useful, 15 % cancelled, 5 % idle",
    ],
)
def test_the_legend_names_all_that_a_result_depends_on(fact):
    other = make_cell(None, 9, task="modular_addition(10)", chance=[0.1], parameters=20000)
    assert fact in legend_of(make_cell(), other)


def test_the_legend_says_where_runs_may_end_as_stalled():
    assert "Stalled" not in legend_of(make_cell())
    assert "ends 500 steps (0: never) after" in legend_of(make_cell(optim={"stall": 500}))


def test_the_legend_lists_every_value_where_records_disagree():
    other = make_cell(
        length=10,
        optim={"steps": 10_000, "threshold": 1e-3},
        search={"policy": "paper", "tolerance": 0},
        environment=ENVIRONMENT | {"jax": "0.9.0", "commit": "4567def"},
    )
    legend = legend_of(make_cell(), other)
    assert "3000 or 10000 steps" in legend
    assert "loss < 0.0001 or 0.001" in legend
    assert "cost_aware, tolerance 0.05 or paper, tolerance 0" in legend
    assert "jax 0.9.0 or 0.10.0" in legend
    assert "Commit: 0123abc or 4567def" in legend


def test_a_program_that_many_cells_share_is_compiled_once():
    fixed, uniform = make_cell(), make_cell(distribution="uniform")
    other = make_cell(fmt="cot", seconds=Seconds(5.0, 9.5))
    assert "3 s compiling, 201 s running" in legend_of(fixed, uniform)
    assert "8 s compiling, 210 s running" in legend_of(fixed, uniform, other)


def test_an_unknown_environment_is_said_to_be_unknown():
    legend = legend_of(make_cell(environment={}, search={}, chance=[], probes=[]))
    assert "Commit: unknown" in legend and "jax unknown" in legend
    assert "? x unknown (?; ?, ? lanes each)" in legend


# --- markdown -----------------------------------------------------------------------------------


def test_golden_markdown():
    """The table's own lines, letter by letter; who changes them tags [Report] in the CHANGELOG."""
    cells = [
        make_cell(1262, 1201, confirmed=True),
        make_cell(None, 0, length=10),
        make_cell(26, 20, task="modular_addition(2)", status="saturated", distribution="uniform"),
    ]
    table, _, legend = to_markdown(nstar_table(cells)).partition("\n\n")
    assert table == (
        "| model | format | task | fixed L=5 | fixed L=10 | uniform L=5 |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| lstm | outcome | m = 2 |  |  | 26 (20, 26] saturated |\n"
        "| lstm | outcome | m = 5 | 1.3K (1201, 1262] 3/6 | - (N_max 820, universe) |  |"
    )
    assert all(line.startswith("- ") for line in legend.splitlines())
    assert legend.startswith("- N\\* (a, b]")


def test_markdown_takes_strings_as_text():
    cell = make_cell(model={"name": "a|b *c* [d](e) <f>\n_g_"}, limited_by="x|y", task="random_x")
    row = to_markdown(nstar_table([cell])).splitlines()[2]
    assert row == (r"| a\|b \*c\* \[d](e) \<f> \_g\_ | outcome | random_x | 14 (13, 14] |")


# --- CSV ----------------------------------------------------------------------------------------


def read_csv(*cells: CellRecord) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(cells))))


def test_csv_has_one_row_a_cell_and_reads_back():
    cells = [
        make_cell(None, 0, task="permutation_composition(5)"),
        make_cell(26, 20, confirmed=True, contradictions=[[26, 30], [26, 40]]),
    ]
    learned, not_learned = read_csv(*cells)
    assert learned == {
        "cell_key": "lstm-64_outcome_modular_addition(5)_fixed_5",
        **{"model": "lstm", "model.hidden": "64", "task": "modular_addition(5)", "modulus": "5"},
        **{"format": "outcome", "length_distribution": "fixed", "max_length": "5"},
        **{"status": "learned", "nstar": "26", "largest_failed": "20", "max_size": "820"},
        **{"limited_by": "universe", "relative_width": "0.3", "solved": "3", "runs": "6"},
        **{"confirmed": "True", "num_probes": "2", "num_failed_probes": "1"},
        **{"contradictions": "26:30 26:40", "chance_at_L": "0.25", "num_validation": "205"},
        **{"parameters": "17221", "steps": "3000", "batch_size": "64", "threshold": "0.0001"},
        **{"learning_rates": "0.001 0.0001", "seeds": "10 20 30", "policy": "cost_aware"},
        **{"tolerance": "0.05", "protocol": "1", "table": "7ab1e"},
        **{"useful_lane_steps": "800", "cancelled_lane_steps": "150", "total_lane_steps": "1000"},
        **{"compile_seconds": "3.25", "run_seconds": "100.5", "device": "TFRT_CPU"},
        **{"jax": "0.10.0", "commit": "0123abc"},
    }
    unknown = ("modulus", "nstar", "relative_width", "solved", "runs")
    assert [not_learned[name] for name in unknown] == [""] * 5
    assert not_learned["status"] == "not_learned"


def test_csv_has_all_models_settings_and_does_not_depend_on_the_order_of_records():
    cells = [make_cell(model={"name": "transformer", "layers": 2}), make_cell(length=10)]
    assert to_csv(cells) == to_csv(cells[::-1])
    lstm, transformer = read_csv(*cells)
    assert (lstm["model.layers"], transformer["model.layers"]) == ("", "2")


def test_csv_keeps_commas_and_quotes_inside_a_field():
    task = 'product(dihedral(4),"x")'
    assert read_csv(make_cell(task=task))[0]["task"] == task


# --- terminal -----------------------------------------------------------------------------------


def paper_cells() -> list[CellRecord]:
    return [
        make_cell(
            **{"nstar": 10_000 + k, "low": 9_500, "confirmed": True, "model": {"name": name}},
            **{"fmt": fmt, "task": f"modular_addition({m})", "length": length},
            distribution=distribution,
        )
        for k, name in enumerate(("dense_ssm", "lstm", "transformer"))
        for fmt in ("outcome", "cot")
        for m in (2, 5, 10)
        for distribution in ("fixed", "uniform", "short_to_long")
        for length in (5, 10)
    ]


@pytest.mark.parametrize("width", [80, 100, 250])
def test_the_terminal_table_fits_and_holds_every_entry(width):
    text = printed(*paper_cells(), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert sum(text.count(f"(9500, {10_000 + k}] 3/6") for k in range(3)) == 108
    assert text.count("short_to_long") == 2
    assert text.count("format") == (1 if width == 250 else 3)


def test_the_terminal_shows_the_legend_and_takes_strings_as_text():
    text = printed(
        make_cell(model={"name": "[red]x[/red] :smile:"}, limited_by="[bold]"), width=150
    )
    assert text.count("[red]x[/red] :smile:") == 2
    assert "Budget: 3000 steps, batch 64." in text


# --- files --------------------------------------------------------------------------------------


def test_a_report_is_two_files_made_from_the_finished_cells(tmp_path):
    store = Store(tmp_path)
    cell = make_cell()
    store.write(cell)
    markdown, table = write_report(store, tmp_path)
    assert (markdown.name, table.name) == ("nstar.md", "nstar.csv")
    assert markdown.read_text() == to_markdown(nstar_table([cell]))
    assert table.read_text() == to_csv([cell])


def test_without_finished_cells_the_error_names_the_fix(tmp_path):
    with pytest.raises(ValueError, match="workdir: .* holds no finished cells; run `ib_bench run"):
        finished_cells(Store(tmp_path))
    with pytest.raises(ValueError, match="holds no finished cells"):
        write_report(Store(tmp_path), tmp_path)
    assert not list(tmp_path.iterdir())


def run_python(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_reports_and_results_never_import_jax():
    code = "import sys, ib_bench.report, ib_bench.results; print('jax' in sys.modules)"
    assert run_python(code) == "False\n"


def test_the_command_prints_the_table_and_writes_the_files_without_jax(tmp_path):
    Store(tmp_path).write(make_cell(confirmed=True))
    code = (
        "import sys; from absl import flags; from ib_bench.cli import report;"
        "code = report.main(flags.FLAGS(sys.argv)); print(code, 'jax' in sys.modules)"
    )
    output = run_python(code, f"--workdir={tmp_path}")
    assert "14 (13, 14] 3/6" in output
    assert f"wrote {tmp_path / 'nstar.md'}\nwrote {tmp_path / 'nstar.csv'}\n" in output
    assert output.endswith("\n0 False\n")
    assert (tmp_path / "nstar.csv").exists()
