"""The search of one cell, driven by hand: an oracle stands where training would be."""

import dataclasses
import itertools

import pytest

from ib_bench import PROTOCOL_VERSION
from ib_bench.results import LaneSteps, ProbeRecord, RunRecord, Seconds, Store
from ib_bench.results.record import CellRecord, from_json, to_json
from ib_bench.search.cell import CellSearch, RunKey, cost_of

STEPS = 500  # of a run that ends by itself; a running one is reported every 250


@pytest.fixture
def make(tiny_study):
    """Returns make(**search settings) -> (cell, search): a universe of 50, runs of 2 rates x 2."""

    def make(max_length=5, **search):
        study = tiny_study(
            data__max_length=(max_length,),
            data__padded_lengths=(5,),
            optim__steps=STEPS,
            optim__eval_every=250,
        )
        settings = {"tolerance": 0.0, "failure_cost": 5.0, **search}
        return study.cells[0], dataclasses.replace(study.search, **settings)

    return make


def run_record(key, outcome, steps=STEPS):
    return RunRecord(key.learning_rate, key.seed, outcome, steps, 0.5, steps, 0.5, 0.5)


def learned_from(nstar):
    """Outcomes of runs: only one of four solves it, and only with `nstar` sequences or more."""

    def oracle(key):
        solves = key.size >= nstar and (key.learning_rate, key.seed) == (1e-2, 20)
        return "solved" if solves else "exhausted"

    return oracle


class Killed(Exception):  # noqa: N818 - what a kill would do
    """The process ended before this record was written."""


class Driver:
    """Stands for the scheduler: carries runs out one after the other and writes records.

    Attributes:
      carried_out: every run that came to its own end, in order.
    """

    def __init__(self, cell, search, store, kill_after=None):
        self.store = store
        self.written = []
        self.carried_out = []
        self.make_record = run_record
        self._left = kill_after
        self.search = CellSearch(cell, search, store)

    def write(self, probe, verdict):
        if self._left is not None:
            if self._left == 0:
                raise Killed
            self._left -= 1
        useful, cancelled, total, seconds = cost_of(probe)
        record = ProbeRecord(
            protocol=PROTOCOL_VERSION,
            cell_key=self.search.key,
            cell=self.search.cell.as_dict(),
            size=probe.size,
            verdict=verdict,
            round=list(probe.round),
            runs=list(probe.runs.values()),
            num_validation=self.search.cell.split.num_validation,
            parameters=386,
            lane_steps=LaneSteps(useful, cancelled, total),
            seconds=Seconds(1.0, seconds),
            environment={"jax": "none"},
        )
        self.store.write(record)
        self.written.append(record)
        return record

    def end(self, key, outcome):
        self.search.update(key, self.make_record(key, outcome), 2.0, STEPS)
        self.carried_out.append(key)
        return self.search.settle(self.write)

    def drive(self, oracle):
        for _ in range(10_000):
            if self.search.done:
                assert self.search.wanted() == []
                return self.search.answer()
            key = self.search.wanted()[0]
            self.end(key, oracle(key))
        raise AssertionError("the search never ends")


def science(answer):
    return (
        answer.status,
        answer.nstar,
        answer.largest_failed,
        answer.contradictions,
        [(probe.size, probe.verdict) for probe in answer.probes],
    )


# --- what is asked ------------------------------------------------------------------------------


def test_the_first_question_is_the_whole_grid_at_the_largest_size(make, tmp_path):
    cell, search = make()
    asked = CellSearch(cell, search, Store(tmp_path)).wanted()
    assert asked == [RunKey(50, rate, seed) for rate in (3e-2, 1e-2) for seed in (10, 20)]


def test_a_run_under_way_stays_wanted_and_one_that_ended_does_not(make, tmp_path):
    cell, search = make()
    driver = Driver(cell, search, Store(tmp_path))
    first, second, *_ = driver.search.wanted()
    driver.search.update(first, run_record(first, "running", 250), 1.0, 250)
    assert driver.search.settle(driver.write) == []
    assert first in driver.search.wanted()
    driver.end(first, "exhausted")
    driver.end(second, "diverged")
    assert len(driver.search.wanted()) == 2
    assert driver.written == []


def test_a_solved_run_cancels_its_siblings(make, tmp_path):
    cell, search = make()
    driver = Driver(cell, search, Store(tmp_path))
    first, second, third, fourth = driver.search.wanted()
    driver.search.update(second, run_record(second, "running", 250), 1.0, 250)
    driver.end(third, "exhausted")
    (record,) = driver.end(first, "solved")
    assert record.verdict == "learned"
    runs = {(run.learning_rate, run.seed): run for run in record.runs}
    assert [runs[key[1:]].outcome for key in (first, second, third, fourth)] == [
        "solved",
        "cancelled",
        "exhausted",
        "cancelled",
    ]
    assert [runs[key[1:]].steps for key in (second, fourth)] == [250, 0]
    assert record.lane_steps == LaneSteps(useful=1000, cancelled=250, total=1250)
    assert driver.store.probe(driver.search.key, 50) == record
    assert not {first, second, third, fourth} & set(driver.search.wanted())


def test_a_probe_fails_only_when_all_its_runs_ended(make, tmp_path):
    cell, search = make()
    driver = Driver(cell, search, Store(tmp_path))
    *others, last = driver.search.wanted()
    for key, outcome in zip(others, ("exhausted", "diverged", "diverged"), strict=True):
        assert driver.end(key, outcome) == []
    assert driver.search.wanted() == [last]
    (record,) = driver.end(last, "exhausted")
    assert record.verdict == "failed"


# --- answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["cost_aware", "paper"])
@pytest.mark.parametrize("nstar", [1, 2, 7, 25, 49])
def test_nstar_is_found_with_its_bracket(make, tmp_path, policy, nstar):
    answer = Driver(*make(policy=policy), Store(tmp_path)).drive(learned_from(nstar))
    assert (answer.status, answer.nstar, answer.largest_failed) == ("learned", nstar, nstar - 1)
    assert answer.contradictions == []
    for probe in answer.probes:
        assert probe.verdict == ("learned" if probe.size >= nstar else "failed")
        assert (probe.solved, probe.runs) == (int(probe.size >= nstar), 4)


def test_a_cell_learned_only_with_all_there_is_is_saturated(make, tmp_path):
    answer = Driver(*make(), Store(tmp_path)).drive(learned_from(50))
    assert (answer.status, answer.nstar, answer.largest_failed) == ("saturated", 50, 49)
    assert (answer.max_size, answer.limited_by) == (50, "universe")


def test_a_limit_of_the_search_is_no_saturation(make, tmp_path):
    answer = Driver(*make(max_size=20), Store(tmp_path)).drive(learned_from(20))
    assert (answer.status, answer.nstar) == ("learned", 20)
    assert (answer.max_size, answer.limited_by) == (20, "search.max_size")


def test_a_budget_too_small_for_the_universe_limits_the_search(make, tmp_path):
    cell, search = make()
    cell = dataclasses.replace(
        cell, optim=dataclasses.replace(cell.optim, steps=10, eval_every=5, batch_size=3)
    )
    answer = Driver(cell, search, Store(tmp_path)).drive(learned_from(30))
    assert (answer.status, answer.nstar) == ("learned", 30)
    assert (answer.max_size, answer.limited_by) == (30, "budget")


@pytest.mark.parametrize("limit", [None, 20])
def test_a_cell_that_is_never_learned_costs_one_probe_and_says_its_limit(make, tmp_path, limit):
    settings = {"max_size": limit} if limit else {}
    driver = Driver(*make(**settings), Store(tmp_path))
    answer = driver.drive(lambda key: "exhausted")
    size = limit or 50
    assert (answer.status, answer.nstar, answer.largest_failed) == ("not_learned", None, size)
    assert answer.limited_by == ("search.max_size" if limit else "universe")
    assert [(probe.size, probe.solved) for probe in answer.probes] == [(size, 0)]
    assert len(driver.carried_out) == 4


def test_an_answer_reads_back_and_adds_its_probes_up(make, tmp_path):
    driver = Driver(*make(confirm=True), Store(tmp_path))
    answer = driver.drive(learned_from(17))
    assert from_json(CellRecord, to_json(answer)) == answer
    records = driver.store.probes(driver.search.key)
    assert [probe.size for probe in answer.probes] == [record.size for record in records]
    assert answer.lane_steps.useful == sum(record.lane_steps.useful for record in records)
    assert answer.lane_steps.total == STEPS * len(driver.carried_out)
    assert answer.seconds.run == pytest.approx(2.0 * len(driver.carried_out))
    assert answer.seconds.compile == 1.0
    assert answer.num_validation == driver.search.cell.split.num_validation
    assert answer.chance == [0.5] * 4
    driver.store.write(answer)
    assert driver.store.cell(answer.cell_key) == answer


@pytest.mark.parametrize("policy", ["cost_aware", "paper"])
def test_a_success_curve_has_every_run_of_every_size_and_the_same_nstar(make, tmp_path, policy):
    one = Driver(*make(policy=policy), Store(tmp_path / "one")).drive(learned_from(17))
    driver = Driver(*make(policy=policy, mode="success_curve"), Store(tmp_path / "curve"))
    curve = driver.drive(learned_from(17))
    assert (curve.nstar, curve.largest_failed) == (one.nstar, one.largest_failed) == (17, 16)
    for record in driver.store.probes(driver.search.key):
        assert "cancelled" not in {run.outcome for run in record.runs}
    assert len(driver.carried_out) == sum(probe.runs for probe in curve.probes)


def test_a_success_curve_completes_what_a_search_left_cancelled(make, tmp_path):
    def oracle(run):
        return "solved" if run.size >= 17 and run.seed == 10 else "exhausted"

    store, (cell, search) = Store(tmp_path), make()
    Driver(cell, search, store).drive(oracle)
    key = cell.key
    assert any(run.outcome == "cancelled" for record in store.probes(key) for run in record.runs)
    driver = Driver(cell, dataclasses.replace(search, mode="success_curve"), store)
    driver.drive(oracle)
    runs = [run for record in store.probes(key) for run in record.runs]
    assert {run.outcome for run in runs} == {"solved", "exhausted"}
    assert len(set(driver.carried_out)) < len(runs)  # what had ended is not done again


def test_beyond_the_training_lengths_the_best_run_at_the_largest_size_counts(make, tmp_path):
    cell, search = make()
    cell = dataclasses.replace(cell, data=dataclasses.replace(cell.data, evaluation_lengths=(8,)))
    driver = Driver(cell, search, Store(tmp_path))

    def evaluated(key, outcome):
        loss = 1e-5 if outcome == "solved" else 0.5
        accuracy = [key.size / 100 if outcome == "solved" else 1.0]
        return dataclasses.replace(run_record(key, outcome), best_loss=loss, accuracy_at=accuracy)

    driver.make_record = evaluated
    seen = driver.drive(learned_from(17)).extrapolation
    assert (seen.size, seen.learning_rate, seen.seed) == (50, 1e-2, 20)
    assert (seen.lengths, seen.accuracy, seen.chance) == ([8], [0.5], [0.5])
    assert seen.num_sequences == 1024


def test_a_fixed_length_has_one_chance_level(make, tmp_path):
    cell, search = make()
    cell = dataclasses.replace(
        cell, data=dataclasses.replace(cell.data, length_distribution="fixed")
    )
    assert len(Driver(cell, search, Store(tmp_path)).drive(learned_from(3)).chance) == 1


# --- rounds of several sizes --------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["cost_aware", "paper"])
def test_rounds_of_any_width_find_the_same_nstar(make, tmp_path, policy):
    for width, nstar in itertools.product((1, 2, 3, 4), (1, 2, 13, 37, 50)):
        store = Store(tmp_path / f"{width}-{nstar}")
        answer = Driver(*make(policy=policy, width=width), store).drive(learned_from(nstar))
        assert (answer.nstar, answer.largest_failed) == (nstar, nstar - 1)


def test_a_smaller_learned_size_makes_the_larger_ones_of_its_round_moot(make, tmp_path):
    driver = Driver(*make(width=3), Store(tmp_path))
    driver.end(driver.search.wanted()[3], "solved")
    large, middle, small = driver.search.probes
    assert 50 > large > middle > small
    of_size = {
        size: [key for key in driver.search.wanted() if key.size == size]
        for size in (large, middle, small)
    }
    driver.search.update(of_size[large][0], run_record(of_size[large][0], "running", 250), 1.0, 250)
    assert driver.end(of_size[middle][0], "solved") == []  # `small` may still make it moot
    assert {key.size for key in driver.search.wanted()} == {small}
    for key in of_size[small]:
        written = driver.end(key, "exhausted")
    # The largest first: a start that ends in between loses nothing that was paid for.
    assert [(record.size, record.verdict) for record in written] == [
        (large, "moot"),
        (middle, "learned"),
        (small, "failed"),
    ]
    assert all(record.round == [large, middle, small] for record in written)
    moot = written[0]
    assert {run.outcome for run in moot.runs} == {"cancelled"}
    assert moot.lane_steps == LaneSteps(useful=0, cancelled=250, total=250)
    assert (driver.search.knowledge.high, driver.search.knowledge.low) == (middle, small)


def test_moot_probes_are_no_evidence(make, tmp_path):
    """A larger size that failed before a smaller one was learned in the same round is moot."""
    driver = Driver(*make(width=3), Store(tmp_path))
    driver.end(driver.search.wanted()[0], "solved")
    large, middle, small = driver.search.probes
    for key in [key for key in driver.search.wanted() if key.size == large]:
        driver.end(key, "exhausted")
    driver.end(RunKey(small, 3e-2, 10), "solved")
    verdicts = {record.size: record.verdict for record in driver.written}
    assert verdicts == {50: "learned", large: "moot", middle: "moot", small: "learned"}
    assert driver.search.knowledge.failed == ()
    assert driver.search.knowledge.contradictions == ()


# --- going on after an interruption -------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("policy", ["cost_aware", "paper"])
@pytest.mark.parametrize("confirm", [False, True])
def test_a_search_killed_after_any_record_goes_on_as_if_it_was_not(
    make, tmp_path, width, policy, confirm
):
    cell, search = make(policy=policy, width=width, confirm=confirm)
    oracle = learned_from(17)
    undisturbed = Driver(cell, search, Store(tmp_path / "undisturbed"))
    expected = undisturbed.drive(oracle)
    assert len(undisturbed.written) > 4
    for number in range(len(undisturbed.written)):
        store = Store(tmp_path / f"killed-{number}")
        first = Driver(cell, search, store, kill_after=number)
        with pytest.raises(Killed):
            first.drive(oracle)
        second = Driver(cell, search, store)
        answer = second.drive(oracle)
        assert science(answer) == science(expected)
        assert answer.confirmed == expected.confirmed == confirm
        # What was stored is not done again, and nothing else is asked.
        decided = {record.size for record in first.written if record.verdict != "moot"}
        moot = {probe.size for probe in expected.probes if probe.verdict == "moot"}
        spared = set(undisturbed.carried_out) - set(second.carried_out)
        assert {key.size for key in spared} <= decided | moot
        done_before = {
            RunKey(record.size, run.learning_rate, run.seed)
            for record in first.written
            for run in record.runs
            if run.outcome != "cancelled"
        }
        assert not done_before & set(second.carried_out)
        assert set(second.carried_out) <= set(undisturbed.carried_out)


@pytest.mark.parametrize("width", [1, 3])
def test_a_search_killed_after_every_single_record_still_ends(make, tmp_path, width):
    cell, search = make(width=width, confirm=True)
    oracle = learned_from(17)
    expected = Driver(cell, search, Store(tmp_path / "undisturbed")).drive(oracle)
    store = Store(tmp_path / "killed")
    for _ in range(100):
        try:
            answer = Driver(cell, search, store, kill_after=1).drive(oracle)
            break
        except Killed:
            continue
    assert science(answer) == science(expected)


@pytest.mark.parametrize("width", [1, 3])
def test_any_record_may_be_lost(make, tmp_path, width):
    """Also that of a moot probe whose round the other records decide."""
    cell, search = make(width=width)
    store = Store(tmp_path)
    driver = Driver(cell, search, store)
    expected = driver.drive(learned_from(17))
    for size in [probe.size for probe in expected.probes]:
        store.probe_path(driver.search.key, size).unlink()
        answer = Driver(cell, search, store).drive(learned_from(17))
        assert science(answer) == science(expected)
        assert [record.size for record in store.probes(driver.search.key)] == [
            probe.size for probe in expected.probes
        ]


def test_a_finished_search_is_done_at_once_and_writes_nothing(make, tmp_path):
    cell, search = make(width=2, confirm=True)
    store = Store(tmp_path)
    expected = Driver(cell, search, store).drive(learned_from(17))
    again = Driver(cell, search, store)
    assert again.search.done
    assert again.drive(learned_from(17)) == expected
    assert again.written == again.carried_out == []


def test_outcomes_of_a_checkpoint_are_taken_in_where_the_probe_is_open(make, tmp_path):
    cell, search = make()
    driver = Driver(cell, search, Store(tmp_path))
    first, second, third, fourth = driver.search.wanted()
    strangers = [RunKey(49, 3e-2, 10), RunKey(50, 9.0, 10)]
    runs = [(key, run_record(key, "exhausted")) for key in (first, second, *strangers)]
    driver.search.restore(runs)
    assert driver.search.wanted() == [third, fourth]
    assert set(driver.search.probes[50].runs) == {first, second, third, fourth}
    driver.end(third, "solved")
    (stale,) = [run for run in driver.written[0].runs if run.outcome == "solved"]
    driver.search.restore([(fourth, run_record(fourth, "solved"))])
    assert stale == run_record(third, "solved")
    assert 50 not in driver.search.probes
    assert driver.store.probe(driver.search.key, 50).runs[3].outcome == "cancelled"


# --- confirm ------------------------------------------------------------------------------------


def test_confirm_completes_all_runs_at_nstar_and_only_there(make, tmp_path):
    cell, search = make(confirm=True)
    driver = Driver(cell, search, Store(tmp_path))
    answer = driver.drive(lambda key: "solved" if key.size >= 17 else "exhausted")
    assert answer.confirmed and answer.nstar == 17
    by_size = {record.size: record for record in driver.store.probes(driver.search.key)}
    assert [run.outcome for run in by_size[17].runs] == ["solved"] * 4
    assert [probe.solved for probe in answer.probes if probe.size == 17] == [4]
    assert [run.outcome for run in by_size[50].runs] == ["solved"] + ["cancelled"] * 3
    assert len(driver.carried_out) == len(set(driver.carried_out))


def test_confirm_never_changes_nstar(make, tmp_path):
    for confirm in (False, True):
        store = Store(tmp_path / str(confirm))
        answer = Driver(*make(confirm=confirm), store).drive(learned_from(17))
        assert (answer.nstar, answer.largest_failed) == (17, 16)
        assert answer.confirmed == confirm


def test_confirm_asks_nothing_where_nothing_was_learned(make, tmp_path):
    driver = Driver(*make(confirm=True), Store(tmp_path))
    answer = driver.drive(lambda key: "diverged")
    assert answer.status == "not_learned" and not answer.confirmed
    assert len(driver.carried_out) == 4


def test_confirm_may_be_asked_for_later(make, tmp_path):
    store = Store(tmp_path)
    Driver(*make(), store).drive(learned_from(17))
    driver = Driver(*make(confirm=True), store)
    answer = driver.drive(learned_from(17))
    assert answer.confirmed and answer.nstar == 17
    # The run that solved it was the last of the grid, so that its siblings had ended before it.
    assert driver.carried_out == []
    Driver(*make(), store := Store(tmp_path / "other")).drive(lambda key: "solved")
    driver = Driver(*make(confirm=True), store)
    driver.drive(lambda key: "solved")
    assert {key.size for key in driver.carried_out} == {1}
    assert len(driver.carried_out) == 3


# --- grid ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 3])
def test_grid_flags_contradictions_and_wants_every_verdict(make, tmp_path, width):
    cell, search = make(policy="grid", sizes=(10, 20, 30, 40), width=width)
    good = {20, 40}
    answer = Driver(cell, search, Store(tmp_path)).drive(
        lambda key: "solved" if key.size in good else "exhausted"
    )
    assert [(probe.size, probe.verdict) for probe in answer.probes] == [
        (10, "failed"),
        (20, "learned"),
        (30, "failed"),
        (40, "learned"),
    ]
    assert (answer.nstar, answer.largest_failed) == (20, 10)
    assert answer.contradictions == [[20, 30]]


def test_grid_says_what_it_found_where_nothing_was_learned(make, tmp_path):
    cell, search = make(policy="grid", sizes=(10, 40))
    answer = Driver(cell, search, Store(tmp_path)).drive(lambda key: "exhausted")
    assert (answer.status, answer.nstar, answer.largest_failed) == ("not_learned", None, 40)


# --- other search settings ----------------------------------------------------------------------


def test_other_search_settings_use_the_probes_there_are(make, tmp_path):
    store = Store(tmp_path)
    oracle = learned_from(17)
    exact = Driver(*make(), store).drive(oracle)
    known = {probe.size for probe in exact.probes}
    coarse = Driver(*make(tolerance=0.5), store)
    answer = coarse.drive(oracle)
    assert answer.largest_failed < 17 <= answer.nstar
    assert not known & {key.size for key in coarse.carried_out}
    paper = Driver(*make(policy="paper"), store)
    assert paper.search.key == coarse.search.key
    answer = paper.drive(oracle)
    assert (answer.nstar, answer.largest_failed) == (17, 16)
    assert paper.carried_out and not known & {key.size for key in paper.carried_out}


def test_a_probe_that_was_moot_is_finished_where_it_matters(make, tmp_path):
    store = Store(tmp_path)
    driver = Driver(*make(width=3), store)
    oracle = learned_from(17)
    driver.drive(oracle)
    moot = [record.size for record in driver.written if record.verdict == "moot"]
    cell, search = make(policy="grid", sizes=tuple(moot))
    assert moot and all(size > 17 for size in moot)
    grid = Driver(cell, search, store)
    answer = grid.drive(oracle)
    assert [probe.verdict for probe in answer.probes] == ["learned"] * len(moot)
    assert {key.size for key in grid.carried_out} <= set(moot)
    for size in moot:
        outcomes = [run.outcome for run in store.probe(driver.search.key, size).runs]
        assert outcomes.count("solved") == 1


def test_a_moot_probe_whose_runs_all_ended_counts_as_failed_where_it_matters(make, tmp_path):
    store = Store(tmp_path)
    cell, search = make(width=3)
    driver = Driver(cell, search, store)
    driver.end(driver.search.wanted()[0], "solved")
    large, _, small = driver.search.probes
    for key in [key for key in driver.search.wanted() if key.size == large]:
        driver.end(key, "exhausted")
    driver.end(RunKey(small, 3e-2, 10), "solved")
    assert store.probe(driver.search.key, large).verdict == "moot"
    cell, search = make(policy="grid", sizes=(large, small))
    grid = Driver(cell, search, store)
    answer = grid.drive(learned_from(small))
    assert grid.carried_out == []
    assert [(probe.size, probe.verdict) for probe in answer.probes] == [
        (small, "learned"),
        (large, "failed"),
    ]
    assert answer.contradictions == [[small, large]]


def test_no_more_probes_than_allowed(make, tmp_path):
    answer = Driver(*make(max_probes=3), Store(tmp_path)).drive(learned_from(17))
    assert len(answer.probes) == 3
    assert answer.largest_failed < 17 <= answer.nstar
