"""ib_bench status: how far a study is, from its files alone, while machines are working."""

import time

from absl import flags

WORKDIR = flags.DEFINE_string("workdir", None, "the folder of the study")


def main(argv: list[str]) -> int:
    """Prints cells, workers and the time left."""
    if len(argv) > 1:
        raise ValueError(
            f"status: unexpected argument {argv[1]!r}; options are written --name=value"
        )
    if not WORKDIR.value:
        raise ValueError("workdir: missing; name a folder, for example --workdir=results/quick")

    from rich.console import Console
    from rich.table import Table

    from ib_bench.cli.progress import duration
    from ib_bench.results import Store
    from ib_bench.results.progress import SILENT_AFTER, read_progress

    store = Store(WORKDIR.value)
    if not (store.workdir / "studies").exists():
        raise ValueError(f"workdir: no study was started in {WORKDIR.value!r}")
    now = time.time()
    progress = read_progress(store, now)
    console = Console()

    def say(text):
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    say(
        f"{progress.total} cells: {progress.done} done, {progress.running} running, "
        f"{len(progress.failed)} failed, {progress.waiting} waiting"
    )
    for label, error in list(progress.failed.items())[:5]:
        say(f"failed: {label}: {error}")
    if progress.workers:
        table = Table("worker", "devices", "program", "lanes", "steps/s", "cells done", "last word")
        for worker in progress.workers:
            table.add_row(
                worker.name,
                worker.device,
                worker.program,
                f"{worker.active}/{worker.lanes}",
                f"{worker.steps_per_second:,.0f}",
                str(worker.cells_done),
                f"{worker.age(now):.0f} s ago",
            )
        console.print(table)
        left = progress.seconds_left
        say(
            f"{progress.steps_per_second:,.0f} steps/s, lanes busy {100 * progress.busy:.0f} % of "
            f"lane-steps; {'?' if left is None else duration(left)} left at this rate"
        )
    elif progress.done < progress.total:
        say("nobody is working on it")
    if progress.silent:
        say(
            f"{len(progress.silent)} workers have said nothing for {SILENT_AFTER / 60:.0f} minutes "
            "and are taken to be gone; what they had is in their checkpoints"
        )
    return 0
