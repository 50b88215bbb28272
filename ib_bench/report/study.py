"""All records of one or several workdirs: the finished cells, and every run behind them."""

import dataclasses
import logging
from collections.abc import Mapping, Sequence

from ib_bench.report.names import order_of
from ib_bench.report.tables import label_rows
from ib_bench.results.record import CellRecord, ProbeRecord
from ib_bench.results.store import Store

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Study:
    cells: tuple[CellRecord, ...]  # in the order of the N* table
    probes: Mapping[str, Sequence[ProbeRecord]]  # by cell key
    labels: Mapping[str, str]  # by cell key: the model, with the settings that tell it from others


def make_study(
    cells: Sequence[CellRecord], probes: Mapping[str, Sequence[ProbeRecord]] | None = None
) -> Study:
    """Orders and labels records whose keys are distinct."""
    cells = sorted(cells, key=order_of)
    labels = {cell.cell_key: label for label, some in label_rows(cells) for cell in some}
    return Study(tuple(cells), probes or {}, labels)


def read_study(stores: Sequence[Store]) -> Study:
    """Reads the records of all stores; of a cell that several answered, the first one's.

    Raises:
      ValueError: there is no finished cell.
    """
    cells, probes = {}, {}
    for store in stores:
        found = {cell.cell_key: cell for cell in store.cells()}
        if known := sorted(found.keys() & cells.keys()):
            logger.warning(
                "%d cells of %s are in an earlier workdir too, and taken from there: %s",
                *(len(known), store.workdir, ", ".join(known)),
            )
        for key in found.keys() - cells.keys():
            cells[key], probes[key] = found[key], store.probes(key)
    if not cells:
        raise ValueError(no_cells(stores[0]))
    return make_study(list(cells.values()), probes)


def no_cells(store: Store) -> str:
    """Says what to do about a workdir without a finished cell."""
    return (
        f"workdir: {str(store.workdir)!r} holds no finished cells; "
        f"run `ib_bench run --config=... --workdir={store.workdir}` first"
    )
