"""Metrics: numbers that follow from records. Plain numpy, never JAX."""

from ib_bench.metrics.extrapolation import (
    accuracy_at,
    accuracy_at_twice,
    rank_correlation,
)
from ib_bench.metrics.nstar import Bounds, Bracket, bracket_of
from ib_bench.metrics.sharing import Sharing, find_sharing, sharing_interval
from ib_bench.metrics.success import SuccessCurve, fit_success_curve, success_curve

__all__ = [
    "Bounds",
    "Bracket",
    "Sharing",
    "SuccessCurve",
    "accuracy_at",
    "accuracy_at_twice",
    "bracket_of",
    "find_sharing",
    "fit_success_curve",
    "rank_correlation",
    "sharing_interval",
    "success_curve",
]
