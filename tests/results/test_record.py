"""A record survives its JSON; anything else is refused with a ValueError."""

import copy
import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ib_bench import PROTOCOL_VERSION
from ib_bench.results import (
    CellRecord,
    Extrapolation,
    LaneSteps,
    ProbeRecord,
    ProbeSummary,
    RunRecord,
    Seconds,
)
from ib_bench.results.record import from_json, to_json

SOLVED = RunRecord(1e-3, 10, "solved", 500, 9.5e-5, 500, 1.0, 2.5e-4)
DIVERGED = RunRecord(1e-3, 20, "diverged", 250, None, 0, 0.0, None)
CANCELLED = RunRecord(1e-4, 10, "cancelled", 250, 0.25, 250, 0.5, 0.5)
EXHAUSTED = RunRecord(1e-4, 20, "exhausted", 1000, 0.25, 750, 0.5, 0.5)

PROBE = ProbeRecord(
    protocol=PROTOCOL_VERSION,
    cell_key="lstm_0123",
    cell={"task": "modular_addition(2)", "model": {"hidden": 8}},
    size=12,
    verdict="learned",
    round=[12, 9],
    runs=[SOLVED, DIVERGED, CANCELLED],
    num_validation=52,
    parameters=386,
    lane_steps=LaneSteps(750, 250, 1200),
    seconds=Seconds(1.5, 2.0),
    environment={"jax": "0.10", "num_devices": 2, "share": 0.5},
)
CELL = CellRecord(
    protocol=PROTOCOL_VERSION,
    cell_key="lstm_0123",
    cell={"task": "modular_addition(2)"},
    search={"policy": "cost_aware", "sizes": []},
    status="learned",
    nstar=12,
    largest_failed=11,
    max_size=52,
    limited_by="universe",
    confirmed=False,
    probes=[ProbeSummary(12, "learned", 1, 4), ProbeSummary(11, "failed", 0, 4)],
    contradictions=[[12, 40]],
    chance=[0.5, 0.5],
    num_validation=52,
    parameters=386,
    lane_steps=LaneSteps(750, 250, 1200),
    seconds=Seconds(1.5, 2.0),
    environment={"jax": "0.10"},
)
RECORDS = [PROBE, CELL]


def as_dict(record):
    return json.loads(to_json(record))


def parse(cls, content):
    return from_json(cls, json.dumps(content))


@pytest.mark.parametrize("record", RECORDS, ids=["probe", "cell"])
def test_a_record_is_the_same_after_its_json(record):
    text = to_json(record)
    assert from_json(type(record), text) == record
    assert to_json(from_json(type(record), text)) == text


def test_a_cell_that_was_not_learned_has_no_nstar_and_survives():
    record = dataclasses.replace(CELL, status="not_learned", nstar=None, contradictions=[])
    assert from_json(CellRecord, to_json(record)) == record


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_not_finite_is_never_written(value):
    with pytest.raises(ValueError):
        to_json(dataclasses.replace(PROBE, seconds=Seconds(value, 1.0)))
    with pytest.raises(ValueError):
        to_json(dataclasses.replace(PROBE, environment={"x": value}))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("present", ['"share": 0.5', '"run": 2.0', '"best_loss": 9.5e-05'])
def test_a_number_that_is_not_finite_is_never_read(present, number):
    """Also where the schema says nothing: such a record could not be copied into an answer."""
    text = to_json(PROBE)
    assert text.count(present) == 1
    with pytest.raises(ValueError, match="not finite"):
        from_json(ProbeRecord, text.replace(present, f"{present.split(':')[0]}: {number}"))


@pytest.mark.parametrize(
    ("cls", "change", "told"),
    [
        (ProbeRecord, {"protocol": PROTOCOL_VERSION + 1}, "never mixed"),
        (ProbeRecord, {"protocol": True}, r"protocol: 'True' \(bool\) instead of int"),
        (ProbeRecord, {"verdict": "maybe"}, "verdict: 'maybe'"),
        (ProbeRecord, {"verdict": "failed"}, "does not follow from the runs"),
        (ProbeRecord, {"size": 0}, "size: 0 is below 1"),
        (ProbeRecord, {"size": 13}, r"round: \[12, 9\] lacks 13"),
        (ProbeRecord, {"size": 12.0}, r"size: '12.0' \(float\) instead of int"),
        (ProbeRecord, {"parameters": 10**30}, "parameters: .* out of range"),
        (ProbeRecord, {"runs": []}, "runs: empty"),
        (ProbeRecord, {"runs": [dataclasses.asdict(SOLVED)] * 2}, "occur twice"),
        (
            ProbeRecord,
            {"runs": [dataclasses.asdict(SOLVED) | {"outcome": "running"}]},
            "outcome: 'running'",
        ),
        (ProbeRecord, {"runs": [dataclasses.asdict(SOLVED) | {"steps": -1}]}, "steps: -1"),
        (ProbeRecord, {"surplus": 1}, r"unknown fields \['surplus'\]"),
        (CellRecord, {"protocol": PROTOCOL_VERSION + 1}, "never mixed"),
        (CellRecord, {"status": "done"}, "status: 'done'"),
        (CellRecord, {"nstar": None}, "nstar: None with learned"),
        (CellRecord, {"status": "not_learned"}, "nstar: 12 with not_learned"),
        (CellRecord, {"probes": [1]}, r"probes\[0\]: '1' \(int\) instead of an object"),
        (CellRecord, {"contradictions": [12]}, r"contradictions\[0\]: .* instead of a list"),
    ],
)
def test_a_wrong_field_is_named(cls, change, told):
    content = as_dict(PROBE if cls is ProbeRecord else CELL)
    with pytest.raises(ValueError, match=told):
        parse(cls, content | change)


@pytest.mark.parametrize("outcome", ["exhausted", "diverged"])
def test_a_failed_probe_has_no_run_that_is_open(outcome):
    failed = dataclasses.replace(EXHAUSTED, outcome=outcome)
    record = dataclasses.replace(PROBE, verdict="failed", runs=[DIVERGED, failed])
    assert from_json(ProbeRecord, to_json(record)) == record
    with pytest.raises(ValueError, match="does not follow from the runs"):
        from_json(ProbeRecord, to_json(dataclasses.replace(record, runs=[DIVERGED, CANCELLED])))


@pytest.mark.parametrize("record", RECORDS, ids=["probe", "cell"])
def test_a_record_is_not_read_as_the_other_kind(record):
    other = CellRecord if isinstance(record, ProbeRecord) else ProbeRecord
    with pytest.raises(ValueError, match="missing fields"):
        from_json(other, to_json(record))


@pytest.mark.parametrize("record", RECORDS, ids=["probe", "cell"])
def test_every_shortened_record_is_refused(record):
    text = to_json(record).rstrip()
    for end in range(len(text)):
        with pytest.raises(ValueError):
            from_json(type(record), text[:end])


LATER = {"extrapolation"}  # fields that came after the first records, and have a default


def test_a_record_from_before_a_field_came_is_read_with_its_default():
    content = as_dict(CELL)
    for field in LATER:
        del content[field]
    assert from_json(CellRecord, json.dumps(content)) == CELL
    probe = as_dict(PROBE)
    for run in probe["runs"]:
        del run["accuracy_at"]
    assert from_json(ProbeRecord, json.dumps(probe)) == PROBE


def test_what_was_seen_beyond_the_training_lengths_comes_back_and_is_rescaled_to_chance():
    seen = Extrapolation(50, 1e-3, 10, [10, 20], [0.75, 0.5], [0.5, 0.5], 512)
    cell = dataclasses.replace(CELL, extrapolation=seen)
    assert from_json(CellRecord, to_json(cell)) == cell
    assert seen.rescaled == [0.5, 0.0]


@pytest.mark.parametrize("record", RECORDS, ids=["probe", "cell"])
def test_a_record_that_lacks_any_field_is_refused(record):
    for field in as_dict(record).keys() - LATER:
        content = as_dict(record)
        del content[field]
        with pytest.raises(ValueError, match=field):
            parse(type(record), content)


@pytest.mark.parametrize("depth", [50, 500, 5_000, 100_000])
def test_deep_nesting_is_refused(depth):
    deep = "[" * depth + "]" * depth
    for text in (deep, to_json(PROBE).replace('"lstm_0123"', deep, 1)):
        with pytest.raises(ValueError):
            from_json(ProbeRecord, text)


# --- random mutations ---------------------------------------------------------------------------


def paths_of(value, path=()):
    """Paths of everything inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from paths_of(item, (*path, key))


ODD_NUMBERS = [float("nan"), float("inf"), 10**400, -(10**18), 2**63, -1, 0, 1.5, 1e308]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
VALUES = JSON | st.sampled_from([*ODD_NUMBERS, "learned", "solved", "moot", [], {}, "\ud800"])


@st.composite
def mutated(draw, record):
    content = copy.deepcopy(as_dict(record))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(sorted(paths_of(content), key=str) or [()]))
        if not path:
            break
        parent = content
        for key in path[:-1]:
            parent = parent[key]
        kind = draw(st.sampled_from(["delete", "replace", "rename", "repeat"]))
        if kind == "replace":
            parent[path[-1]] = draw(VALUES)
        elif kind == "delete":
            del parent[path[-1]]
        elif isinstance(parent, dict):
            value = parent[path[-1]] if kind == "repeat" else parent.pop(path[-1])
            parent[draw(st.text(max_size=5))] = value
        else:
            parent.append(parent[path[-1]])
    return content


@pytest.mark.parametrize("record", RECORDS, ids=["probe", "cell"])
@given(data=st.data())
@settings(max_examples=400, deadline=None)
def test_a_mutated_record_is_valid_or_refused(record, data):
    text = json.dumps(data.draw(mutated(record)))
    try:
        read = from_json(type(record), text)
    except ValueError:
        return
    assert read.protocol == PROTOCOL_VERSION
    assert from_json(type(record), to_json(read)) == read
    if isinstance(read, ProbeRecord):
        solved = "solved" in {run.outcome for run in read.runs}
        assert read.verdict == "moot" or solved == (read.verdict == "learned")
    else:
        assert (read.nstar is None) == (read.status == "not_learned")


@pytest.mark.parametrize("record", RECORDS, ids=["probe", "cell"])
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_text_with_random_characters_is_valid_or_refused(record, data):
    text = to_json(record)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 8)))
    text = text[:start] + data.draw(st.text(max_size=4)) + text[end:]
    try:
        read = from_json(type(record), text)
    except ValueError:
        return
    assert from_json(type(record), to_json(read)) == read
