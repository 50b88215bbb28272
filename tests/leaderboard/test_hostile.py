"""What a stranger may send: refused with its reason, never a crash, nothing outside its folder."""

import copy
import json
import os
import re
import resource
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_submission import make_records, small_share, write_submission

from ib_bench.leaderboard.check import check
from ib_bench.leaderboard.submission import _line, read
from ib_bench.leaderboard.untrusted import RefusedError
from ib_bench.results import CellRecord
from ib_bench.results.record import from_json

MODEL = {"name": "lstm", "hidden": 32}
HOSTILE = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def records():
    """As JSON: what is changed in it is changed as a submitter would."""
    return [json.loads(_line(record)) for record in make_records(MODEL, small_share)]


def written(folder, content, **said):
    return write_submission(folder, [json.dumps(one) for one in content], **said)


def reasons(folder, best=None):
    """All that is said of a submission; it is never a crash."""
    try:
        return check(read(folder), best)
    except RefusedError as error:
        return [str(error)]


def test_what_nobody_touched_is_accepted(records, tmp_path):
    assert reasons(written(tmp_path / "mine", records)) == []


# --- records ------------------------------------------------------------------------------------


def cells_of(content):
    return [one["record"] for one in content if one["kind"] == "cell"]


def learned(content):
    return next(cell for cell in cells_of(content) if cell["nstar"] is not None)


def probes_of(content, cell):
    return [
        one["record"]
        for one in content
        if one["kind"] == "probe" and one["record"]["cell_key"] == cell["cell_key"]
    ]


def in_cell(**fields):
    def edit(content):
        learned(content).update(fields)
        return content

    return edit


def in_probe(verdict="learned", **fields):
    def edit(content):
        probe = next(p for p in probes_of(content, learned(content)) if p["verdict"] == verdict)
        probe.update(fields)
        return content

    return edit


def in_run(verdict="learned", was="solved", **fields):
    def edit(content):
        for probe in probes_of(content, learned(content)):
            for run in probe["runs"]:
                if probe["verdict"] == verdict and run["outcome"] == was:
                    run.update(fields)
                    return content
        raise AssertionError("no such run")

    return edit


def everywhere(path, value):
    def edit(content):
        for one in content:
            where = one["record"]
            for key in path[:-1]:
                where = where[key]
            where[path[-1]] = value
        return content

    return edit


def without(kind, verdict=None):
    def edit(content):
        cell = learned(content)
        for one in content:
            record = one["record"]
            mine = record["cell_key"] == cell["cell_key"]
            if one["kind"] == kind and mine and verdict in (None, record.get("verdict")):
                content.remove(one)
                return content
        raise AssertionError("no such record")

    return edit


def smaller_nstar(content):
    """Claims an N* that was never tried, in the cell's own summary too."""
    cell = learned(content)
    cell["nstar"] -= 1
    for probe in cell["probes"]:
        if probe["size"] == cell["nstar"] + 1:
            probe["size"] -= 1
    return content


def failed_turned_into_learned(content):
    """Makes the largest failed size a learned one, without a run that solved it."""
    cell = learned(content)
    probe = max(
        (p for p in probes_of(content, cell) if p["verdict"] == "failed"), key=lambda p: p["size"]
    )
    probe["verdict"] = "learned"
    return content


def a_run_that_solved_it(content):
    """The same with a run: the search would have gone on below it."""
    content = failed_turned_into_learned(content)
    cell = learned(content)
    probe = next(p for p in probes_of(content, cell) if p["size"] == cell["largest_failed"])
    probe["runs"][0].update(outcome="solved", best_loss=1e-5, steps=100, best_step=100)
    steps = sum(run["steps"] for run in probe["runs"])
    probe["lane_steps"].update(useful=steps, total=steps)
    return content


def fewer_runs(content):
    for probe in probes_of(content, learned(content)):
        probe["runs"] = probe["runs"][:2]
    return content


def a_seed_twice(content):
    probe = probes_of(content, learned(content))[0]
    probe["runs"][1] = copy.deepcopy(probe["runs"][0])
    return content


def other_seeds(content):
    for probe in probes_of(content, learned(content)):
        for run in probe["runs"]:
            run["seed"] += 1
    return content


def another_probe(content):
    cell = learned(content)
    extra = copy.deepcopy(next(p for p in probes_of(content, cell) if p["verdict"] == "learned"))
    extra["size"] = max(p["size"] for p in probes_of(content, cell)) - 1
    extra["round"] = [extra["size"]]
    assert all(p["size"] != extra["size"] for p in probes_of(content, cell))
    return [{"kind": "probe", "record": extra}, *content]


def twice(kind):
    def edit(content):
        return [*content, copy.deepcopy(next(one for one in content if one["kind"] == kind))]

    return edit


def two_models(content):
    cells_of(content)[-1]["cell"]["model"]["hidden"] = 64
    return content


def own_grid(content):
    for one in content:
        one["record"]["cell"]["grid"]["seeds"] = [10, 20, 30]
    return content


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


EDITS = {
    # types and numbers
    "a text for a number": (in_cell(nstar="14"), "nstar"),
    "a truth for a number": (in_cell(largest_failed=True), "largest_failed"),
    "a list for an object": (in_cell(search=[]), "search"),
    "an object for a list": (in_cell(probes={}), "probes"),
    "none for a number": (in_probe(size=None), "size"),
    "not a number": (in_run(train_loss=float("nan")), "NaN is no number"),
    "infinity": (in_run(train_loss=float("inf")), "Infinity is no number"),
    "a huge number": (in_cell(max_size=10**30), "out of range"),
    "digits without end": (in_cell(max_size=10**4000), "characters|digits|out of range|longer"),
    "a missing field": (lambda c: [c[0]["record"].pop("runs"), c][1], "missing fields.*runs"),
    "an unknown field": (in_cell(bonus=1), "unknown fields.*bonus"),
    "no record": (lambda c: [*c, {"kind": "cell", "record": 3}], "instead of an object"),
    "another kind": (lambda c: [*c, {"kind": "model", "record": {}}], "neither cell nor probe"),
    "a kind that is no text": (lambda c: [*c, {"kind": [], "record": {}}], "neither cell nor"),
    "a line that is a number": (lambda c: [*c, 7], "no {.kind"),
    "deep nesting": (in_cell(search={"a": deep(30)}), "levels of brackets"),
    "a long text": (everywhere(["environment", "device"], "x" * 1000), "1000 characters"),
    "a line that turns around": (everywhere(["environment", "device"], "a\u202eb"), "not print"),
    # the protocol and the track
    "another protocol": (everywhere(["protocol"], 2), "protocol: version 2, this is version 1"),
    "another budget": (everywhere(["cell", "optim", "steps"], 3000), "no cell of the track"),
    "more seeds": (own_grid, "no cell of the track"),
    "another threshold": (everywhere(["cell", "optim", "threshold"], 0.1), "no cell of the track"),
    "another table": (everywhere(["cell", "table"], "0" * 16), "no cell of the track"),
    "another search": (in_cell(search={"policy": "grid"}), "search settings are not the track's"),
    "another model's key": (everywhere(["cell", "model", "hidden"], 64), "its key is not the hash"),
    "two models": (two_models, "several models"),
    "a model with a path": (
        everywhere(["cell", "model", "name"], "../../etc/passwd"),
        "no name of",
    ),
    "a model that is markup": (
        everywhere(["cell", "model", "name"], HOSTILE),
        "no name of a model",
    ),
    "a setting that is an object": (everywhere(["cell", "model", "hidden"], {}), "model.hidden"),
    "a source of a built-in": (everywhere(["cell", "model", "source"], "0" * 12), "model.source"),
    "a model that there is not": (everywhere(["cell", "model", "name"], "lsmt"), "did you mean"),
    "a size without end": (
        everywhere(["cell", "model", "hidden"], 10**9),
        "hidden: 10+ is out",
    ),
    "a setting too many": (everywhere(["cell", "model", "depth"], 3), "depth: unknown key"),
    "a model that is a text": (everywhere(["cell", "model"], "lstm"), "model: no object"),
    # runs
    "runs left out": (fewer_runs, "its runs are not the grid's; 2 are missing"),
    "a seed twice": (a_seed_twice, "occur twice"),
    "other seeds": (other_seeds, "its runs are not the grid's"),
    "no run": (in_probe(runs=[]), "runs: empty"),
    "solved with a high loss": (in_run(best_loss=0.4), "outcome solved with a validation loss"),
    "unsolved with a low loss": (
        in_run("failed", "exhausted", best_loss=1e-6),
        "outcome exhausted with a validation loss",
    ),
    "given up early": (in_run("failed", "exhausted", steps=1000), "exhausted after 1000 of 4000"),
    "stalled too soon": (in_run("failed", "exhausted", outcome="stalled"), "stalled after"),
    "trained for longer": (in_run(steps=9000), "9000 steps; runs are evaluated every 100"),
    "steps that are no chunk": (in_run(steps=150, best_step=150), "150 steps"),
    "best before the start": (in_run(best_step=-100), "best at step -100"),
    "a negative loss": (in_run(best_loss=-1.0), "a loss below 0"),
    "an accuracy above 1": (in_run(accuracy_at=[1.5]), "an accuracy that is not between"),
    "no accuracy at 2L": (in_run(accuracy_at=[]), "0 accuracies for 1 evaluation lengths"),
    # answers
    "an edited N*": (in_cell(nstar=2), "nstar is 2, its runs give"),
    "an edited N* and summary": (smaller_nstar, "nstar is .*, its runs give"),
    "an edited bracket": (in_cell(largest_failed=0), "largest_failed is 0, its runs give"),
    "an edited status": (in_cell(status="saturated"), "status is saturated, its runs give"),
    "edited chance": (in_cell(chance=[0.0]), "chance is"),
    "edited cost": (everywhere(["lane_steps", "useful"], 1), "lane-steps are not the sum"),
    "edited size of the model": (in_cell(parameters=1), "parameters"),
    "edited accuracy": (
        lambda c: [learned(c)["extrapolation"].update(accuracy=[1.0]), c][1],
        "extrapolation is",
    ),
    "a verdict without a run": (failed_turned_into_learned, "does not follow from the runs"),
    "a made-up solved run": (a_run_that_solved_it, "asks for it next|its runs give"),
    "a probe left out": (without("probe", "failed"), "asks for it next"),
    "the learned probe left out": (without("probe", "learned"), "asks for it next|never asked"),
    "a cell left out": (without("cell"), "probes without an answer"),
    "a probe too many": (another_probe, "never asked for"),
    "a probe twice": (twice("probe"), "a second record of N="),
    "a cell twice": (twice("cell"), "a second answer"),
    # where it was made
    "uncommitted changes": (
        everywhere(["environment", "commit"], "0" * 40 + "+changes"),
        "commit your changes",
    ),
    "no commit": (everywhere(["environment", "commit"], "unknown"), "no commit is known"),
    "markup as a commit": (everywhere(["environment", "commit"], HOSTILE), "commit <script>"),
    "no versions": (everywhere(["environment"], {}), "environment: python is missing"),
    "more about a machine": (everywhere(["environment", "x"], 1), "environment: unknown x"),
}


@pytest.mark.parametrize("name", EDITS)
def test_edited_records_are_refused_with_the_reason(name, records, tmp_path):
    edit, reason = EDITS[name]
    folder = written(tmp_path / "mine", edit(copy.deepcopy(records)))
    said = reasons(folder)
    assert any(re.search(reason, told) for told in said), said[:5]
    assert all(len(told.splitlines()) == 1 and len(told) < 400 for told in said)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


def test_a_result_too_good_to_be_true_needs_a_rerun(records, tmp_path):
    submission = read(written(tmp_path / "mine", records))
    from ib_bench.leaderboard.ranking import best_sizes

    best = {question: 9 * size for question, size in best_sizes([submission]).items()}
    assert all("is not plausible" in told for told in check(submission, best))
    assert len(check(submission, best)) == len(best)
    assert check(submission, {question: size // 2 for question, size in best.items()}) == []


# --- descriptions and folders -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"name": "../outside"}, "is no name"),
        ({"name": "other"}, "is not its folder's"),
        ({"name": "a" * 200}, "is no name"),
        ({"title": 3}, "title is no str"),
        ({"title": "x" * 501}, "501 characters"),
        ({"title": "a\x1b[2Jb"}, "do not print"),
        ({"url": "javascript:alert(1)"}, "url: write https"),
        ({"track": "mine"}, "track 'mine'; there are cpu, paper"),
        ({"format": 2}, "format 2; this reads 1"),
        ({"format": True}, "format is no int"),
        ({"records": "0" * 64}, "its hash is not the one"),
        ({"records": "../../etc/passwd"}, "its hash is not the one"),
        ({"extra": 1}, "unknown extra"),
    ],
)
def test_a_description_that_is_none_is_refused(said, reason, records, tmp_path):
    (told,) = reasons(written(tmp_path / "mine", records, **said))
    assert re.search(reason, told), told
    assert "\x1b" not in told


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON"),
        ("[]", "no object"),
        ("{", "no JSON"),
        ('{"name": 1, "name": 2}', "a key occurs twice"),
        ('{"name": NaN}', "NaN is no number"),
        ("[" * 30_000, "levels of brackets"),
        ('{"a":' * 9_000 + "1" + "}" * 9_000, "levels of brackets"),
        ("x" * 2**17, "bytes; at most"),
        ("\ud800", "no UTF-8"),
    ],
)
def test_a_description_that_is_no_json_is_refused(text, reason, records, tmp_path):
    folder = written(tmp_path / "mine", records)
    (folder / "submission.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    (told,) = reasons(folder)
    assert re.search(reason, told), told


def link(target):
    def make(folder):
        (folder / "records.jsonl").unlink()
        (folder / "records.jsonl").symlink_to(target)

    return make


def many(folder):
    (folder / "model").mkdir()
    for number in range(70):
        (folder / "model" / f"part{number}.py").write_text("")


FOLDERS = {
    "a link to a file": (link("/etc/passwd"), "a link or no plain file"),
    "a link to nowhere": (link("/nowhere"), "a link or no plain file"),
    "a link to itself": (link("records.jsonl"), "a link or no plain file"),
    "a link as a folder": (lambda f: (f / "model").symlink_to("/etc"), "a link or no plain file"),
    "a pipe": (lambda f: os.mkfifo(f / "model.py"), "a link or no plain file"),
    "a page": (lambda f: (f / "index.html").write_text(HOSTILE), "no file of a submission"),
    "a hidden file": (lambda f: (f / ".git").write_text(""), "no file of a submission"),
    "a deep folder": (lambda f: (f / "model" / "a" / "b").mkdir(parents=True), "no plain file"),
    "code elsewhere": (lambda f: (f / "setup.py").write_text("1/0"), "no file of a submission"),
    "many files": (many, "more than 64 files"),
    "no records": (lambda f: (f / "records.jsonl").unlink(), "records.jsonl: missing"),
    "no description": (lambda f: (f / "submission.json").unlink(), "submission.json: missing"),
    "empty records": (lambda f: (f / "records.jsonl").write_text(""), "hash is not the one"),
    "binary records": (lambda f: (f / "records.jsonl").write_bytes(b"\xff\x00"), "no UTF-8"),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_holds_something_else_is_refused(name, records, tmp_path):
    make, reason = FOLDERS[name]
    folder = written(tmp_path / "mine", records)
    make(folder)
    (told,) = reasons(folder)
    assert re.search(reason, told), told


def test_there_are_more_than_fifty_hostile_ones():
    assert len(EDITS) + len(FOLDERS) > 75


@pytest.mark.parametrize("line", [None, "x", '{"a":['])
def test_a_gigabyte_is_refused_in_constant_memory(line, records, tmp_path):
    """Sparse, and so as a single line, or as text up to the size that is read at all."""
    folder = written(tmp_path / "mine", records)
    path = folder / "records.jsonl"
    if line is None:
        os.truncate(path, 2**30)
    else:
        path.write_text(line * (60_000_000 // len(line)))
    script = """
import pathlib, resource, sys
from ib_bench.leaderboard.submission import read
from ib_bench.leaderboard.untrusted import RefusedError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read(pathlib.Path(sys.argv[1]))
except RefusedError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    command = [sys.executable, "-c", script, str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    told, kilobytes = result.stdout.splitlines()
    assert "bytes" in told and int(kilobytes) < 20_000, result.stdout
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # the unit is kilobytes on Linux


# --- properties ---------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda children: (
        st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4)
    ),
    max_leaves=12,
)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_value_anywhere_in_a_record_is_a_record_or_a_reason(records, data):
    """Replaces one value of a record by any JSON: the parser returns or raises ValueError."""
    record = copy.deepcopy(data.draw(st.sampled_from(records[:3] + records[-1:]))["record"])
    where, path = record, []
    while True:
        keys = list(where) if isinstance(where, dict) else list(range(len(where)))
        key = data.draw(st.sampled_from(keys))
        path.append(key)
        inner = where[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            break
        where = inner
    where[key] = data.draw(JSON)
    text = json.dumps(record)
    try:
        parsed = from_json(CellRecord if "nstar" in record else type_of_probe(), text)
    except ValueError as error:
        assert str(error)
    else:
        assert json.loads(json.dumps(parsed.cell)) == record["cell"]


def type_of_probe():
    from ib_bench.results import ProbeRecord

    return ProbeRecord


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=st.binary(max_size=300), said=st.binary(max_size=300))
def test_any_bytes_are_refused(content, said, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any") / "mine"
    folder.mkdir()
    (folder / "records.jsonl").write_bytes(content)
    (folder / "submission.json").write_bytes(said)
    with pytest.raises(RefusedError):
        read(folder)
