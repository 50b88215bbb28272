"""Runs a study in this process: one unit after the other."""

from collections.abc import Callable

from ib_bench.executors.units import make_units
from ib_bench.executors.worker import answer
from ib_bench.results import Store
from ib_bench.search.scheduler import Observer
from ib_bench.specs import CellSpec, StudySpec


def run_study(
    study: StudySpec,
    store: Store,
    observe: Observer,
    should_stop: Callable[[], bool],
    profile_dir: str = "",
) -> list[CellSpec]:
    """Answers every cell of a study; cells whose answer is stored are skipped.

    Args:
      study: which cells, and how they are searched and trained.
      store: where records are read and written.
      observe: told after every chunk.
      should_stop: asked after every chunk.
      profile_dir: where the second chunk of each program is profiled to; "" for nowhere.

    Returns:
      The cells that failed, each with a record under `failures/`.

    Raises:
      Preempted: `should_stop` said so. Starting the study again goes on where it was.
    """
    failed = []
    for unit in make_units(study):
        failed += answer(unit, study, store, observe, should_stop, profile_dir)
    return failed
