"""Runs a study in this process: one group of cells that share a program after the other."""

import logging
from collections.abc import Callable

from ib_bench.results import Store
from ib_bench.search.cell import CellSearch
from ib_bench.search.scheduler import Observer, Preempted, Scheduler, finish
from ib_bench.specs import CellSpec, StudySpec

logger = logging.getLogger(__name__)


def run_study(
    study: StudySpec,
    store: Store,
    observe: Observer,
    should_stop: Callable[[], bool],
    profile_dir: str = "",
) -> None:
    """Answers every cell of a study; cells whose answer is stored are skipped.

    Args:
      study: which cells, and how they are searched and trained.
      store: where records are read and written.
      observe: told after every chunk.
      should_stop: asked after every chunk.
      profile_dir: where the second chunk of each program is profiled to; "" for nowhere.

    Raises:
      Preempted: `should_stop` said so. Starting the study again goes on where it was.
    """
    for program, cells in study.groups():
        searches = []
        for cell in cells:
            if is_answered(cell, study, store):
                continue
            search = CellSearch(cell, study.search, store)
            if search.done:
                finish(search, store)
            else:
                searches.append(search)
        if not searches:
            continue
        if should_stop():
            raise Preempted
        logger.info("%s: compiling for %d cells", program.label, len(searches))
        scheduler = Scheduler(
            program, searches, store, study.lanes, study.out, observe, should_stop, profile_dir
        )
        scheduler.run()


def is_answered(cell: CellSpec, study: StudySpec, store: Store) -> bool:
    """Tells whether the store holds this cell's answer to these search settings."""
    record = store.cell(cell.key)
    return record is not None and record.search == study.search.as_dict()
