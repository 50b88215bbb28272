"""Which N to try next: pure functions from what is known of a cell. Plain Python, no JAX.

A policy is called with the verdicts so far and returns a round of sizes, or () when it is done.
It sees no clock, no lanes and no machine, so the answer of a search depends on the verdicts alone.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from ib_bench.specs import SearchSpec


class Knowledge(NamedTuple):
    """The verdicts of a cell so far."""

    max_size: int  # N_max
    learned: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()

    @property
    def num_probes(self) -> int:
        return len(self.learned) + len(self.failed)

    @property
    def high(self) -> int | None:
        """N*: the smallest learned size; None where nothing was learned yet."""
        return min(self.learned, default=None)

    @property
    def low(self) -> int:
        """The largest failed size below N* (0: none failed; no data teach nothing)."""
        ceiling = math.inf if self.high is None else self.high
        return max((size for size in self.failed if size < ceiling), default=0)

    @property
    def contradictions(self) -> tuple[tuple[int, int], ...]:
        """Pairs (learned N, larger failed N): evidence that success is not monotone in N."""
        return tuple((a, b) for a in sorted(self.learned) for b in sorted(self.failed) if b > a)


MAX_PLACES = 512  # 16 million sizes at the default tolerance need fewer

Policy = Callable[[Knowledge, SearchSpec], tuple[int, ...]]


def propose(knowledge: Knowledge, search: SearchSpec) -> tuple[int, ...]:
    """Returns the next round: distinct sizes not tried before, largest first; () when done."""
    left = search.max_probes - knowledge.num_probes
    sizes = POLICIES[search.policy](knowledge, search)
    return tuple(sizes[: max(0, min(search.width, left))])


def is_closed(knowledge: Knowledge, tolerance: float) -> bool:
    """Tells whether the bracket (low, high] is as narrow as asked."""
    low, high = knowledge.low, knowledge.high
    return high is not None and (high - low <= 1 or high <= low * (1 + tolerance))


def cost_aware(knowledge: Knowledge, search: SearchSpec) -> tuple[int, ...]:
    """Spends the least in expectation, where a failed probe costs `failure_cost` learned ones.

    N_max comes first: where that fails the cell is not learned. Then the sizes left in the bracket
    are cut where a dynamic programme over their number says (`best_cut`); as failing is dear, that
    is far nearer to the smallest learned size than to the largest failed one.
    """
    if not knowledge.learned:
        return () if knowledge.failed else (knowledge.max_size,)
    if is_closed(knowledge, search.tolerance):
        return ()
    # Coarse at first where the tolerance is fine: the programme is quadratic in the sizes.
    ratio = knowledge.high / max(1, knowledge.low)
    tolerance = max(search.tolerance, ratio ** (1 / MAX_PLACES) - 1)
    grid = _sizes_between(knowledge.low, knowledge.high, tolerance)
    round_ = []
    while grid and len(round_) < search.width:
        # The next size of a round is the one that follows if all so far are learned.
        cut = best_cut(len(grid) + 1, search.failure_cost)
        round_.append(grid[cut - 1])
        grid = grid[cut:]
    return tuple(round_)


def paper(knowledge: Knowledge, search: SearchSpec) -> tuple[int, ...]:
    """The paper's "hybrid binary-geometric" search, as far as it can be reconstructed.

    Start at N_max; while every size was learned divide by 1000; from the first failure on bisect
    between the largest failed and the smallest learned size.
    """
    if not knowledge.learned:
        return () if knowledge.failed else (knowledge.max_size,)
    if is_closed(knowledge, search.tolerance):
        return ()
    if not knowledge.failed:
        return (max(1, knowledge.high // 1000),)
    return ((knowledge.low + knowledge.high) // 2,)


def grid(knowledge: Knowledge, search: SearchSpec) -> tuple[int, ...]:
    """Tries every size of `search.sizes`, largest first, whatever the others said."""
    tried = {*knowledge.learned, *knowledge.failed}
    return tuple(sorted({size for size in search.sizes if size not in tried}, reverse=True))


POLICIES: dict[str, Policy] = {"cost_aware": cost_aware, "grid": grid, "paper": paper}

# A smaller learned size of the same round makes a larger one moot; `grid` wants every verdict.
CANCELS_LARGER = {"cost_aware": True, "grid": False, "paper": True}


def _sizes_between(low: int, high: int, tolerance: float) -> list[int]:
    """Sizes a search to this tolerance may still need, descending: high > sizes > low."""
    sizes, size = [], high
    while size - low > 1 and size > low * (1 + tolerance):
        size = max(low + 1, min(size - 1, math.ceil(size / (1 + tolerance))))
        sizes.append(size)
    return sizes


def best_cut(num_places: int, failure_cost: float) -> int:
    """Returns at which of `num_places` equally likely places of N* to cut, counted from the top."""
    return _plan(failure_cost, 1 << (max(2, num_places) - 1).bit_length())[num_places]


@functools.lru_cache(maxsize=16)
def _plan(failure_cost: float, size: int) -> list[int]:
    """The dynamic programme: cost(n) = min over cuts of the probe and of what is left after it.

    N* is one of n places, all equally likely (log-uniform on a geometric grid). A probe at the cut
    j is learned where N* is not among the top j: then n - j places are left and it cost 1;
    otherwise it failed, j are left and it cost `failure_cost`.
    """
    cost, cut = [0.0, 0.0], [0, 0]
    for n in range(2, size + 1):
        best = min(
            (((n - j) * (1 + cost[n - j]) + j * (failure_cost + cost[j])) / n, j)
            for j in range(1, n)
        )
        cost.append(best[0])
        cut.append(best[1])
    return cut
