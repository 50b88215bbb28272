"""The breakdown of a chunk's time: on a made-up trace, and on a real one."""

import pytest
from run_operands import operands_of

from ib_bench.training.lanes import Lanes
from ib_bench.training.profiling import KINDS, Span, break_down, profiled

SCOPES = {
    "while.1": "jit/while",
    "dot.2": "jit/while/body/dot_general",
    "fusion.3": "jit/while/body/tanh",
    "dot.4": "jit/while/body/evaluation/while/dot_general",
    "fusion.5": "jit/while/body/data/add",
    "fusion.6": "jit/while/body/optimizer/mul",
}


def spans(*events, thread="one"):
    return [Span(thread, start, duration, name) for start, duration, name in events]


def test_every_kind_of_work_is_told_apart():
    events = [(0, 10, "dot.2"), (10, 20, "fusion.3"), (30, 5, "dot.4"), (35, 5, "fusion.5")]
    shares = break_down(spans(*events, (40, 10, "fusion.6"), (50, 50, "python")), SCOPES, 100)
    expected = [0.1, 0.2, 0.05, 0.05, 0.1, 0.5]
    assert [shares[kind] for kind in (*KINDS[:2], "evaluation", "data making", "optimizer")] == (
        pytest.approx(expected[:5])
    )
    assert shares["host"] == pytest.approx(0.5)
    assert sum(shares.values()) == pytest.approx(1)


def test_a_loop_counts_only_what_its_body_does_not():
    shares = break_down(spans((0, 100, "while.1"), (10, 60, "dot.2")), SCOPES, 100)
    assert shares["matrix products"] == pytest.approx(0.6)
    assert shares["element-wise"] == pytest.approx(0.4)
    assert shares["host"] == 0


def test_two_devices_at_work_are_not_twice_the_time():
    both = spans((0, 80, "dot.2")) + spans((0, 80, "fusion.3"), thread="two")
    shares = break_down(both, SCOPES, 100)
    assert shares["host"] == pytest.approx(0.2)
    assert shares["matrix products"] == shares["element-wise"] == pytest.approx(0.4)


def test_a_trace_without_instructions_is_the_hosts():
    assert break_down([], SCOPES, 100) == dict.fromkeys(KINDS, 0.0) | {"host": 1.0}


def test_a_real_chunk_is_broken_down(tiny_study, tmp_path):
    study = tiny_study()
    operands = operands_of(study.cells[0])
    lanes = Lanes(study.cells[0].program, study.lanes, 2, operands)
    runs = dict.fromkeys(range(lanes.num_lanes), operands)
    lanes.load(runs)
    expected = lanes.advance(runs)[0].step + 20
    progress, shares = profiled(
        lambda: lanes.advance(runs), lanes.program_text(), str(tmp_path / "trace")
    )
    assert progress[0].step == expected
    assert list(shares) == list(KINDS)
    assert sum(shares.values()) == pytest.approx(1), shares
    assert shares["matrix products"] > 0 and shares["element-wise"] > 0
    assert (tmp_path / "trace" / "breakdown.json").exists()
