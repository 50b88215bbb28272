"""What is being worked on, from files alone. No results: what is lost here can be lost.

<workdir>/studies/<digest>.json    the cells that a study asks for
<workdir>/workers/<name>.json      what a worker does; it deletes the file when it ends
"""

import dataclasses
import hashlib
import json
import logging
import time

from ib_bench.files import write_whole
from ib_bench.results.store import Store

logger = logging.getLogger(__name__)

SILENT_AFTER = 300.0  # seconds without a word after which a worker is taken to be gone


@dataclasses.dataclass(frozen=True)
class WorkerReport:
    """What a worker said last. Times are Unix seconds of its own clock."""

    name: str
    program: str
    device: str
    running: list[str]  # keys of the cells that it has runs of
    cells_done: int  # by this worker
    started: float
    said: float
    lanes: int
    active: int  # lanes with a run, in the last chunk
    steps: int  # trained so far, in runs
    lane_steps: int  # paid for, idle lanes included
    steps_per_second: float  # over the last chunks, summed over lanes

    def age(self, now: float) -> float:
        """Seconds since its last word; clocks of two machines may differ by a little."""
        return max(0.0, now - self.said)


@dataclasses.dataclass(frozen=True)
class StudyProgress:
    """How far the studies of a workdir are."""

    total: int  # cells
    done: int
    running: int
    failed: dict[str, str]  # label of a cell that failed and is not running: what it raised
    workers: list[WorkerReport]  # at work
    silent: list[WorkerReport]  # without a word for long: killed, or their machine is gone

    @property
    def waiting(self) -> int:
        return self.total - self.done - self.running - len(self.failed)

    @property
    def steps_per_second(self) -> float:
        return sum(worker.steps_per_second for worker in self.workers)

    @property
    def busy(self) -> float | None:
        """Share of the lane-steps paid for that went to runs, of the workers at work."""
        paid = sum(worker.lane_steps for worker in self.workers)
        return sum(worker.steps for worker in self.workers) / paid if paid else None

    @property
    def seconds_left(self) -> float | None:
        """Time to the last cell at the rate of the workers at work; None where it is not known."""
        rate = sum(
            worker.cells_done / max(1.0, worker.said - worker.started) for worker in self.workers
        )
        left = self.total - self.done - len(self.failed)
        return left / rate if rate else None


def announce_study(store: Store, cells: dict[str, str]) -> None:
    """Writes down what a study asks for; the same study is the same file.

    Args:
      store: where.
      cells: the label of each cell, by its key.
    """
    text = json.dumps(cells, indent=1, sort_keys=True) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    path = store.workdir / "studies" / f"{digest}.json"
    if not path.exists():
        write_whole(path, text)


def say(store: Store, report: WorkerReport) -> None:
    """Writes what a worker does; a storage that takes it not costs a warning."""
    path = store.workdir / "workers" / f"{report.name}.json"
    try:
        write_whole(path, json.dumps(dataclasses.asdict(report), indent=1) + "\n")
    except OSError as error:
        logger.warning("%s cannot be written (%s)", path, error.strerror or error)


def leave(store: Store, name: str) -> None:
    """Deletes what a worker said: it has ended."""
    try:
        (store.workdir / "workers" / f"{name}.json").unlink(missing_ok=True)
    except OSError:
        pass


def read_progress(store: Store, now: float | None = None) -> StudyProgress:
    """Reads how far a workdir's studies are; workers may be writing at the same time."""
    now = time.time() if now is None else now
    cells = {}
    for path in (store.workdir / "studies").glob("*.json"):
        cells |= _json(path) or {}
    done = {path.name.removesuffix(".json") for path in (store.workdir / "cells").glob("*.json")}
    reports = [
        _report(path) for path in sorted((store.workdir / "workers").glob("*.json"), key=str)
    ]
    reports = [report for report in reports if report]
    workers = [report for report in reports if report.age(now) <= SILENT_AFTER]
    running = {key for worker in workers for key in worker.running} & cells.keys() - done
    failed = {
        cells.get(record.cell_key, record.cell_key): record.error
        for record in store.failures()
        if record.cell_key not in running | done
    }
    return StudyProgress(
        total=len(cells),
        done=len(done & cells.keys()),
        running=len(running),
        failed=failed,
        workers=workers,
        silent=[report for report in reports if report.age(now) > SILENT_AFTER],
    )


def _report(path) -> WorkerReport | None:
    content = _json(path)
    try:
        return WorkerReport(**content) if content else None
    except TypeError:  # of another version
        return None


def _json(path) -> dict | None:
    """A file's content; None where it is gone, or being replaced, or no JSON object."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
