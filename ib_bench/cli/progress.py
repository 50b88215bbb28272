"""What a person sees while a study runs: a live line on a terminal, a log line elsewhere."""

import logging
import time

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from ib_bench.executors.presence import Tally
from ib_bench.search.scheduler import Chunk

logger = logging.getLogger(__name__)


class Reporter:
    """Observes chunks; use as a context manager around the study."""

    def __init__(self, log_seconds: float):
        self._total = self._done = self._done_before = 0
        self._log_seconds = log_seconds
        self._started = self._last_line = time.monotonic()
        self._tally = Tally()
        console = Console(stderr=True)
        self._terminal = console.is_terminal
        handler = (
            RichHandler(console=console, show_path=False, show_level=False)
            if self._terminal
            else logging.StreamHandler()
        )
        handler.setFormatter(
            logging.Formatter("%(message)s" if self._terminal else _LINE, "%H:%M:%S")
        )
        package = logging.getLogger("ib_bench")
        package.handlers, package.propagate = [handler], False
        package.setLevel(logging.INFO)
        self._bar = Progress(
            SpinnerColumn(),
            MofNCompleteColumn(),
            TextColumn("cells"),
            BarColumn(bar_width=20),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not self._terminal,
        )
        self._task = self._bar.add_task("starting", total=None)

    def __enter__(self):
        self._bar.start()
        return self

    def __exit__(self, *unused):
        self._bar.stop()

    def begin(self, cells_total: int, cells_done: int) -> None:
        """Takes in how many cells the study has, and how many are done already."""
        self._total = cells_total
        self._done = self._done_before = cells_done
        self._bar.update(self._task, total=cells_total, completed=cells_done)

    def end(self, cells_done: int) -> None:
        """Takes in how many cells are done in the end, those without any training included."""
        self._done = cells_done

    def observe(self, chunk: Chunk) -> None:
        self._done += chunk.cells_done
        self._tally.observe(chunk)
        text = (
            f"{chunk.program} · {chunk.active}/{chunk.num_lanes} lanes · "
            f"best loss {chunk.best_loss:.1e} · "
            f"{self._tally.steps_per_second:,.0f} steps/s · {self._time_left()} left"
        )
        self.tell(text)

    def tell(self, text: str, done: int | None = None) -> None:
        """Shows a line; with `done`, so many cells of the study are done by now."""
        self._done = self._done if done is None else done
        self._bar.update(self._task, completed=self._done, description=text)
        now = time.monotonic()
        if not self._terminal and now - self._last_line >= self._log_seconds:
            self._last_line = now
            logger.info("%d/%d cells · %s", self._done, self._total, text)

    def summary(self) -> str:
        """Says what this start of the study cost."""
        minutes = (time.monotonic() - self._started) / 60
        summary = (
            f"{self._done}/{self._total} cells, {self._done - self._done_before} of them now, "
            f"in {minutes:.1f} min"
        )
        if not self._tally.steps:
            return summary
        return (
            f"{summary}; {self._tally.steps:,} training steps, "
            f"lanes busy {100 * self._tally.busy:.1f} % of lane-steps"
        )

    def _time_left(self) -> str:
        done = self._done - self._done_before
        if not done:
            return "?"
        seconds = (time.monotonic() - self._started) / done * (self._total - self._done)
        return duration(seconds)


def duration(seconds: float) -> str:
    """Says how long, to the minute."""
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"


_LINE = "%(asctime)s %(message)s"
