"""What is known of one cell, and what it still wants to know. Plain Python: no clock, no lanes.

A search is a sequence of rounds. It is replayed from the stored verdicts each time it starts, so
that an interrupted search asks for exactly what an uninterrupted one would have asked for.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ib_bench import PROTOCOL_VERSION, data
from ib_bench.results import (
    CellRecord,
    Extrapolation,
    LaneSteps,
    ProbeRecord,
    ProbeSummary,
    RunRecord,
    Seconds,
    Store,
)
from ib_bench.search.policy import CANCELS_LARGER, Knowledge, propose
from ib_bench.specs import CellSpec, SearchSpec, max_size

_UNSOLVED = ("exhausted", "stalled", "diverged")  # ends of a run that need no other


class RunKey(NamedTuple):
    """Names one run of one cell; with the cell, all that its outcome depends on."""

    size: int  # N
    learning_rate: float
    seed: int


@dataclasses.dataclass
class Probe:
    """One N while it is being decided."""

    size: int
    round: tuple[int, ...]  # the sizes that are tried side by side
    runs: dict[RunKey, RunRecord | None]  # None: not started
    complete: bool  # decided only once all of its runs came to an end of their own
    stored: ProbeRecord | None = None  # decided by an earlier start of the study
    seconds: float = 0.0
    total_steps: float = 0.0  # lane-steps paid for, this probe's share of idle lanes included

    @property
    def verdict(self) -> str | None:
        """ "learned", "failed", or None while it is open."""
        if self.complete and self.unfinished:
            return None
        if self.stored and self.stored.verdict != "moot":
            return self.stored.verdict
        outcomes = [run.outcome if run else None for run in self.runs.values()]
        if "solved" in outcomes:
            return "learned"
        return "failed" if all(outcome in _UNSOLVED for outcome in outcomes) else None

    @property
    def is_new(self) -> bool:
        """Whether the store does not know yet what is known here."""
        return self.stored is None or self.total_steps > 0

    @property
    def unfinished(self) -> list[RunKey]:
        """Runs that have not come to an end of their own, in the order in which they start."""
        return [
            key
            for key, run in self.runs.items()
            if run is None or run.outcome in ("running", "cancelled")
        ]


class CellSearch:
    """The search of one cell.

    Attributes:
      cell: the question.
      search: how it is asked.
      max_size: N_max.
      knowledge: the verdicts of all finished rounds.
      records: the records of all decided probes.
      probes: the probes of the present round.
      done: True once nothing is left to ask.
    """

    def __init__(self, cell: CellSpec, search: SearchSpec, store: Store):
        self.cell = cell
        self.key = cell.key
        self.search = search
        self.max_size = max_size(cell, search)
        self.knowledge = Knowledge(self.max_size)
        self.records: dict[int, ProbeRecord] = {}  # of all probes that were decided
        self.probes: dict[int, Probe] = {}
        self.done = False
        self._store = store
        self._confirming = False
        self._open_round()
        self.settle(self._write_moot)  # the rounds that the store already answers

    @property
    def _completes(self) -> bool:
        """Whether every run of the present round goes to its end."""
        return self._confirming or self.search.mode == "success_curve"

    # --- what is wanted ---

    def wanted(self) -> list[RunKey]:
        """Runs that would still change something, in the order in which they should start."""
        return [
            key
            for probe in self.probes.values()
            if self._is_open(probe)
            for key in probe.unfinished
        ]

    def _is_open(self, probe: Probe) -> bool:
        return probe.verdict is None and probe.size not in self._moot()

    def _moot(self) -> set[int]:
        """Sizes of this round that a smaller learned one made moot, whatever they said."""
        if self._completes or not CANCELS_LARGER[self.search.policy]:
            return set()
        learned = [size for size, probe in self.probes.items() if probe.verdict == "learned"]
        return {size for size in self.probes if learned and size > min(learned)}

    # --- what comes in ---

    def update(self, key: RunKey, run: RunRecord, seconds: float, total_steps: float) -> None:
        """Takes in how a run stands ("running") or how it ended."""
        probe = self.probes[key.size]
        probe.runs[key] = run
        probe.seconds += seconds
        probe.total_steps += total_steps

    def restore(self, runs: Iterable[tuple[RunKey, RunRecord]]) -> None:
        """Takes in outcomes from a checkpoint; those of probes that are decided are dropped."""
        for key, run in runs:
            probe = self.probes.get(key.size)
            if probe and self._is_open(probe) and key in probe.runs:
                probe.runs[key] = run

    def restore_cost(self, size: int, seconds: float, total_steps: float) -> None:
        """Takes in from a checkpoint what a probe that is still open has cost so far."""
        probe = self.probes.get(size)
        if probe and self._is_open(probe):
            probe.seconds, probe.total_steps = seconds, total_steps

    def settle(self, write: Callable[[Probe, str], ProbeRecord]) -> list[ProbeRecord]:
        """Closes rounds as long as all of them is decided, and opens the next.

        Args:
          write: stores a probe with its verdict and returns the record. By then its runs that were
            under way have become "cancelled". Probes that an earlier start decided are not written.

        Returns:
          The records that were written.
        """
        written = []
        while not self.done and not any(self._is_open(probe) for probe in self.probes.values()):
            moot = self._moot()
            # The smallest last: where a start ends in between, what made the others moot is asked
            # again, and every record still says what its runs cost.
            for size, probe in sorted(self.probes.items(), reverse=True):
                verdict = "moot" if size in moot else probe.verdict
                if probe.is_new:
                    for key, run in probe.runs.items():
                        if run is None or run.outcome == "running":
                            probe.runs[key] = _cancelled(key, run)
                    self.records[size] = write(probe, verdict)
                    written.append(self.records[size])
                else:  # by now its round may be another one than when it was stored
                    self.records[size] = dataclasses.replace(probe.stored, verdict=verdict)
                self._learn(size, verdict)
            self._open_round()
        return written

    # --- rounds ---

    def _learn(self, size: int, verdict: str) -> None:
        known = self.knowledge
        if verdict == "learned" and size not in known.learned:
            self.knowledge = known._replace(learned=(*known.learned, size))
        elif verdict == "failed":
            self.knowledge = known._replace(failed=(*known.failed, size))

    def _open_round(self) -> None:
        """Asks the policy for sizes and looks up which of them are decided already."""
        sizes = () if self._confirming else propose(self.knowledge, self.search)
        if not sizes and self.search.confirm and self.knowledge.learned and not self._confirming:
            self._confirming = True
            sizes = (self.knowledge.high,)
        self.probes = {size: self._make_probe(size, sizes) for size in sizes}
        self.done = not sizes

    def _make_probe(self, size: int, sizes: tuple[int, ...]) -> Probe:
        stored = self.records.get(size) or self._store.probe(self.key, size)
        grid = [RunKey(size, rate, seed) for rate, seed in self.cell.grid.runs]
        runs: dict[RunKey, RunRecord | None] = dict.fromkeys(grid)
        if stored:
            runs |= {RunKey(size, run.learning_rate, run.seed): run for run in stored.runs}
            sizes = tuple(stored.round) if self._confirming else sizes
        return Probe(size, sizes, runs, self._completes, stored)

    def _write_moot(self, probe: Probe, verdict: str) -> ProbeRecord:
        """Makes up for the record of a moot probe whose file was lost."""
        assert verdict == "moot", f"N={probe.size} was decided ({verdict}) by no run and no record"
        sibling = next(other.stored for other in self.probes.values() if other.stored)
        record = dataclasses.replace(
            sibling,
            size=probe.size,
            verdict=verdict,
            round=list(probe.round),
            runs=list(probe.runs.values()),
            lane_steps=LaneSteps(0, 0, 0),
            seconds=Seconds(sibling.seconds.compile, 0.0),
        )
        self._store.write(record)
        return record

    # --- the answer ---

    @property
    def limited_by(self) -> str:
        """What sets N_max."""
        if self.max_size == self.cell.split.num_train:
            return "universe"
        return "search.max_size" if self.max_size == self.search.max_size else "budget"

    @property
    def status(self) -> str:
        """ "learned", "saturated" (only with every training sequence there is) or "not_learned"."""
        if self.knowledge.high is None:
            return "not_learned"
        saturated = self.knowledge.high == self.max_size and self.limited_by == "universe"
        return "saturated" if saturated else "learned"

    def answer(self) -> CellRecord:
        """Writes the answer; everything in it comes from the records of the probes."""
        spec, task = self.cell.data, self.cell.automaton
        lengths = data.lengths_of(spec.length_distribution, spec.max_length)
        records = [self.records[size] for size in sorted(self.records)]
        known = self.knowledge
        latest = self.records[known.low or known.high or self.max_size]
        return CellRecord(
            protocol=PROTOCOL_VERSION,
            cell_key=self.key,
            cell=self.cell.as_dict(),
            search=self.search.as_dict(),
            status=self.status,
            nstar=known.high,
            largest_failed=known.low,
            max_size=self.max_size,
            limited_by=self.limited_by,
            confirmed=self._confirming,
            probes=[_summary(record) for record in records],
            contradictions=[list(pair) for pair in known.contradictions],
            chance=[round(task.chance(length), 6) for length in lengths],
            num_validation=self.cell.split.num_validation,
            parameters=latest.parameters,
            lane_steps=LaneSteps(
                useful=sum(record.lane_steps.useful for record in records),
                cancelled=sum(record.lane_steps.cancelled for record in records),
                total=sum(record.lane_steps.total for record in records),
            ),
            seconds=Seconds(
                compile=max(record.seconds.compile for record in records),
                run=sum(record.seconds.run for record in records),
            ),
            environment=latest.environment,
            extrapolation=self._extrapolation(records),
        )

    def _extrapolation(self, records: list[ProbeRecord]) -> Extrapolation | None:
        """What the best run at the largest N does at the evaluation lengths."""
        lengths = self.cell.data.evaluation_lengths
        for record in reversed(records):
            evaluated = [run for run in record.runs if run.accuracy_at]
            if lengths and evaluated:
                best = min(evaluated, key=lambda run: _or_infinity(run.best_loss))
                return Extrapolation(
                    size=record.size,
                    learning_rate=best.learning_rate,
                    seed=best.seed,
                    lengths=list(lengths),
                    accuracy=best.accuracy_at,
                    chance=[round(self.cell.automaton.chance(n), 6) for n in lengths],
                    num_sequences=self.cell.program.num_extrapolation,
                )
        return None


def _or_infinity(loss: float | None) -> float:
    return math.inf if loss is None else loss


def _summary(record: ProbeRecord) -> ProbeSummary:
    solved = sum(run.outcome == "solved" for run in record.runs)
    return ProbeSummary(record.size, record.verdict, solved, len(record.runs))


def cost_of(probe: Probe) -> tuple[int, int, int, float]:
    """Returns useful, cancelled and total lane-steps and the seconds of a probe."""
    useful = sum(run.steps for run in probe.runs.values() if run.outcome != "cancelled")
    cancelled = sum(run.steps for run in probe.runs.values() if run.outcome == "cancelled")
    stored = probe.stored
    total = round(probe.total_steps) + (stored.lane_steps.total if stored else 0)
    seconds = probe.seconds + (stored.seconds.run if stored else 0.0)
    return useful, cancelled, max(total, useful + cancelled), seconds


def _cancelled(key: RunKey, run: RunRecord | None) -> RunRecord:
    if run is None:
        return RunRecord(key.learning_rate, key.seed, "cancelled", 0, None, 0, 0.0, None)
    return dataclasses.replace(run, outcome="cancelled")
