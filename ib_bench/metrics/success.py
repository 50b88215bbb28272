"""How often a size is enough: a logistic curve in log N, and N50, where half of the seeds succeed.

P(success at N) = 1 / (1 + exp(-slope (log N - log N50))),  slope >= 0
"""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from ib_bench.results.record import ProbeRecord

# Half the 95 % quantile of chi-square with one degree of freedom: how far the profile likelihood
# may fall below its maximum inside the interval.
_DROP = 1.920729
_STEEPEST = 1e3  # slope; from one size to one 1 % larger P rises from 0.5 to 0.99995
_POINTS, _ZOOMS = 13, 4  # each zoom narrows an end, or the top, to a twelfth
_HALVINGS = 32  # of the range of slopes: to 2e-7


@dataclasses.dataclass(frozen=True)
class SuccessCurve:
    """What was seen, and the curve through it."""

    sizes: tuple[int, ...]  # N, ascending
    successes: tuple[int, ...]
    trials: tuple[int, ...]  # seeds
    n50: float | None  # None: all or none succeeded, or success does not rise with N
    slope: float | None  # per unit of log N; infinite where no size had both outcomes
    low: float  # 95 % interval of N50; 0: no lower bound
    high: float  # infinite: no upper bound
    left_out: int = 0  # probes with cancelled runs

    def probability(self, size: float) -> float | None:
        """P(success at a size); None where there is no curve."""
        if self.n50 is None:
            return None
        return float(_probability(min(self.slope, _STEEPEST) * math.log(size / self.n50)))


def success_curve(probes: Sequence[ProbeRecord]) -> SuccessCurve | None:
    """Fits the curve of one cell; None where no probe has all of its runs.

    A seed succeeds at N if any of its learning rates solved it. A probe with a cancelled run is
    left out and counted. That leans towards failure, since runs are cancelled where one was solved:
    only a curve with nothing left out is to be trusted. Seeds share their data from size to size,
    which the fit takes as independent trials.
    """
    whole = [probe for probe in probes if all(run.outcome != "cancelled" for run in probe.runs)]
    if not whole:
        return None
    counts = []
    for probe in sorted(whole, key=lambda probe: probe.size):
        solved = defaultdict(bool)
        for run in probe.runs:
            solved[run.seed] |= run.outcome == "solved"
        counts.append((probe.size, sum(solved.values()), len(solved)))
    curve = fit_success_curve(*zip(*counts, strict=True))
    return dataclasses.replace(curve, left_out=len(probes) - len(whole))


def fit_success_curve(
    sizes: Sequence[int], successes: Sequence[int], trials: Sequence[int]
) -> SuccessCurve:
    """Fits N50 by maximum likelihood, with a 95 % interval from the profile likelihood.

    Where a size separates failures from successes, N50 is the geometric mean of the gap. Where all
    or none succeeded there is no N50, but a bound.

    Raises:
      ValueError: the three differ in length or are empty, a size is below 1, or a count out of
        range.
    """
    counts = sorted(zip(sizes, successes, trials, strict=True))
    if not counts or any(size < 1 or not 0 <= k <= n or n < 1 for size, k, n in counts):
        raise ValueError(
            f"counts: {counts} are no (size, successes, trials); give at least one, with size >= 1 "
            "and 0 <= successes <= trials, trials >= 1"
        )
    study = _Study(*(np.array(column, float) for column in zip(*counts, strict=True)))
    best, slope, log_n50 = study.fit()
    low, high = study.interval(best - _DROP, log_n50)
    return SuccessCurve(
        *(tuple(column) for column in zip(*counts, strict=True)),
        n50=None if log_n50 is None else math.exp(log_n50),
        slope=slope,
        low=low,
        high=high,
    )


class _Study:
    """The likelihood of one study. Arrays are over K sizes; x = log N, t = log N50."""

    def __init__(self, sizes_K: np.ndarray, successes_K: np.ndarray, trials_K: np.ndarray):
        self.x_K, self.k_K, self.n_K = np.log(sizes_K), successes_K, trials_K

    def fit(self) -> tuple[float, float | None, float | None]:
        """Returns the largest log-likelihood, and slope and log N50 where there are any."""
        failed, solved = self.x_K[self.k_K < self.n_K], self.x_K[self.k_K > 0]
        flat = self.likelihood_of_constant(self.k_K.sum() / self.n_K.sum())
        if not failed.size or not solved.size:
            return flat, None, None
        if failed.max() < solved.min():
            return 0.0, math.inf, (failed.max() + solved.min()) / 2
        spread = self.x_K.max() - self.x_K.min() + 1
        points = np.linspace(self.x_K.min() - 3 * spread, self.x_K.max() + 3 * spread, 8 * _POINTS)
        for _ in range(_ZOOMS):  # the profile has one top
            profile, slopes = self.profile(points)
            top = int(profile.argmax())
            best, slope, log_n50 = profile[top], slopes[top], points[top]
            points = np.linspace(
                points[max(0, top - 1)], points[min(top + 1, points.size - 1)], _POINTS
            )
        if best <= flat + 1e-9 or slope <= 0:
            return max(flat, float(best)), None, None
        return float(best), float(slope), float(log_n50)

    def interval(self, cut: float, log_n50: float | None) -> tuple[float, float]:
        """Returns the smallest and the largest N50 whose profile is at least `cut`."""
        rate = self.k_K.sum() / self.n_K.sum()
        # As N50 goes to 0 (infinity) the best curve becomes a constant of at least (most) one half.
        unbounded = [self.likelihood_of_constant(bound(rate, 0.5)) for bound in (max, min)]
        ends = []
        for side, limit in zip((-1, 1), unbounded, strict=True):
            ends.append(side * math.inf if limit >= cut else self._crossing(side, cut, log_n50))
        return math.exp(ends[0]), math.exp(ends[1])

    def _crossing(self, side: int, cut: float, inside: float | None) -> float:
        """Returns where, coming from outside, the profile first reaches `cut`.

        Without an N50 the other side is unbounded: some place there is inside.
        """
        if inside is None:
            inside = self._search(-side, lambda value: value >= cut)
        outside = self._search(side, lambda value: value < cut, beyond=inside)
        points = np.linspace(outside, inside, 2 * _POINTS)
        for _ in range(_ZOOMS):
            reached = self.profile(points)[0] >= cut
            first = int(reached.argmax()) if reached.any() else points.size - 1
            points = np.linspace(points[max(0, first - 1)], points[first], _POINTS)
        return float(points[-1])

    def _search(self, side: int, fits, beyond: float | None = None) -> float:
        """Goes outward, twice as far each time, to a place whose profile fits."""
        start = self.x_K.max() if side > 0 else self.x_K.min()
        if beyond is not None:
            start = max(start, beyond) if side > 0 else min(start, beyond)
        reach = float(np.ptp(self.x_K)) + 1
        for _ in range(60):
            if fits(self.profile(np.array([start + side * reach]))[0][0]):
                break
            reach *= 2
        return start + side * reach

    def profile(self, t_P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns log-likelihoods at the best slope, and that slope, for P places of log N50.

        The likelihood is concave in the slope, so its derivative is halved to zero.
        """
        away_PK = self.x_K - t_P[:, None]

        def derivative(slope_P):
            expected_PK = self.n_K * _probability(slope_P[:, None] * away_PK)
            return ((self.k_K - expected_PK) * away_PK).sum(axis=1)

        low_P, high_P = np.zeros_like(t_P), np.full_like(t_P, _STEEPEST)
        flat_P = derivative(low_P) <= 0
        for _ in range(_HALVINGS):
            middle_P = (low_P + high_P) / 2
            rising_P = derivative(middle_P) > 0
            low_P = np.where(rising_P, middle_P, low_P)
            high_P = np.where(rising_P, high_P, middle_P)
        slope_P = np.where(flat_P, 0.0, (low_P + high_P) / 2)
        logits_PK = slope_P[:, None] * away_PK
        # log p = -log(1 + exp(-logit)), log(1 - p) = -log(1 + exp(logit))
        terms_PK = self.k_K * np.logaddexp(0, -logits_PK)
        terms_PK += (self.n_K - self.k_K) * np.logaddexp(0, logits_PK)
        return -terms_PK.sum(axis=1), slope_P

    def likelihood_of_constant(self, rate: float) -> float:
        solved, failed = self.k_K.sum(), (self.n_K - self.k_K).sum()
        parts = [(solved, rate), (failed, 1 - rate)]
        return sum(
            count * (math.log(share) if share > 0 else -math.inf) for count, share in parts if count
        )


def _probability(logits: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * np.asarray(logits)))
