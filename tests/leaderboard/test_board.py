"""The board shows what the records say, by the code that reports use; all strings are text."""

import functools
import html
import json
import math
import pathlib
import re

import pytest
from browser import CHROMIUM, browse
from made_submission import make_records, never, small_share, write_submission

from ib_bench.cli import leaderboard as command
from ib_bench.leaderboard.board import accuracy_sheet, nstar_sheet, ranking_sheet, write_board
from ib_bench.leaderboard.check import check
from ib_bench.leaderboard.ranking import rank
from ib_bench.leaderboard.submission import pack, read
from ib_bench.leaderboard.submissions import read_all
from ib_bench.leaderboard.tracks import load_track
from ib_bench.report.output import nstar_sheet as report_nstar
from ib_bench.report.sharing_table import sharing_intervals, sharing_sheet
from ib_bench.report.tables import nstar_table
from ib_bench.results import CellRecord, Store

HOSTILE = "<script>alert(1)</script>|`*_"


def times(factor):
    return lambda cell: min(cell.split.num_train, factor * small_share(cell))


def only_acot(cell):
    return small_share(cell) if cell.data.format == "acot" else math.inf


MODELS = {
    "good": ({"name": "lstm", "hidden": 32}, small_share),
    "fair": ({"name": "gru", "hidden": 32}, times(3)),
    "half": ({"name": "rnn", "hidden": 32}, only_acot),
    "none": ({"name": "my.own:make", "source": "0" * 12, "width": 3}, never),
}


@functools.cache
def records_of(name):
    return make_records(*MODELS[name])


@pytest.fixture
def submissions(tmp_path):
    folder = tmp_path / "submissions"
    for name in MODELS:
        write_submission(folder / name, records_of(name), title=f"The {name} one")
    return folder


def entries_of(folder, verified=None):
    accepted, refused = read_all(folder)
    assert not refused, refused
    return rank(accepted, load_track("cpu"), verified or {})


def test_models_come_in_their_order(submissions):
    entries = entries_of(submissions)
    assert [(entry.rank, entry.title) for entry in entries] == [
        (1, "The good one"),
        (2, "The fair one"),
        (3, "The half one"),
        (4, "The none one"),
    ]
    assert entries[0].profile.score == 1.0 and entries[3].profile.score == 0.0


def test_ties_are_shown_as_ties(submissions):
    write_submission(submissions / "again", records_of("good"))
    entries = entries_of(submissions)
    ranks = {row[1]: row[0] for row in ranking_sheet(load_track("cpu"), entries).rows}
    assert ranks["again"] == ranks["The good one"] == "1=" and ranks["The fair one"] == "3"


def test_a_missing_cell_is_shown_as_missing_and_counts_as_not_learned(submissions):
    dropped = next(one for one in records_of("good") if isinstance(one, CellRecord))
    left = [one for one in records_of("good") if one.cell_key != dropped.cell_key]
    write_submission(submissions / "part", left)
    track, entries = load_track("cpu"), entries_of(submissions)
    rows = {row[0]: row for row in nstar_sheet(track, entries).rows}
    assert rows["part"].count("missing") == 1 and "missing" not in rows["The none one"]
    ranking = {row[1]: row for row in ranking_sheet(track, entries).rows}
    assert ranking["part"][4] == "15 of 16" and ranking["part"][9] == "15 of 16"
    (part,) = [entry for entry in entries if entry.title == "part"]
    assert part.profile.ratios[-1] == math.inf


def test_the_board_says_what_a_report_of_the_same_records_says(submissions, tmp_path):
    """N*, brackets, kappa and accuracy at 2L, from a workdir with the same records."""
    track, entries = load_track("cpu"), entries_of(submissions)
    ranking = {row[1]: row for row in ranking_sheet(track, entries).rows}
    for entry in entries:
        store = Store(tmp_path / entry.title)
        for record in records_of(entry.submission.description.name):
            store.write(record)
        study = entry.submission.study
        reported = report_nstar(nstar_table(store.cells()))
        entries_of_report = sorted(text for row in reported.rows for text in row[3:] if text)
        (row,) = [row for row in nstar_sheet(track, entries).rows if row[0] == entry.title]
        assert sorted(row[1:]) == entries_of_report
        shared = sharing_sheet(study, sharing_intervals(study))
        kappa = {row[1]: row[4] for row in shared.rows if not row[shared.header.index("missing")]}
        assert kappa == {"outcome": ranking[entry.title][6], "acot": ranking[entry.title][7]}
        twice = {row[shared.header.index("accuracy at 2L")] for row in shared.rows}
        shown = next(row for row in accuracy_sheet(track, entries).rows if row[0] == entry.title)
        assert twice <= set(shown[1:])


def test_only_what_a_rerun_confirmed_is_verified(submissions):
    hashes = {
        name: json.loads((submissions / name / "submission.json").read_text())["records"]
        for name in MODELS
    }
    verified = {"good": hashes["good"], "fair": "0" * 64}
    assert [entry.verified for entry in entries_of(submissions, verified)] == [True, *[False] * 3]


def test_a_refused_submission_is_left_out_and_told(submissions):
    (submissions / "fair" / "records.jsonl").write_text("{}\n")
    (submissions / "half" / "extra.html").write_text("")
    accepted, refused = read_all(submissions)
    assert [one.description.name for one in accepted] == ["good", "none"]
    assert refused.keys() == {"fair", "half"}


def test_markdown_and_page_take_strings_as_text(submissions, tmp_path):
    said = {"title": HOSTILE, "authors": HOSTILE, "description": HOSTILE, "url": "https://x/<b>"}
    write_submission(submissions / "hostile", records_of("fair"), **said)
    accepted, _ = read_all(submissions)
    write_board(accepted, {}, tmp_path)
    markdown = (tmp_path / "README.md").read_text()
    escaped = r"\<script>alert(1)\</script>\|\`\*\_"
    assert escaped in markdown and "<script" not in markdown.replace(escaped, "")
    if not (tmp_path / "index.html").exists():
        return  # without the extra `report`
    page = (tmp_path / "index.html").read_text()
    assert "<script>alert" not in page and html.escape(HOSTILE) in page
    assert "<script>alert" not in (tmp_path / "profiles_cpu.svg").read_text()


def test_every_number_has_its_legend(submissions, tmp_path):
    write_board(read_all(submissions)[0], {}, tmp_path)
    text = (tmp_path / "README.md").read_text()
    for fact in (
        "Budget: 4000 steps",
        "Chance level",
        "seeds 10 20",
        "Protocol: version 1",
        "score",
    ):
        assert fact in text, fact


# --- packing ------------------------------------------------------------------------------------


def stored(folder, name):
    store = Store(folder)
    for record in records_of(name):
        store.write(record)
    return store


def test_what_is_packed_is_what_is_read(tmp_path):
    store = stored(tmp_path / "work", "good")
    folder, missing = pack(
        store, load_track("cpu"), tmp_path / "out", "My LSTM, 1.0!", authors="A", description="D"
    )
    assert folder.name == "my-lstm-1-0" and not missing
    found = read(folder)
    assert check(found) == []
    assert sorted(found.cells, key=lambda cell: cell.cell_key) == store.cells()
    assert all(
        list(found.probes[cell.cell_key]) == store.probes(cell.cell_key) for cell in found.cells
    )
    assert found.description.title == "My LSTM, 1.0!"
    again, _ = pack(store, load_track("cpu"), tmp_path / "out", "My LSTM, 1.0!")  # over itself
    assert again == folder and check(read(again)) == []


def test_a_probe_of_an_earlier_search_is_not_packed(tmp_path):
    store = stored(tmp_path / "work", "good")
    cell = store.cells()[0]
    extra = store.probes(cell.cell_key)[-1]
    tried = {probe.size for probe in cell.probes}
    size = next(size for size in range(2, 10**6) if size not in tried)
    store.write(type(extra)(**{**vars(extra), "size": size, "round": [size]}))
    folder, _ = pack(store, load_track("cpu"), tmp_path / "out", "mine")
    assert check(read(folder)) == []


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ([], "holds no cell of the track 'cpu'; run `ib_bench run --config=leaderboard:cpu"),
        (["good", "fair"], "holds 2 models: .*; give each a workdir of its own"),
    ],
)
def test_a_workdir_that_cannot_be_packed_is_told(names, told, tmp_path):
    (tmp_path / "work").mkdir()
    for name in names:
        stored(tmp_path / "work", name)
    with pytest.raises(ValueError, match=told):
        pack(Store(tmp_path / "work"), load_track("cpu"), tmp_path / "out", "mine")


def test_a_folder_that_is_no_submission_is_not_written_into(tmp_path):
    store = stored(tmp_path / "work", "good")
    (tmp_path / "out" / "mine").mkdir(parents=True)
    with pytest.raises(ValueError, match="is there and is no submission"):
        pack(store, load_track("cpu"), tmp_path / "out", "mine")
    with pytest.raises(ValueError, match="has no letter or digit"):
        pack(store, load_track("cpu"), tmp_path / "out", "...")


# --- the page in a browser ----------------------------------------------------------------------


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_page_sorts_filters_and_draws_without_an_error_or_a_request(submissions, tmp_path):
    pytest.importorskip("altair")
    write_board(read_all(submissions)[0], {}, tmp_path)
    actions = """
      const ranking = document.getElementById("sheet-cpu-ranking");
      const column = () => [...ranking.tBodies[0].rows].filter((row) => !row.hidden)
        .map((row) => row.cells[1].textContent).join();
      ranking.tHead.rows[0].cells[1].click();
      const told = { sorted: column() };
      const input = document.querySelector('input[data-table="sheet-cpu-ranking"]');
      input.value = "half"; input.oninput();
      told.filtered = column();
      draw(document.querySelector(".chart")).then(() => {
        told.requests = performance.getEntriesByType("resource").length;
        told.drawn = document.querySelectorAll(".chart:has(svg, canvas)").length;
        document.documentElement.dataset.told = JSON.stringify(told);
      });
    """
    text = (tmp_path / "index.html").read_text()
    end = text.rindex("</body>")
    path = tmp_path / "acted.html"
    path.write_text(f"{text[:end]}<script>{actions}</script>{text[end:]}")
    dom, console = browse(path.as_uri(), "--virtual-time-budget=20000")
    assert not console  # an error, or a request that the page's policy forbids
    told = json.loads(html.unescape(re.search(r'data-told="([^"]*)"', dom)[1]))
    assert told == {
        "sorted": "The fair one,The good one,The half one,The none one",
        "filtered": "The half one",
        "drawn": 1,
        "requests": 0,
    }


def test_the_command_writes_the_board_and_tells_what_it_left_out(submissions, tmp_path, capsys):
    from absl import flags

    (submissions / "fair" / "records.jsonl").write_text("{}\n")
    flags.FLAGS(["leaderboard", f"--submissions={submissions}", f"--out={tmp_path}"])
    assert command.main(["leaderboard"]) == command.EX_REFUSED
    told = capsys.readouterr().out
    assert "left out: fair: records.jsonl: its hash" in " ".join(told.split()) or "no {" in told
    assert pathlib.Path(tmp_path / "README.md").exists()
