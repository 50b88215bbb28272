"""What a worker does with one unit, in whatever process it runs."""

import logging
import platform
import traceback
from collections.abc import Callable

from ib_bench import PROTOCOL_VERSION
from ib_bench.executors.units import Unit
from ib_bench.results import FailureRecord, Store
from ib_bench.results.environment import describe_software
from ib_bench.search.cell import CellSearch
from ib_bench.search.scheduler import Observer, Preempted, Scheduler, finish
from ib_bench.specs import CellSpec, StudySpec
from ib_bench.training import processes
from ib_bench.training.devices import forget_compiled

logger = logging.getLogger(__name__)


def answer(
    unit: Unit,
    study: StudySpec,
    store: Store,
    observe: Observer,
    should_stop: Callable[[], bool],
    profile_dir: str = "",
) -> list[CellSpec]:
    """Answers the cells of a unit; those whose answer is stored are skipped.

    A cell that raises is recorded under `failures/` and stops no other: the unit is halved until
    it is alone.

    Args:
      unit: what to answer.
      study: how it is searched and trained.
      store: where records are read and written.
      observe: told after every chunk.
      should_stop: asked after every chunk.
      profile_dir: where the second chunk is profiled to; "" for nowhere.

    Returns:
      The cells that failed.

    Raises:
      Preempted: `should_stop` said so. Starting again goes on where it was.
      OSError: the storage failed; nothing that was stored is lost.
    """
    try:
        _answer(unit, study, store, observe, should_stop, profile_dir)
        return []
    except (Preempted, OSError):
        raise
    except Exception as error:
        if len(unit.cells) == 1:
            return [record_failure(unit.cells[0], error, store)]
        logger.warning("%s: %s; its cells are tried apart", unit.program.label, _line(error))
    middle = len(unit.cells) // 2
    failed = []
    for cells in (unit.cells[:middle], unit.cells[middle:]):
        half = unit._replace(cells=cells)
        failed += answer(half, study, store, observe, should_stop, profile_dir)
    return failed


def _answer(unit, study, store, observe, should_stop, profile_dir) -> None:
    searches = []
    for cell in unit.cells:
        if is_answered(cell, study, store):
            continue
        search = CellSearch(cell, study.search, store)
        if search.done:
            finish(search, store)
        else:
            searches.append(search)
    if not searches:
        return
    if processes.any_of(should_stop()):
        raise Preempted
    logger.info("%s: compiling for %d cells", unit.program.label, len(searches))
    scheduler = Scheduler(
        unit.program, searches, store, study.lanes, study.out, observe, should_stop, profile_dir
    )
    try:
        scheduler.run()
    finally:
        del scheduler
        forget_compiled()


def is_answered(cell: CellSpec, study: StudySpec, store: Store) -> bool:
    """Tells whether the store holds this cell's answer to these search settings."""
    record = store.cell(cell.key)
    return record is not None and record.search == study.search.as_dict()


def record_failure(cell: CellSpec, error: BaseException, store: Store) -> CellSpec:
    """Stores what a cell raised; returns the cell."""
    record = FailureRecord(
        protocol=PROTOCOL_VERSION,
        cell_key=cell.key,
        cell=cell.as_dict(),
        error=_line(error),
        traceback="".join(traceback.format_exception(error)),
        host=platform.node(),
        environment=describe_software(),
    )
    store.write(record)
    logger.error("%s failed: %s; see %s", cell.label, record.error, store.failure_path(cell.key))
    return cell


def _line(error: BaseException) -> str:
    """An error in one line: its class and the beginning of what it says."""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0][:300]}" if said else type(error).__name__
