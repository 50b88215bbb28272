"""The sharing factor of every joint cell, with its parts and how far it can be relied upon."""

from collections.abc import Mapping, Sequence

from ib_bench.metrics import Bounds, Sharing, accuracy_at_twice, find_sharing, sharing_interval
from ib_bench.report.legend import make_legend
from ib_bench.report.names import task_of
from ib_bench.report.paper import find_kappa
from ib_bench.report.sheet import Sheet
from ib_bench.report.study import Study
from ib_bench.report.tables import short
from ib_bench.results.record import CellRecord

_HEADER = (
    *("model", "format", "task", "L", "kappa", "brackets", "resampled", "N* joint", "N* parts"),
    *("missing", "accuracy at 2L", "paper's kappa"),
)
_LEGEND = (
    "kappa = (sum over n = 2..L of N* at length n alone) / N* of lengths 2..L together (uniform). "
    "Above 1: lengths share a mechanism; about 1: each is learned for itself; below 1: they "
    "interfere.",
    "A part that was not learned counts as N_max + 1 at least, a saturated one as N_max at least, "
    "and makes kappa a lower bound (>); a joint cell like that an upper bound (<); both: ?.",
    "brackets: kappa for every N* that the brackets leave open.",
    "resampled: percentiles 2.5 to 97.5 of kappa where each cell draws its seeds with replacement. "
    "A cancelled run counts as unknown. Covers how far kappa rests on the few seeds that solved a "
    "size; not seeds never tried, sizes between those tried, other learning rates or budgets.",
    "missing: lengths n without a finished cell; without all of them there is no kappa.",
    "accuracy at 2L: of the joint cell, rescaled so that chance is 0; empty: not evaluated.",
)


def sharing_intervals(study: Study) -> list[tuple[Sharing, Bounds]]:
    """Returns every sharing factor with its interval from resampled runs, in the table's order."""
    return [(one, sharing_interval(one, study.probes)) for one in find_sharing(study.cells)]


def sharing_sheet(study: Study, found: Sequence[tuple[Sharing, Bounds]]) -> Sheet:
    """Lays out one joint cell a row."""
    rows = tuple(_row(one, interval, study.labels) for one, interval in found)
    used = {cell.cell_key: cell for one, _ in found for cell in (one.joint, *one.parts)}
    legend = list(_LEGEND)
    if not found:
        legend.insert(0, "No uniform cell of this study has a fixed cell of one of its lengths.")
    legend += make_legend(list(used.values()) or study.cells)
    cells = tuple(tuple(cell.cell_key for cell in (one.joint, *one.parts)) for one, _ in found)
    return Sheet("sharing", "Sharing factor", _HEADER, rows, tuple(legend), cells)


def _row(one: Sharing, interval: Bounds, labels: Mapping[str, str]) -> tuple[str, ...]:
    joint, accuracy, paper = one.joint, accuracy_at_twice(one.joint), find_kappa(one.joint)
    known = not one.missing
    return (
        labels[joint.cell_key],
        joint.cell["data"]["format"],
        task_of(joint),
        str(joint.cell["data"]["max_length"]),
        one.bounds.text,
        one.resolution.text if known else "",
        interval.text if known else "",
        _size(joint),
        ", ".join(f"{part.cell['data']['max_length']}: {_size(part)}" for part in one.parts),
        " ".join(map(str, one.missing)),
        "" if accuracy is None else f"{accuracy:.2f}",
        f"{paper.value:g} ({paper.source})" if paper else "",
    )


def _size(cell: CellRecord) -> str:
    if cell.nstar is None:
        return f"> {short(cell.max_size)}"
    return short(cell.nstar) + (" saturated" if cell.status == "saturated" else "")
