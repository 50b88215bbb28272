"""Submissions whose records are what a search would have written, without any training."""

import dataclasses
import hashlib
import json
import math

from ib_bench.leaderboard.submission import FORMAT, Description, _line
from ib_bench.leaderboard.tracks import load_track
from ib_bench.results import LaneSteps, ProbeRecord, RunRecord, Seconds
from ib_bench.search.cell import CellSearch
from ib_bench.specs import ModelSpec

ENVIRONMENT = {
    **{"python": "3.11.2", "ib_bench": "0.1.0", "jax": "0.10.0", "jaxlib": "0.10.1"},
    **{"flax": "0.12.0", "optax": "0.2.6", "numpy": "2.3.0", "chex": "0.1.91"},
    **{"commit": "0123456789abcdef0123456789abcdef01234567", "platform": "cpu", "device": "cpu"},
    **{"num_devices": 2, "strategy": "map", "per_device": 1, "matmul_precision": "highest"},
}


class Memory:
    """A store in memory."""

    def __init__(self):
        self.probes = {}

    def probe(self, key, size):
        return self.probes.get((key, size))

    def write(self, record):
        self.probes[record.cell_key, record.size] = record


def make_records(model, difficulty, track="cpu"):
    """Returns the probes and the answer of every cell of a track.

    Args:
      model: the record's model, {"name": ..., ...}.
      difficulty: cell -> the smallest size that is learned; infinite for none.
      track: its name.
    """
    asked = load_track(track)
    settings = {key: value for key, value in model.items() if key not in ("name", "source")}
    spec = ModelSpec(model["name"], tuple(settings.items()), model.get("source", ""))
    found = []
    for cell in asked.cells.values():
        cell = dataclasses.replace(cell, model=spec)
        found += _search(cell, asked.search, difficulty(cell))
    return found


def _search(cell, settings, threshold):
    store = Memory()
    search = CellSearch(cell, settings, store)
    while not search.done:
        for number, key in enumerate(search.wanted()):
            solved = key.size >= threshold and not number
            search.update(key, _run(key, cell, solved), 0.25, 0)
            if solved:
                break
        search.settle(lambda probe, verdict: _record(store, cell, probe, verdict))
    return [*store.probes.values(), search.answer()]


def _run(key, cell, solved):
    optim = cell.optim
    return RunRecord(
        learning_rate=key.learning_rate,
        seed=key.seed,
        outcome="solved" if solved else "exhausted",
        steps=optim.eval_every if solved else optim.steps,
        best_loss=optim.threshold / 2 if solved else 0.5,
        best_step=optim.eval_every,
        best_accuracy=1.0 if solved else 0.7,
        train_loss=0.01,
        accuracy_at=[0.9] * len(cell.data.evaluation_lengths),
    )


def _record(store, cell, probe, verdict):
    runs = list(probe.runs.values())
    ended = sum(run.steps for run in runs if run.outcome != "cancelled")
    record = ProbeRecord(
        protocol=1,
        cell_key=cell.key,
        cell=cell.as_dict(),
        size=probe.size,
        verdict=verdict,
        round=list(probe.round),
        runs=runs,
        num_validation=cell.split.num_validation,
        parameters=1234,
        lane_steps=LaneSteps(ended, 0, ended + 100),
        seconds=Seconds(3.5, probe.seconds),
        environment=ENVIRONMENT,
    )
    store.write(record)
    return record


def small_share(cell):
    """Learned from an eighth of what there is."""
    return max(2, cell.split.num_train // 8)


def never(cell):
    del cell
    return math.inf


def write_submission(folder, content, **said):
    """Writes a submission of these records, with a hash that fits."""
    lines = [line if isinstance(line, str) else _line(line) for line in content]
    text = "\n".join([*lines, ""])
    description = {
        "format": FORMAT,
        "name": folder.name,
        "title": folder.name,
        "authors": "A. Author",
        "url": "",
        "description": "made up",
        "track": "cpu",
        "records": hashlib.sha256(text.encode()).hexdigest(),
    }
    assert description.keys() == {field.name for field in dataclasses.fields(Description)}
    folder.mkdir(parents=True)
    (folder / "records.jsonl").write_text(text)
    (folder / "submission.json").write_text(json.dumps(description | said))
    return folder
