"""Searches on cells of which N* is known beforehand: what a policy spends. No flags, no JAX."""

import math
import random
from collections.abc import Sequence
from typing import Any

from ib_bench.search.policy import Knowledge, propose
from ib_bench.specs import SearchSpec

FAILURE_COST = 50.0  # of a failed probe, in learned ones


def nstars(count: int) -> list[int]:
    """Draws N*, log-uniform in 5 to 5 million; the same at every call."""
    draw = random.Random(0)
    return [round(math.exp(draw.uniform(math.log(5), math.log(5e6)))) for _ in range(count)]


def search_for(nstar: int, policy: str) -> Knowledge:
    """Returns what a search to 5 % knows at its end of a cell with this N*."""
    search = SearchSpec("nstar", policy, 16_000_000, 0.05, 1, 100, FAILURE_COST, (), False)
    known = Knowledge(search.max_size)
    while sizes := propose(known, search):
        field = "learned" if sizes[0] >= nstar else "failed"
        known = known._replace(**{field: (*getattr(known, field), sizes[0])})
    return known


def compare(policies: Sequence[str], num_cells: int) -> list[dict[str, Any]]:
    """Returns a row per policy: probes and cost of a cell on average, and against the first."""
    rows = []
    for policy in policies:
        found = [search_for(nstar, policy) for nstar in nstars(num_cells)]
        failed = sum(len(known.failed) for known in found) / num_cells
        learned = sum(len(known.learned) for known in found) / num_cells
        cost = FAILURE_COST * failed + learned
        rows.append({"name": policy, "failed": failed, "learned": learned, "cost": cost})
        rows[-1]["failed_share"] = failed / rows[0]["failed"]
        rows[-1]["cost_share"] = cost / rows[0]["cost"]
    return rows
