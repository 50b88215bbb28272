"""Results: the schema of records, and the files they are in."""

from ib_bench.results.record import (
    CellRecord,
    Extrapolation,
    FailureRecord,
    LaneSteps,
    ProbeRecord,
    ProbeSummary,
    RunRecord,
    Seconds,
)
from ib_bench.results.store import Store

__all__ = [
    "CellRecord",
    "Extrapolation",
    "FailureRecord",
    "LaneSteps",
    "ProbeRecord",
    "ProbeSummary",
    "RunRecord",
    "Seconds",
    "Store",
]
