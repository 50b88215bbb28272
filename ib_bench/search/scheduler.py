"""Keeps the lanes full: hands wanted runs to free lanes, and verdicts to the store.

All cells of one program share its lanes. A free lane goes to the cell with the fewest runs under
way, earlier cells first: a run beside its own siblings is often moot before it ends, a run of
another cell never is.
"""

import dataclasses
import logging
import math
import os
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from etils import epath

from ib_bench import PROTOCOL_VERSION
from ib_bench.models import num_parameters
from ib_bench.results import LaneSteps, ProbeRecord, RunRecord, Seconds, Store
from ib_bench.results.environment import describe_software
from ib_bench.search.cell import CellSearch, Probe, RunKey, cost_of
from ib_bench.specs import LanesSpec, OptimSpec, OutSpec, ProgramSpec
from ib_bench.training import processes
from ib_bench.training.calibrate import calibrated
from ib_bench.training.checkpoint import Checkpoints, Saved
from ib_bench.training.lanes import Lanes, Progress
from ib_bench.training.profiling import profiled
from ib_bench.training.run import RunOperands, make_program_model, make_run_operands

logger = logging.getLogger(__name__)


class Preempted(Exception):  # noqa: N818 - no error: everything is saved, start again to go on
    """The study was asked to stop; its lanes are in a checkpoint."""


class Chunk(NamedTuple):
    """What an observer is told after each chunk."""

    program: str
    device: str  # kind of the devices, and how many
    cells: frozenset[str]  # keys of those that had a run in it
    num_lanes: int
    active: int
    capacity: int  # lanes that the chunk cost time for
    steps: int  # training steps, summed over lanes
    seconds: float
    best_loss: float
    cells_done: int  # of this program, newly finished


Observer = Callable[[Chunk], None]


class Place(NamedTuple):
    """A run in a lane."""

    search: CellSearch
    key: RunKey


class Scheduler:
    """Runs the searches of one program to their end."""

    def __init__(
        self,
        program: ProgramSpec,
        searches: list[CellSearch],
        store: Store,
        lanes_spec: LanesSpec,
        out: OutSpec,
        observe: Observer,
        should_stop: Callable[[], bool],
        profile_dir: str = "",
    ):
        self._program = program
        self._searches = searches
        self._store = store
        self._out = out
        self._observe = observe
        self._should_stop = should_stop
        self._profile_dir = profile_dir
        self._num_chunks = 0
        self._places: dict[int, Place] = {}
        self._data = {search.key: search.cell.make_data() for search in searches}
        self._parameters = num_parameters(make_program_model(program))
        first = searches[0]
        example = self._operands(Place(first, first.wanted()[0]))
        num_runs = sum(len(search.wanted()) for search in searches)
        lanes_spec = calibrated(program, lanes_spec, num_runs, example)
        self._lanes = Lanes(program, lanes_spec, num_runs, example)
        folder: epath.Path = store.workdir / "checkpoints" / program.key
        self._checkpoints = Checkpoints(folder, (search.key for search in searches))
        self._restore()

    def run(self) -> None:
        """Advances until every search is done.

        Raises:
          Preempted: `should_stop` said so; a checkpoint was written.
        """
        last_save = time.monotonic()
        self._fill()
        while self._places:
            cells_before = sum(search.done for search in self._searches)
            started = time.monotonic()
            active = sorted(self._places)
            capacity = self._lanes.capacity(active)
            cells = frozenset(place.search.key for place in self._places.values())
            progress = self._advance(active)
            seconds = time.monotonic() - started
            self._take_in(progress, seconds, capacity)
            self._fill()
            self._observe(
                Chunk(
                    program=self._program.label,
                    device=f"{self._lanes.num_devices} x {self._lanes.devices[0].device_kind}",
                    cells=cells,
                    num_lanes=self._lanes.num_lanes,
                    active=len(active),
                    capacity=capacity,
                    steps=len(active) * self._program.eval_every,
                    seconds=seconds,
                    best_loss=min(report.best_loss for report in progress.values()),
                    cells_done=sum(search.done for search in self._searches) - cells_before,
                )
            )
            if not self._places:
                break  # every search is done: nothing left to save
            if processes.any_of(self._should_stop()):
                self._save()
                raise Preempted
            due = time.monotonic() - last_save >= 60 * self._out.checkpoint_minutes
            if processes.any_of(due):
                self._save()
                last_save = time.monotonic()
        self._checkpoints.remove(lambda key: self._store.cell(key) is not None)

    def _advance(self, active: list[int]) -> dict[int, Progress]:
        """Advances the lanes; the second chunk under the profiler where that was asked for."""
        self._num_chunks += 1
        if not self._profile_dir or self._num_chunks != 2:
            return self._lanes.advance(active)
        folder = os.path.join(self._profile_dir, self._program.key)
        text = self._lanes.program_text()
        progress, shares = profiled(lambda: self._lanes.advance(active), text, folder)
        told = ", ".join(f"{kind} {share:.0%}" for kind, share in shares.items())
        logger.info("%s: time of a chunk: %s; trace in %s", self._program.label, told, folder)
        return progress

    # --- runs into lanes ---

    def _fill(self) -> None:
        """Frees lanes whose runs nobody wants any more, and gives free lanes the next runs."""
        wanted = {search.key: search.wanted() for search in self._searches}
        for lane, place in list(self._places.items()):
            if place.key not in wanted[place.search.key]:
                del self._places[lane]
        under_way = {(place.search.key, place.key) for place in self._places.values()}
        waiting = {
            search.key: [key for key in wanted[search.key] if (search.key, key) not in under_way]
            for search in self._searches
        }
        num_running = {search.key: 0 for search in self._searches}
        for place in self._places.values():
            num_running[place.search.key] += 1
        fresh: dict[int, RunOperands] = {}
        for lane in self._free_lanes():
            candidates = [search for search in self._searches if waiting[search.key]]
            if not candidates:
                break
            search = min(candidates, key=lambda search: num_running[search.key])
            num_running[search.key] += 1
            self._places[lane] = Place(search, waiting[search.key].pop(0))
            fresh[lane] = self._operands(self._places[lane])
        self._lanes.load(fresh)

    def _free_lanes(self) -> list[int]:
        """Free lanes, alternating between devices with the least busy device first."""
        lanes = self._lanes
        load = [0] * lanes.num_devices
        for lane in self._places:
            load[lanes.device_of(lane)] += 1
        order = []
        for lane in range(lanes.num_lanes):
            if lane not in self._places:
                device = lanes.device_of(lane)
                order.append((load[device], device, lane))
                load[device] += 1
        return [lane for _, _, lane in sorted(order)]

    def _operands(self, place: Place) -> RunOperands:
        return make_run_operands(self._data[place.search.key], *place.key)

    # --- outcomes into records ---

    def _take_in(self, progress: dict[int, Progress], seconds: float, capacity: int) -> None:
        share = len(progress)
        runs = {
            lane: _as_record(self._places[lane].key, report, self._places[lane].search.cell.optim)
            for lane, report in progress.items()
        }
        ended = [lane for lane, run in runs.items() if run.outcome != "running"]
        if ended and self._program.evaluation_lengths:
            for lane, accuracy in self._lanes.accuracy_at(ended).items():
                runs[lane] = dataclasses.replace(runs[lane], accuracy_at=accuracy)
        for lane, run in runs.items():
            search, key = self._places[lane]
            total_steps = self._program.eval_every * capacity / share
            search.update(key, run, seconds / share, total_steps)
        for search in {place.search.key: place.search for place in self._places.values()}.values():
            self._settle(search)

    def _settle(self, search: CellSearch) -> None:
        def write(probe, verdict):
            record = self._probe_record(search, probe, verdict)
            self._store.write(record)
            return record

        for record in search.settle(write):
            solved = sum(run.outcome == "solved" for run in record.runs)
            logger.info(
                "%s: N=%d %s, %d of %d runs solved it",
                search.cell.label,
                record.size,
                record.verdict,
                solved,
                len(record.runs),
            )
        if search.done:
            finish(search, self._store)

    def _probe_record(self, search: CellSearch, probe: Probe, verdict: str) -> ProbeRecord:
        useful, cancelled, total, seconds = cost_of(probe)
        return ProbeRecord(
            protocol=PROTOCOL_VERSION,
            cell_key=search.key,
            cell=search.cell.as_dict(),
            size=probe.size,
            verdict=verdict,
            round=list(probe.round),
            runs=list(probe.runs.values()),
            num_validation=search.cell.split.num_validation,
            parameters=self._parameters,
            lane_steps=LaneSteps(useful, cancelled, total),
            seconds=Seconds(self._lanes.compile_seconds, seconds),
            environment=self._environment(),
        )

    def _environment(self) -> dict:
        device = self._lanes.devices[0]
        return describe_software() | {
            "platform": device.platform,
            "device": device.device_kind,
            "num_devices": self._lanes.num_devices,
            "per_device": self._lanes.per_device,
            "strategy": self._lanes.strategy,
            "matmul_precision": "highest",
        }

    # --- checkpoints ---

    def _save(self) -> None:
        """Writes the states of all lanes, and the outcomes of runs of probes still open."""
        lanes = sorted(self._places)
        under_way = [self._entry(*self._places[lane]) for lane in lanes]
        seen = {(entry["cell"], *entry["key"]) for entry in under_way}
        ended = [
            self._entry(search, key)
            for search in self._searches
            for probe in search.probes.values()
            for key, run in probe.runs.items()
            if run and run.outcome != "running" and (search.key, *key) not in seen
        ]
        costs = [
            {
                "cell": search.key,
                "size": probe.size,
                "seconds": probe.seconds,
                "total_steps": probe.total_steps,
            }
            for search in self._searches
            for probe in search.probes.values()
            if probe.total_steps
        ]
        self._checkpoints.save(
            self._lanes.snapshot(lanes), {"under_way": under_way, "ended": ended, "costs": costs}
        )

    def _entry(self, search: CellSearch, key: RunKey) -> dict:
        run = search.probes[key.size].runs.get(key)
        return {
            "cell": search.key,
            "key": list(key),
            "run": dataclasses.asdict(run) if run else None,
        }

    def _restore(self) -> None:
        """Puts the runs of earlier checkpoints back, as far as they are still wanted."""
        saved = self._checkpoints.load()
        searches = {search.key: search for search in self._searches}
        for checkpoint in reversed(saved):  # the newest last: its costs include the others'
            for entry in checkpoint.scheduler["costs"]:
                if entry["cell"] in searches:
                    cost = entry["size"], entry["seconds"], entry["total_steps"]
                    searches[entry["cell"]].restore_cost(*cost)
            for entry in checkpoint.scheduler["ended"]:
                if entry["cell"] in searches:
                    run = RunRecord(**entry["run"])
                    searches[entry["cell"]].restore([(_run_key(entry), run)])
        # Outcomes of the checkpoints may already decide a probe.
        for search in self._searches:
            self._settle(search)
        for checkpoint in saved:
            self._continue(checkpoint, searches)
        if saved:
            logger.info(
                "%s: %d runs go on from a checkpoint", self._program.label, len(self._places)
            )

    def _continue(self, checkpoint: Saved, searches: dict[str, CellSearch]) -> None:
        """Puts the runs of one checkpoint into free lanes, as far as they are not there already."""
        entries = checkpoint.scheduler["under_way"]
        under_way = {(place.search.key, place.key) for place in self._places.values()}
        rows, places = [], {}
        free = iter(self._free_lanes())
        for row, entry in enumerate(entries):
            search, key = searches.get(entry["cell"]), _run_key(entry)
            if search is None or (search.key, key) in under_way or key not in search.wanted():
                continue
            lane = next(free, None)
            if lane is None:
                break
            places[lane] = Place(search, key)
            rows.append(row)
        if not places:
            return
        states = self._checkpoints.lanes(checkpoint, self._lanes.abstract_states(len(entries)))
        if states is None:
            return
        for row, place in zip(rows, places.values(), strict=True):
            if entries[row]["run"]:
                place.search.restore([(place.key, RunRecord(**entries[row]["run"]))])
        kept = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], states)
        operands = {lane: self._operands(place) for lane, place in places.items()}
        self._lanes.restore(operands, kept)
        self._places |= places


def finish(search: CellSearch, store: Store) -> None:
    """Stores the answer of a search that is done."""
    record = search.answer()
    store.write(record)
    answer = "not learned" if record.nstar is None else f"N* = {record.nstar}"
    logger.info("%s: %s, largest failed %d", search.cell.label, answer, record.largest_failed)


def _run_key(entry: dict) -> RunKey:
    size, learning_rate, seed = entry["key"]
    return RunKey(size, learning_rate, seed)


def _as_record(key: RunKey, report: Progress, optim: OptimSpec) -> RunRecord:
    if report.best_loss < optim.threshold:
        outcome = "solved"
    elif not (np.isfinite(report.loss) and np.isfinite(report.train_loss)):
        outcome = "diverged"
    elif report.step >= optim.steps:
        outcome = "exhausted"
    else:
        outcome = "stalled" if is_stalled(report, optim) else "running"
    return RunRecord(
        learning_rate=key.learning_rate,
        seed=key.seed,
        outcome=outcome,
        steps=report.step,
        best_loss=_finite(report.best_loss),
        best_step=report.best_step,
        best_accuracy=report.best_accuracy,
        train_loss=_finite(report.train_loss),
    )


def is_stalled(report: Progress, optim: OptimSpec) -> bool:
    """Tells whether a run has fitted its data and no longer comes nearer to solving the task."""
    waited = report.step - report.best_step
    return bool(optim.stall) and report.train_loss < optim.threshold and waited >= optim.stall


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
