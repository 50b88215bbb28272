"""What a worker is at: counted from its chunks, and said now and then for `ib_bench status`."""

import math
import os
import platform
import time
import uuid

from ib_bench.results import Store
from ib_bench.results.progress import WorkerReport, leave, say
from ib_bench.search.scheduler import Chunk


class Tally:
    """Sums of what chunks did."""

    def __init__(self):
        self.cells_done = 0
        self.steps = 0  # trained, in runs
        self.lane_steps = 0  # paid for, idle lanes included
        self._recent_steps = self._recent_seconds = 0.0

    def observe(self, chunk: Chunk) -> None:
        self.cells_done += chunk.cells_done
        self.steps += chunk.steps
        self.lane_steps += chunk.steps * chunk.capacity // chunk.active
        self._recent_steps = 0.8 * self._recent_steps + chunk.steps
        self._recent_seconds = 0.8 * self._recent_seconds + chunk.seconds

    @property
    def steps_per_second(self) -> float:
        """Over the last few chunks, summed over lanes."""
        return self._recent_steps / self._recent_seconds if self._recent_seconds else 0.0

    @property
    def busy(self) -> float:
        """Share of the lane-steps paid for that went to runs."""
        return self.steps / self.lane_steps if self.lane_steps else 1.0


class Presence:
    """A worker's word, deleted at the end; use as a context manager around the work."""

    def __init__(self, store: Store, seconds: float):
        """Says nothing yet.

        Args:
          store: where it is written.
          seconds: between two words.
        """
        self._store = store
        self._seconds = seconds
        self._name = f"{platform.node()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self._started = time.time()
        self._last = -math.inf  # of the monotonic clock: the other may jump
        self._tally = Tally()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        leave(self._store, self._name)

    def observe(self, chunk: Chunk) -> None:
        self._tally.observe(chunk)
        if time.monotonic() - self._last < self._seconds:
            return
        self._last = time.monotonic()
        report = WorkerReport(
            name=self._name,
            program=chunk.program,
            device=chunk.device,
            running=sorted(chunk.cells),
            cells_done=self._tally.cells_done,
            started=self._started,
            said=time.time(),
            lanes=chunk.num_lanes,
            active=chunk.active,
            steps=self._tally.steps,
            lane_steps=self._tally.lane_steps,
            steps_per_second=self._tally.steps_per_second,
        )
        say(self._store, report)
