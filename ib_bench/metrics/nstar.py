"""N* as what is known of it: a bracket, or a bound where nothing was learned."""

import dataclasses
import math

from ib_bench.results.record import CellRecord


@dataclasses.dataclass(frozen=True)
class Bracket:
    """low < N* <= high. Where nothing was learned, low is N_max and high is infinite."""

    low: int
    high: float

    def is_below(self, other: "Bracket") -> bool | None:
        """Tells whether N* is smaller than the other's; None where the brackets do not settle it.

        A cell that was not learned is larger than every N* up to its N_max; two such cells are not
        comparable.
        """
        if self.high <= other.low:
            return True
        if other.high <= self.low + 1:  # sizes are integers: N* is at least low + 1
            return False
        return None

    def is_at_most(self, other: "Bracket") -> bool | None:
        """Tells whether N* is no larger than the other's; None where that is not settled."""
        above = other.is_below(self)
        return None if above is None else not above


@dataclasses.dataclass(frozen=True)
class Bounds:
    """A number between two bounds, both included; low 0 or high infinity: no bound on that side."""

    low: float
    high: float

    @property
    def value(self) -> float | None:
        """The number, where the bounds meet."""
        return self.low if self.low == self.high else None

    @property
    def text(self) -> str:
        """ "1.7", "> 3" (at least), "< 0.4" (at most), "0.4 to 3" or "?"."""
        if self.value is not None:
            return f"{self.low:.3g}"
        if self.low > 0:
            unbounded = math.isinf(self.high)
            return f"> {self.low:.3g}" if unbounded else f"{self.low:.3g} to {self.high:.3g}"
        return "?" if math.isinf(self.high) else f"< {self.high:.3g}"


def bracket_of(cell: CellRecord) -> Bracket:
    """Returns what a cell's record says of its N*."""
    if cell.nstar is None:
        return Bracket(cell.max_size, math.inf)
    return Bracket(cell.largest_failed, cell.nstar)


def bounds_of(nstar: int | None, cell: CellRecord) -> Bounds:
    """Returns N* as a number, or a lower bound of it.

    Not learned: N_max + 1 at least. Learned with every training sequence there is (saturated):
    N_max at least, because a larger universe might have asked for more.
    """
    if nstar is None:
        return Bounds(cell.max_size + 1, math.inf)
    saturated = nstar == cell.max_size and cell.limited_by == "universe"
    return Bounds(nstar, math.inf if saturated else nstar)
