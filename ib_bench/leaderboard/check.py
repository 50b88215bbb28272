"""What is true of a submission: every number in it is derived again from its runs.

The search is replayed from the submitted probes by the code that runs searches, so that a record
which differs from what the runs say is found whatever it claims.
"""

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ib_bench.configs import leaderboard
from ib_bench.configure import make_study
from ib_bench.leaderboard.submission import Submission
from ib_bench.leaderboard.tracks import Track, load_track, question_of
from ib_bench.leaderboard.untrusted import printable
from ib_bench.own import is_own
from ib_bench.results import CellRecord, ProbeRecord, RunRecord
from ib_bench.search.cell import CellSearch
from ib_bench.specs import CellSpec, ModelSpec, SearchSpec, digest_of

# N* so far below the best of the board is taken for a mistake until a rerun finds it too.
IMPLAUSIBLE = 8
_ENVIRONMENT = {
    **dict.fromkeys(("python", "ib_bench", "chex", "flax", "jax", "jaxlib", "numpy", "optax"), str),
    **dict.fromkeys(("commit", "platform", "device", "strategy", "matmul_precision"), str),
    **dict.fromkeys(("num_devices", "per_device"), int),
}
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_MODEL = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,99}(:[A-Za-z0-9_.<>]{1,60})?")


def check(submission: Submission, best: Mapping[str, int] | None = None) -> list[str]:
    """Returns all that is wrong with a submission, a line each; empty where nothing is.

    Args:
      submission: as `submission.read` returns it.
      best: by question, the smallest N* of other submissions of the track.
    """
    track = load_track(submission.description.track)
    problems = list(_check_model(submission)) or list(_check_built_in(submission))
    if problems:
        return problems
    for cell in submission.cells:
        where = printable(cell.cell_key)
        problems += [f"{where}: {told}" for told in _check_cell(cell, submission, track)]
    known = {cell.cell_key for cell in submission.cells}
    for key in sorted(submission.probes.keys() - known):
        problems.append(f"{printable(key)}: probes without an answer")
    if not problems:
        problems = list(implausible(submission, best or {}))
    return problems


def implausible(submission: Submission, best: Mapping[str, int]) -> Iterator[str]:
    """Yields the cells whose N* is too good to be taken without a rerun."""
    for cell in submission.cells:
        known = best.get(question_of(cell.cell))
        if known and cell.nstar and cell.nstar * IMPLAUSIBLE < known:
            yield (
                f"{cell.cell_key}: N* = {cell.nstar} is not plausible: the best of the board needs "
                f"{known}; check it with --rerun"
            )


# --- the model ----------------------------------------------------------------------------------


def _check_model(submission: Submission) -> Iterator[str]:
    models = [cell.cell.get("model") for cell in submission.cells]
    model = models[0]
    if any(other != model for other in models):
        yield "cells of several models; a submission is one model with one set of settings"
        return
    if not isinstance(model, dict) or not isinstance(model.get("name"), str):
        yield "model: no object with a name"
        return
    if not _MODEL.fullmatch(model["name"]):
        yield f"model: {printable(model['name'])} is no name of a model"
    for key, value in model.items():
        if not _SETTING.fullmatch(key):
            yield f"model: {printable(key)} is no key"
        elif not isinstance(value, bool | int | float | str | None):
            yield f"model.{key}: {printable(str(value))} is no number, truth or text"
    if is_own(model["name"]) != bool(re.fullmatch("[0-9a-f]{12}", str(model.get("source", "")))):
        yield "model.source: a model of one's own has the hash of its file, others have none"


def _check_built_in(submission: Submission) -> Iterator[str]:
    """Whether a built-in model could have been asked for with these settings."""
    model = submission.cells[0].cell["model"]
    if is_own(model["name"]):
        return
    track = submission.description.track
    try:
        make_study(leaderboard.get_config(track), {f"model.{key}": model[key] for key in model})
    except ValueError as error:
        yield printable(str(error), 250)


def model_spec(model: Mapping[str, Any]) -> ModelSpec:
    """Returns the spec that a record's model stands for; imports nothing."""
    settings = {key: value for key, value in model.items() if key not in ("name", "source")}
    return ModelSpec(model["name"], tuple(settings.items()), model.get("source", ""))


# --- a cell -------------------------------------------------------------------------------------


def _check_cell(cell: CellRecord, submission: Submission, track: Track) -> Iterator[str]:
    """Yields what is wrong with a cell; later points rest on earlier ones."""
    question = track.cells.get(question_of(cell.cell))
    if question is None:
        yield f"its settings are those of no cell of the track {track.name}"
        return
    if cell.search != track.search.as_dict():
        yield "its search settings are not the track's"
        return
    spec = dataclasses.replace(question, model=model_spec(cell.cell["model"]))
    if not cell.cell_key.endswith(f"_{digest_of(spec)}"):
        yield "its key is not the hash of its settings"
        return
    probes = submission.probes.get(cell.cell_key, ())
    problems = [
        f"N={probe.size}: {told}"
        for probe in probes
        for told in _check_probe(probe, cell, spec, track.search)
    ]
    problems += _check_environment(cell.environment)
    if problems:
        yield from problems
        return
    yield from _replay(cell, probes, spec, track.search)


def _check_probe(
    probe: ProbeRecord, cell: CellRecord, spec: CellSpec, search: SearchSpec
) -> Iterator[str]:
    if probe.cell != cell.cell:
        yield "its settings are not its cell's"
    if probe.parameters != cell.parameters or probe.parameters < 1:
        yield f"{probe.parameters} parameters, its cell has {cell.parameters}"
    if probe.num_validation != spec.split.num_validation:
        yield f"{probe.num_validation} validation sequences instead of {spec.split.num_validation}"
    runs = [(run.learning_rate, run.seed) for run in probe.runs]
    if runs != list(spec.grid.runs):
        missing = set(spec.grid.runs) - set(runs)
        yield f"its runs are not the grid's; {len(missing)} are missing, {len(runs)} are there"
        return
    for run in probe.runs:
        for told in _check_run(run, spec):
            yield f"the run with learning rate {run.learning_rate:g} and seed {run.seed}: {told}"
    ended = sum(run.steps for run in probe.runs if run.outcome != "cancelled")
    cancelled = sum(run.steps for run in probe.runs if run.outcome == "cancelled")
    steps = probe.lane_steps
    if (steps.useful, steps.cancelled) != (ended, cancelled) or steps.total < ended + cancelled:
        yield f"its lane-steps are not the sum of its runs', {ended} and {cancelled}"
    if min(probe.seconds.run, probe.seconds.compile) < 0:
        yield "it took less than no time"
    if search.width == 1 and probe.round != [probe.size]:
        yield f"its round is {probe.round[:9]}; this track tries one size at a time"
    yield from _check_environment(probe.environment)


def _check_run(run: RunRecord, spec: CellSpec) -> Iterator[str]:
    """Whether the outcome is the one that its own numbers give, by the rules of the track."""
    optim = spec.optim
    loss, train = (math.inf if x is None else x for x in (run.best_loss, run.train_loss))
    if not 0 <= run.steps <= optim.steps or run.steps % optim.eval_every:
        yield f"{run.steps} steps; runs are evaluated every {optim.eval_every}, to {optim.steps}"
    if not 0 <= run.best_step <= run.steps or run.best_step % optim.eval_every:
        yield f"best at step {run.best_step} of {run.steps}"
    if min(loss, train) < 0:
        yield "a loss below 0"
    if not all(0 <= accuracy <= 1 for accuracy in (run.best_accuracy, *run.accuracy_at)):
        yield "an accuracy that is not between 0 and 1"
    lengths = len(spec.data.evaluation_lengths) if run.outcome != "cancelled" else 0
    if len(run.accuracy_at) != lengths:
        yield f"{len(run.accuracy_at)} accuracies for {lengths} evaluation lengths"
    below = loss < optim.threshold
    if below != (run.outcome == "solved"):
        yield f"outcome {run.outcome} with a validation loss of {loss:.3g}"
    if run.outcome == "solved" and run.best_step != run.steps:
        yield f"solved at step {run.best_step} but trained to {run.steps}"
    if run.outcome == "exhausted" and run.steps != optim.steps:
        yield f"exhausted after {run.steps} of {optim.steps} steps"
    waited = run.steps - run.best_step
    if run.outcome == "stalled" and not (train < optim.threshold and waited >= optim.stall > 0):
        yield f"stalled after {waited} steps with a training loss of {train:.3g}"
    if run.outcome == "diverged" and not run.steps:
        yield "diverged before its first step"


def _check_environment(environment: Mapping[str, Any]) -> Iterator[str]:
    for key, kind in _ENVIRONMENT.items():
        if type(environment.get(key)) is not kind:
            yield f"environment: {key} is missing or no {kind.__name__}"
    if unknown := environment.keys() - _ENVIRONMENT.keys():
        yield f"environment: unknown {', '.join(map(printable, sorted(unknown)))}"
    commit = str(environment.get("commit"))
    if not re.fullmatch("[0-9a-f]{40}", commit):
        reason = {"unknown": "no commit is known; run from a git checkout"}.get(
            commit, f"commit {printable(commit)}; commit your changes of ib_bench, then run"
        )
        yield f"environment: {reason}"


class _Submitted:
    """A store of the submitted probes of one cell, which cannot be written to."""

    def __init__(self, probes: tuple[ProbeRecord, ...]):
        self._probes = {probe.size: probe for probe in probes}

    def probe(self, cell_key: str, size: int) -> ProbeRecord | None:
        del cell_key
        return self._probes.get(size)

    def write(self, record: ProbeRecord) -> None:
        raise LookupError(record.size)


def _replay(
    cell: CellRecord, probes: tuple[ProbeRecord, ...], spec: CellSpec, search: SearchSpec
) -> Iterator[str]:
    """Asks for sizes as the search does, and compares the answer in every field."""
    try:
        replayed = CellSearch(spec, search, _Submitted(probes))
    except LookupError as error:
        yield f"N={error.args[0]}: its record is missing"
        return
    if not replayed.done:
        wanted = ", ".join(f"N={size}" for size in replayed.probes if size not in replayed.records)
        yield f"{wanted}: the search asks for it next and there is no whole record of it"
        return
    if extra := sorted({probe.size for probe in probes} - replayed.records.keys()):
        yield f"N={extra[0]}: a record that the search never asked for ({len(extra)} of them)"
    answer = dataclasses.asdict(dataclasses.replace(replayed.answer(), cell_key=cell.cell_key))
    claimed = dataclasses.asdict(cell)
    for field, value in answer.items():
        if claimed[field] != value:
            yield (
                f"{field} is {printable(str(claimed[field]))}, its runs give "
                f"{printable(str(value))}"
            )
