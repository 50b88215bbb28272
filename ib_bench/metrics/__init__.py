"""Metrics: numbers that follow from records. Plain numpy, never JAX."""

from ib_bench.metrics.extrapolation import (
    accuracy_at,
    accuracy_at_twice,
    rank_correlation,
)
from ib_bench.metrics.nstar import Bounds, Bracket, bracket_of
from ib_bench.metrics.profile import Profile, profiles, ranks
from ib_bench.metrics.sharing import Sharing, find_sharing, sharing_interval
from ib_bench.metrics.success import SuccessCurve, fit_success_curve, success_curve

__all__ = [
    "Bounds",
    "Bracket",
    "Profile",
    "Sharing",
    "SuccessCurve",
    "accuracy_at",
    "accuracy_at_twice",
    "bracket_of",
    "find_sharing",
    "fit_success_curve",
    "profiles",
    "rank_correlation",
    "ranks",
    "sharing_interval",
    "success_curve",
]
