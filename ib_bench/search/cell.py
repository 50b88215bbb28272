"""What is known of one cell, and what it still wants to know. Plain Python: no clock, no lanes.

A search is a sequence of rounds. It is replayed from the stored verdicts each time it starts, so
that an interrupted search asks for exactly what an uninterrupted one would have asked for.
"""

import dataclasses
import math
from collections.abc import Iterable
from typing import NamedTuple

from ib_bench.results import ProbeRecord, ProbeSummary, RunRecord, Store
from ib_bench.search.policy import CANCELS_LARGER, Knowledge, propose
from ib_bench.specs import CellSpec, SearchSpec, max_size


class RunKey(NamedTuple):
    """Names one run of one cell; with the cell, all that its outcome depends on."""

    size: int  # N
    learning_rate: float
    seed: int


@dataclasses.dataclass
class Probe:
    """One N while it is being decided."""

    size: int
    runs: dict[RunKey, RunRecord | None]  # None: not started
    stored: ProbeRecord | None = None  # decided by an earlier start of the study
    seconds: float = 0.0
    total_steps: float = 0.0  # lane-steps paid for, this probe's share of idle lanes included

    @property
    def verdict(self) -> str | None:
        """ "learned", "failed", or None while it is open."""
        if self.stored and self.stored.verdict != "moot":
            return self.stored.verdict
        outcomes = [run.outcome if run else None for run in self.runs.values()]
        if "solved" in outcomes:
            return "learned"
        return "failed" if all(o in ("exhausted", "diverged") for o in outcomes) else None

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
      probes: the probes of the present round.
      done: True once nothing is left to ask.
    """

    def __init__(self, cell: CellSpec, search: SearchSpec, store: Store):
        self.cell = cell
        self.key = cell.key
        self.search = search
        self.max_size = max_size(cell, search)
        self.knowledge = Knowledge(self.max_size)
        self.summaries: dict[int, ProbeSummary] = {}
        self.lane_steps = [0.0, 0.0, 0.0]  # useful, cancelled, total, of all finished rounds
        self.seconds = 0.0
        self.probes: dict[int, Probe] = {}
        self.done = False
        self._store = store
        self._confirming = False
        self._open_round()

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
        if self._confirming:
            return bool(probe.unfinished)
        return probe.verdict is None and probe.size not in self._moot()

    def _moot(self) -> set[int]:
        """Sizes of this round that a smaller learned one made moot, whatever they said."""
        if not CANCELS_LARGER[self.search.policy]:
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

    def settle(self) -> list[tuple[Probe, str]]:
        """Closes the round if all of it is decided, and opens the next.

        Returns:
          The probes that were decided here (not by an earlier start), with their verdicts. Runs
          that were under way have become "cancelled".
        """
        decided = []
        while not self.done and not any(self._is_open(probe) for probe in self.probes.values()):
            decided += self._close_round()
            self._open_round()
        return decided

    # --- rounds ---

    def _open_round(self) -> None:
        """Asks the policy for sizes and looks up which of them are decided already."""
        sizes = () if self._confirming else propose(self.knowledge, self.search)
        self.probes = {size: self._make_probe(size) for size in sizes}
        if sizes:
            return
        nstar = self.knowledge.high
        if self.search.confirm and nstar is not None and not self._confirming:
            probe = self._make_probe(nstar)
            self._confirming = True
            self.probes = {nstar: probe}
        else:
            self.done = True

    def _make_probe(self, size: int) -> Probe:
        stored = self._store.probe(self.key, size)
        grid = [RunKey(size, rate, seed) for rate, seed in self.cell.grid.runs]
        runs: dict[RunKey, RunRecord | None] = dict.fromkeys(grid)
        if stored:
            runs |= {RunKey(size, run.learning_rate, run.seed): run for run in stored.runs}
        return Probe(size, runs, stored)

    def _close_round(self) -> list[tuple[Probe, str]]:
        moot = self._moot()
        decided = []
        for size, probe in sorted(self.probes.items()):
            verdict = "moot" if size in moot else probe.verdict
            is_new = probe.seconds > 0 or probe.total_steps > 0 or probe.stored is None
            for key, run in probe.runs.items():
                if run is None or run.outcome == "running":
                    probe.runs[key] = _cancelled(key, run)
            if is_new:
                decided.append((probe, verdict))
            self._add_up(probe, verdict, is_new)
        return decided

    def _add_up(self, probe: Probe, verdict: str, is_new: bool) -> None:
        runs = probe.runs.values()
        solved = sum(run.outcome == "solved" for run in runs)
        self.summaries[probe.size] = ProbeSummary(probe.size, verdict, solved, len(runs))
        if verdict == "learned" and not self._confirming:
            learned = (*self.knowledge.learned, probe.size)
            self.knowledge = self.knowledge._replace(learned=learned)
        elif verdict == "failed":
            self.knowledge = self.knowledge._replace(failed=(*self.knowledge.failed, probe.size))
        useful, cancelled, total, seconds = cost_of(probe)
        if self._confirming and not is_new:
            return  # added up when its round was closed
        if self._confirming and probe.stored:
            before = probe.stored.lane_steps
            useful, cancelled = useful - before.useful, cancelled - before.cancelled
            total, seconds = total - before.total, seconds - probe.stored.seconds.run
        for k, steps in enumerate((useful, cancelled, total)):
            self.lane_steps[k] += steps
        self.seconds += seconds

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

    @property
    def confirmed(self) -> bool:
        """Whether every run at N* went to its end."""
        return self.search.confirm and self.knowledge.high is not None and self.done


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


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
