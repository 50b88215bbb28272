"""The paper's observations 3.1 to 4.5 as inequalities, held against all cells they are about.

Two cells are compared where everything is equal but what the claim compares. A claim never gets a
yes: it gets the number of comparisons that agree, disagree, are undecided, or lack a cell.
"""

import dataclasses
import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from ib_bench.metrics import (
    Bounds,
    Sharing,
    accuracy_at_twice,
    bracket_of,
    find_sharing,
    rank_correlation,
)
from ib_bench.report.legend import make_legend
from ib_bench.report.names import natural_order
from ib_bench.report.sheet import Sheet
from ib_bench.results.record import CellRecord

RECURRENT = ("bilinear", "deltanet", "delta_product", "dense_ssm", "gru", "lstm", "mamba", "rnn")
TRANSFORMERS = ("looped_transformer", "transformer")

# "About 1" and "well below 1" have no number in the paper. N* moves by a factor of up to 1.35 with
# another order of the same data (README), and kappa is a ratio of two of them: what is within 1.5
# of 1 is about 1. The two are reciprocals, so neither side is favoured.
WELL_ABOVE = 1.5
WELL_BELOW = 0.67
# "Rise together": at least a moderate rank correlation, over enough pairs to speak of one.
RISING = 0.5
FEWEST_PAIRS = 5

VERDICTS = ("agree", "disagree", "undecided", "missing")


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One place at which a claim could be held against records."""

    verdict: str  # one of VERDICTS
    text: str  # what was compared, with both numbers
    cells: tuple[str, ...]  # keys of the cells compared; of "missing", those there are


@dataclasses.dataclass(frozen=True)
class Claim:
    id: str  # the paper's number; a letter where one observation holds several claims
    text: str  # with its threshold, where it has one
    comparisons: tuple[Comparison, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many comparisons have each verdict."""
        found = Counter(comparison.verdict for comparison in self.comparisons)
        return {verdict: found[verdict] for verdict in VERDICTS}


def check_claims(cells: Sequence[CellRecord]) -> tuple[Claim, ...]:
    """Holds every observation against a study's finished cells."""
    cells = sorted(cells, key=lambda cell: natural_order(cell.cell_key))
    transformers = [cell for cell in cells if cell.cell["model"]["name"] in TRANSFORMERS]
    recurrent = [cell for cell in cells if cell.cell["model"]["name"] in RECURRENT]
    dense = [cell for cell in cells if cell.cell["model"]["name"] == "dense_ssm"]
    about_1 = f"{WELL_BELOW} to {WELL_ABOVE}"
    return (
        Claim(
            "3.1",
            "transformer: N*(cot) < N*(acot)",
            _compare(transformers, _format, "cot", "acot", _below),
        ),
        Claim(
            "3.2",
            "recurrent: N*(acot) < N*(cot)",
            _compare(recurrent, _format, "acot", "cot", _below),
        ),
        Claim(
            "3.3",
            "outcome: N*(recurrent) < N*(transformer)",
            _compare(_only(cells, "outcome"), _family, "recurrent", "transformer", _below),
        ),
        Claim(
            "3.4a",
            "recurrent, acot: N* falls as L grows",
            _compare_lengths(_only(recurrent, "acot"), lambda short, long: _below(long, short)),
        ),
        Claim(
            "3.4b",
            "recurrent, acot: N*(fixed) <= N*(uniform) <= N*(short_to_long)",
            _compare(_only(recurrent, "acot"), _distribution, "fixed", "uniform", _at_most)
            + _compare(
                _only(recurrent, "acot"), _distribution, "uniform", "short_to_long", _at_most
            ),
        ),
        Claim(
            "3.4c",
            "transformer, cot: N* does not fall as L grows",
            _compare_lengths(_only(transformers, "cot"), _at_most),
        ),
        Claim(
            "3.5",
            "recurrent, outcome: N*(short_to_long) < N*(uniform)",
            _compare(
                _only(recurrent, "outcome"), _distribution, "short_to_long", "uniform", _below
            ),
        ),
        Claim(
            "4.1",
            f"transformer: kappa at most about 1 (<= {WELL_ABOVE})",
            _compare_kappa(transformers, Bounds(0, WELL_ABOVE)),
        ),
        Claim(
            "4.2",
            f"transformer, cot: kappa well below 1 (<= {WELL_BELOW})",
            _compare_kappa(_only(transformers, "cot"), Bounds(0, WELL_BELOW)),
        ),
        Claim(
            "4.3a",
            f"recurrent, outcome and acot: kappa well above 1 (>= {WELL_ABOVE})",
            _compare_kappa(_only(recurrent, "outcome", "acot"), Bounds(WELL_ABOVE, math.inf)),
        ),
        Claim(
            "4.3b",
            f"recurrent, cot: kappa about 1 ({about_1})",
            _compare_kappa(_only(recurrent, "cot"), Bounds(WELL_BELOW, WELL_ABOVE)),
        ),
        Claim(
            "4.4",
            "dense SSM, acot: N* of the joint cell (uniform) falls as L grows",
            _compare_lengths(
                [cell for cell in _only(dense, "acot") if _distribution(cell) == "uniform"],
                lambda short, long: _below(long, short),
            ),
        ),
        Claim(
            "4.5",
            "kappa and accuracy at 2L rise together "
            f"(rank correlation >= {RISING} over at least {FEWEST_PAIRS} pairs; <= 0 disagrees)",
            _correlate(cells),
        ),
    )


# --- what is compared ---------------------------------------------------------------------------


def _format(cell: CellRecord) -> str:
    """Names the format; with a label at every other symbol it is none of the paper's."""
    data = cell.cell["data"]
    every = data.get("label_every", 1)
    return data["format"] if every == 1 else f"{data['format']}/{every}"


def _distribution(cell: CellRecord) -> str:
    return cell.cell["data"]["length_distribution"]


def _length(cell: CellRecord) -> int:
    return cell.cell["data"]["max_length"]


def _family(cell: CellRecord) -> str:
    name = cell.cell["model"]["name"]
    if name in TRANSFORMERS:
        return "transformer"
    return "recurrent" if name in RECURRENT else "neither"


_AXES = {_format: "format", _distribution: "distribution", _length: "length", _family: "model"}


def _only(cells: Sequence[CellRecord], *formats: str) -> list[CellRecord]:
    return [cell for cell in cells if _format(cell) in formats]


def _group(cells: Sequence[CellRecord], axis: Callable) -> list[list[CellRecord]]:
    """Groups cells in which everything is equal but the axis; padding follows from the length."""
    groups = defaultdict(list)
    for cell in cells:
        facets = {
            **{"model": cell.cell["model"], "format": _format(cell), "length": _length(cell)},
            **{"distribution": _distribution(cell), "task": cell.cell["task"]},
            **{"table": cell.cell["table"], "optim": cell.cell["optim"], "grid": cell.cell["grid"]},
            "validation": cell.cell["data"]["validation_lengths"],
        }
        del facets[_AXES[axis]]
        groups[json.dumps(facets, sort_keys=True)].append(cell)
    return list(groups.values())


# --- comparisons --------------------------------------------------------------------------------


def _below(one: CellRecord, other: CellRecord) -> bool | None:
    return bracket_of(one).is_below(bracket_of(other))


def _at_most(one: CellRecord, other: CellRecord) -> bool | None:
    return bracket_of(one).is_at_most(bracket_of(other))


_VERDICT_OF = {True: "agree", False: "disagree", None: "undecided"}


def _compare(
    cells: Sequence[CellRecord], axis: Callable, one: str, other: str, holds: Callable
) -> tuple[Comparison, ...]:
    """Compares every cell at one value of an axis with every cell at the other value."""
    found = []
    for group in _group(cells, axis):
        ones = [cell for cell in group if axis(cell) == one]
        others = [cell for cell in group if axis(cell) == other]
        for first, second in itertools.product(ones, others):
            found.append(_comparison(first, second, holds(first, second)))
        if bool(ones) != bool(others):
            absent = other if ones else one
            found += [_missing(cell, absent) for cell in ones or others]
    return tuple(found)


def _compare_lengths(cells: Sequence[CellRecord], holds: Callable) -> tuple[Comparison, ...]:
    """Compares each length with the next one there is; `holds` takes the shorter first."""
    found = []
    for group in _group(cells, _length):
        group = sorted(group, key=_length)
        if len(group) == 1:
            found.append(_missing(group[0], "another L"))
        for short, long in itertools.pairwise(group):
            if _length(short) < _length(long):
                found.append(_comparison(short, long, holds(short, long)))
    return tuple(found)


def _compare_kappa(cells: Sequence[CellRecord], claimed: Bounds) -> tuple[Comparison, ...]:
    """Holds the sharing factor of every joint cell, as far as it is known, against a range."""
    sharing = {one.joint.cell_key: one for one in find_sharing(cells)}
    found = []
    for joint in cells:
        if _distribution(joint) != "uniform":
            continue
        one = sharing.get(joint.cell_key)
        if one is None or one.missing:
            missing = one.missing if one else range(2, _length(joint) + 1)
            absent = "fixed L = " + ", ".join(map(str, missing))
            found.append(_missing(joint, absent, *(one.parts if one else ())))
            continue
        known = one.resolution
        inside = claimed.low <= known.low and known.high <= claimed.high
        outside = known.high < claimed.low or claimed.high < known.low
        verdict = "agree" if inside else "disagree" if outside else "undecided"
        text = f"{_name(joint)}: kappa {one.bounds.text} (brackets: {known.text})"
        found.append(Comparison(verdict, text, _keys(one)))
    return tuple(found)


def _correlate(cells: Sequence[CellRecord]) -> tuple[Comparison, ...]:
    """Correlates kappa with the joint cell's accuracy at 2L, over cells of one budget and grid."""
    groups = defaultdict(list)
    for one in find_sharing(cells):
        groups[json.dumps([one.joint.cell[name] for name in ("optim", "grid")])].append(one)
    found = []
    for group in groups.values():
        known = [one for one in group if one.bounds.value is not None]
        pairs = [
            (one, accuracy)
            for one in known
            if (accuracy := accuracy_at_twice(one.joint)) is not None
        ]
        kappas = [one.bounds.value for one, _ in pairs]
        rho = rank_correlation(kappas, [accuracy for _, accuracy in pairs])
        shown = "unknown" if rho is None else f"{rho:.2f}"
        text = (
            f"rank correlation {shown} over {len(pairs)} pairs; "
            f"of {len(group)} joint cells {len(group) - len(known)} have no number but a bound, "
            f"{len(known) - len(pairs)} no accuracy at 2L"
        )
        keys = tuple(one.joint.cell_key for one, _ in pairs)
        if not pairs:
            found.append(Comparison("missing", text, tuple(one.joint.cell_key for one in group)))
        elif rho is None or len(pairs) < FEWEST_PAIRS or 0 < rho < RISING:
            found.append(Comparison("undecided", text, keys))
        else:
            found.append(Comparison("agree" if rho >= RISING else "disagree", text, keys))
    return tuple(found)


def _comparison(one: CellRecord, other: CellRecord, holds: bool | None) -> Comparison:
    text = f"{_name(one)}: {_nstar(one)}; {_name(other)}: {_nstar(other)}"
    return Comparison(_VERDICT_OF[holds], text, (one.cell_key, other.cell_key))


def _missing(cell: CellRecord, absent: str, *parts: CellRecord) -> Comparison:
    keys = (cell.cell_key, *(part.cell_key for part in parts))
    return Comparison("missing", f"{_name(cell)}: no finished cell for {absent}", keys)


def _name(cell: CellRecord) -> str:
    model = "-".join(str(value) for value in cell.cell["model"].values())
    return f"{model} {_format(cell)} {cell.cell['task']} {_distribution(cell)} L={_length(cell)}"


def _nstar(cell: CellRecord) -> str:
    if cell.nstar is None:
        return f"not learned up to {cell.max_size}"
    return f"({cell.largest_failed}, {cell.nstar}]"


def _keys(sharing: Sharing) -> tuple[str, ...]:
    return (sharing.joint.cell_key, *(part.cell_key for part in sharing.parts))


def claims_sheet(cells: Sequence[CellRecord], claims: Sequence[Claim]) -> Sheet:
    """Lays out the counts, one claim a row."""
    rows = [
        (claim.id, claim.text, *(str(number) for number in claim.counts.values()))
        for claim in claims
    ]
    legend = (
        "agree, disagree: comparisons of cells that differ in nothing but what the claim compares.",
        "undecided: brackets overlap, or a bound does not settle it. A cell that was not learned "
        "is larger than every N* up to its N_max; two such cells settle nothing.",
        "missing: a cell of the comparison is not there. claims.csv lists every comparison.",
        f"recurrent: {', '.join(RECURRENT)}. transformer: {', '.join(TRANSFORMERS)}.",
        "kappa is held against a threshold with all that its brackets leave open.",
        *make_legend(cells),
    )
    header = ("id", "claim", *VERDICTS)
    return Sheet("claims", "The paper's observations", header, tuple(rows), legend)


def comparisons_sheet(claims: Sequence[Claim]) -> Sheet:
    """Lays out every comparison with the cells that it rests on."""
    found = [(claim, one) for claim in claims for one in claim.comparisons]
    rows = tuple((claim.id, claim.text, one.verdict, one.text) for claim, one in found)
    header = ("id", "claim", "verdict", "comparison")
    cells = tuple(one.cells for _, one in found)
    return Sheet("claims", "Every comparison", header, rows, (), cells)
