"""The sharing factor (paper, section 4): do lengths help each other, or stand in each other's way?

  kappa = (sum over n = 2..L of N*_n) / N*_joint

N*_n is from a `fixed` cell of length n alone, N*_joint from the `uniform` cell of 2..L. Above 1 the
lengths share a mechanism, near 1 each is learned for itself, below 1 they interfere.
"""

import dataclasses
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from ib_bench.metrics.nstar import Bounds, bounds_of, bracket_of
from ib_bench.results.record import CellRecord, ProbeRecord

RESAMPLES = 1000
_SEED = 20260218  # of resampling; with the cell's key, so no cell's draws depend on other cells


@dataclasses.dataclass(frozen=True)
class Sharing:
    """The cells that a sharing factor is made of. Without all of its parts it has no number."""

    joint: CellRecord
    parts: tuple[CellRecord, ...]  # by length; those there are
    missing: tuple[int, ...]  # lengths without a finished cell

    @property
    def bounds(self) -> Bounds:
        """kappa, or a bound on it.

        A part that was not learned, or is saturated, makes the sum a lower bound; a joint cell like
        that makes kappa an upper bound; both, or a missing part: nothing is known.
        """
        return self._ratio(
            [bounds_of(part.nstar, part) for part in self.parts],
            bounds_of(self.joint.nstar, self.joint),
        )

    @property
    def resolution(self) -> Bounds:
        """kappa for every N* that the brackets leave open; as wide as the search's tolerance."""

        def open_sizes(cell):
            return Bounds(bracket_of(cell).low + 1, bounds_of(cell.nstar, cell).high)

        return self._ratio([open_sizes(part) for part in self.parts], open_sizes(self.joint))

    def _ratio(self, parts: Sequence[Bounds], joint: Bounds) -> Bounds:
        if self.missing:
            return Bounds(0, math.inf)
        low = sum(part.low for part in parts) / joint.high
        return Bounds(low, sum(part.high for part in parts) / joint.low)


def find_sharing(cells: Sequence[CellRecord]) -> list[Sharing]:
    """Returns one entry for each `uniform` cell that has at least one of its parts.

    All that a verdict depends on is equal but length and distribution: task, model, format, kind of
    validation, optimizer and grid. Padding, evaluation lengths and search settings may differ. Of
    several cells for one part, the one padded as the joint cell is taken, then the narrowest.
    """
    fixed = defaultdict(list)
    for cell in cells:
        if cell.cell["data"]["length_distribution"] == "fixed":
            fixed[question_of(cell), cell.cell["data"]["max_length"]].append(cell)
    found = []
    for joint in cells:
        if joint.cell["data"]["length_distribution"] != "uniform":
            continue
        lengths = range(2, joint.cell["data"]["max_length"] + 1)
        parts = [
            min(some, key=lambda part: _preference(part, joint))
            for length in lengths
            if (some := fixed.get((question_of(joint), length)))
        ]
        known = {part.cell["data"]["max_length"] for part in parts}
        if parts:
            missing = tuple(length for length in lengths if length not in known)
            found.append(Sharing(joint, tuple(parts), missing))
    return found


def question_of(cell: CellRecord) -> str:
    """Names all that two cells of one sharing factor have in common."""
    spec, data = cell.cell, cell.cell["data"]
    same = [spec["task"], spec["table"], spec["model"], spec["optim"], spec["grid"]]
    same += [data["format"], data.get("label_every", 1), data["validation_lengths"]]
    return json.dumps(same, sort_keys=True)


def _preference(part: CellRecord, joint: CellRecord) -> tuple:
    def padding(cell):
        data = cell.cell["data"]
        return [data[name] for name in sorted(data) if name.startswith("padded_")]

    bracket = bracket_of(part)
    width = bracket.high / max(1, bracket.low)
    return padding(part) != padding(joint), width, part.cell_key


def sharing_interval(
    sharing: Sharing, probes: Mapping[str, Sequence[ProbeRecord]], resamples: int = RESAMPLES
) -> Bounds:
    """Returns percentiles 2.5 and 97.5 of kappa over resampled runs.

    In each resample every cell draws its seeds with replacement, as many as it has; a seed brings
    its runs at all sizes and learning rates, because it is one data set and one initialisation. A
    size is learned again if a drawn run solved it, and failed if all drawn runs went to their end
    unsolved. Otherwise a drawn run was cancelled: that its sibling was faster is no evidence that
    it would have failed, so the size keeps its recorded verdict. N* is then the smallest learned
    size, and resamples that give a bound count on both sides of it.

    The interval covers how far kappa rests on the few seeds that solved a size. It does not cover
    seeds that were never tried (a size at which all runs failed fails in every resample, so N* only
    rises), sizes between those tried (`Sharing.resolution`), other learning rates or budgets. Where
    runs were cancelled it is too narrow.

    Args:
      sharing: of which cells.
      probes: per cell key, the stored probes.
      resamples: how many.
    """
    if sharing.missing:
        return Bounds(0, math.inf)
    parts = [_resample(part, probes.get(part.cell_key, ()), resamples) for part in sharing.parts]
    low, high = _resample(sharing.joint, probes.get(sharing.joint.cell_key, ()), resamples)
    lows = sum(part[0] for part in parts) / high
    highs = sum(part[1] for part in parts) / low
    return Bounds(
        float(np.percentile(lows, 2.5, method="lower")),
        float(np.percentile(highs, 97.5, method="higher")),
    )


def _resample(
    cell: CellRecord, probes: Sequence[ProbeRecord], resamples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns lower and upper bounds of N*, float[resamples] each."""
    probes = sorted(probes, key=lambda probe: probe.size)
    seeds = sorted({run.seed for probe in probes for run in probe.runs})
    if cell.nstar not in {None, *(probe.size for probe in probes)} or not seeds:
        # The runs behind the answer are not stored: the recorded N* is all there is.
        bounds = bounds_of(cell.nstar, cell)
        return np.full(resamples, bounds.low), np.full(resamples, bounds.high)
    rng = np.random.default_rng([_SEED, *cell.cell_key.encode()])
    draws = rng.integers(len(seeds), size=(resamples, len(seeds)))
    nstar = np.full(resamples, np.inf)
    for probe in reversed(probes):  # the smallest learned size is written last
        solved, failed = _outcomes(probe, seeds)
        learned = solved[draws].any(axis=1)
        if probe.verdict == "learned":
            learned |= ~failed[draws].all(axis=1)
        nstar[learned] = probe.size
    bounds = {size: bounds_of(None if math.isinf(size) else int(size), cell) for size in set(nstar)}
    return (
        np.array([bounds[size].low for size in nstar], float),
        np.array([bounds[size].high for size in nstar], float),
    )


def _outcomes(probe: ProbeRecord, seeds: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Returns per seed whether any of its runs solved the size, and whether all ended unsolved."""
    outcomes = defaultdict(list)
    for run in probe.runs:
        outcomes[run.seed].append(run.outcome)
    solved = [("solved" in outcomes[seed]) for seed in seeds]
    ended = [bool(outcomes[seed]) and "cancelled" not in outcomes[seed] for seed in seeds]
    return np.array(solved), np.array(ended) & ~np.array(solved)
