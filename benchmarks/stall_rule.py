"""What a stall rule would have done to recorded runs. No flags, no JAX."""

import dataclasses
from collections.abc import Iterator, Sequence

THRESHOLD = 1e-4


@dataclasses.dataclass
class Judgement:
    """What a rule does to many runs."""

    solved: int = 0
    lost: int = 0  # solved runs that it would have stopped before
    steps: int = 0  # of runs that were never solved, without the rule
    kept: int = 0  # with it


def judge(cells: Sequence[dict], patience: int) -> Judgement:
    """Replays a rule on recorded runs."""
    total = Judgement()
    for cell in cells:
        every = cell["eval_every"]
        for run in cell["runs"]:
            steps = every * len(run["loss"])
            stopped = min(stops(run, every, patience), default=steps)
            if run["loss"][-1] < THRESHOLD:
                total.solved += 1
                total.lost += stopped < steps
            else:
                total.steps += steps
                total.kept += stopped
    return total


def stops(run: dict, every: int, patience: int) -> Iterator[int]:
    """Yields the steps at which a run counts as stalled."""
    best, best_step = float("inf"), 0
    for number, (train, loss) in enumerate(zip(run["train"], run["loss"], strict=True), 1):
        if loss < best:
            best, best_step = loss, number * every
        if train < THRESHOLD and number * every - best_step >= patience:
            yield number * every
