"""Runs a few small cells of a submission again. The only place where a submission's code runs."""

import dataclasses
import pathlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ib_bench.executors import local
from ib_bench.leaderboard.check import IMPLAUSIBLE, model_spec
from ib_bench.leaderboard.submission import Submission
from ib_bench.leaderboard.tracks import load_track, question_of
from ib_bench.metrics import bracket_of
from ib_bench.models import num_parameters
from ib_bench.own import is_own, source_of
from ib_bench.results import CellRecord, Store
from ib_bench.specs import LanesSpec, OutSpec, StudySpec
from ib_bench.training.run import make_program_model


class Comparison(NamedTuple):
    """A cell as it was submitted and as it came out again."""

    submitted: CellRecord
    again: CellRecord

    @property
    def agrees(self) -> bool:
        """Whether the brackets do not contradict each other and the model has as many parameters.

        Two machines may sum in another order, and runs at the edge of N* come out another way: the
        brackets may lie side by side, not apart.
        """
        one, other = bracket_of(self.submitted), bracket_of(self.again)
        apart = max(one.low, other.low) > 1.5 * min(one.high, other.high)
        return not apart and self.submitted.parameters == self.again.parameters


def choose_cells(
    submission: Submission, best: Mapping[str, int], count: int = 2
) -> list[CellRecord]:
    """Returns the cells that are too good to be believed, and the cheapest learned ones."""

    def doubtful(cell):
        known = best.get(question_of(cell.cell))
        return bool(known and cell.nstar and cell.nstar * IMPLAUSIBLE < known)

    learned = [cell for cell in submission.cells if cell.nstar is not None]
    cheapest = sorted(learned or submission.cells, key=lambda cell: cell.lane_steps.total)
    chosen = [cell for cell in submission.cells if doubtful(cell)]
    return chosen + [cell for cell in cheapest if cell not in chosen][:count]


def rerun(
    submission: Submission, folder: pathlib.Path, cells: Sequence[CellRecord], lanes: LanesSpec
) -> list[Comparison]:
    """Trains cells again, in a folder that is thrown away.

    Args:
      submission: of these cells, checked.
      folder: of the submission; its model/ is imported where the model is the submitter's own.
      cells: which.
      lanes: how runs share this machine.

    Raises:
      ValueError: the model cannot be imported, or is another one than the records are of.
    """
    track = load_track(submission.description.track)
    model = model_spec(cells[0].cell["model"])
    if is_own(model.name):
        sys.path.insert(0, str((folder / "model").resolve()))
        if (found := source_of(model.name, "model.name")) != model.source:
            raise ValueError(
                f"model.name: {model.name} is not the file that the records are of "
                f"(hash {found} instead of {model.source})"
            )
    specs = {}
    for cell in cells:
        question = track.cells[question_of(cell.cell)]
        specs[cell.cell_key] = dataclasses.replace(question, model=model)
    study = StudySpec(tuple(specs.values()), track.search, lanes, OutSpec(1e6, 30.0))
    with tempfile.TemporaryDirectory() as workdir:
        store = Store(workdir)
        store.prepare()
        if local.run_study(study, store, lambda chunk: None, lambda: False):
            raise ValueError(f"{model.name}: {store.failures()[0].error}")
        comparisons = []
        for cell in cells:
            spec = specs[cell.cell_key]
            again = dataclasses.replace(
                store.cell(spec.key), parameters=num_parameters(make_program_model(spec.program))
            )
            comparisons.append(Comparison(cell, again))
        return comparisons
