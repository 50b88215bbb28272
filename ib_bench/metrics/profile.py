"""Performance profiles (Dolan and More, 2002): how often a model is within tau times the best.

N* are censored and span orders of magnitude, so their means say little. The share of cells that a
model learns from at most tau times the data of the best model says what both do; a cell that was
not learned counts as infinite, whatever its N_max.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

from ib_bench.metrics.nstar import bracket_of
from ib_bench.results.record import CellRecord

MOST_TAU = 32.0  # profiles are compared from 1 to here


@dataclasses.dataclass(frozen=True)
class Profile:
    """A model's cells as multiples of the best model's N*.

    Attributes:
      ratios: N* / best, ascending; infinite where not learned or missing.
      lows: the same for the smallest N* that the brackets leave open.
    """

    ratios: tuple[float, ...]
    lows: tuple[float, ...]

    def share(self, tau: float) -> float:
        """Share of all cells that are solved within tau times the best N*."""
        return sum(ratio <= tau for ratio in self.ratios) / len(self.ratios)

    @property
    def score(self) -> float:
        """Area under the profile over log tau from 1 to `MOST_TAU`, between 0 and 1."""
        return _area(self.ratios)

    @property
    def highest_score(self) -> float:
        """The score if every N* were at the lower end of its bracket."""
        return _area(self.lows)


def _area(ratios: Sequence[float]) -> float:
    within = [max(0.0, 1 - math.log(max(1.0, ratio)) / math.log(MOST_TAU)) for ratio in ratios]
    return sum(within) / len(within)


def profiles(
    models: Mapping[str, Mapping[str, CellRecord]], questions: Sequence[str]
) -> dict[str, Profile]:
    """Returns the profile of every model.

    Args:
      models: by model, its cells by question.
      questions: all that are asked; one that no model learned counts for none and against none.
    """
    best = {}
    for question in questions:
        known = [cells[question].nstar for cells in models.values() if question in cells]
        best[question] = min((nstar for nstar in known if nstar), default=None)
    asked = [question for question in questions if best[question]]
    found = {}
    for name, cells in models.items():
        ratios, lows = [], []
        for question in asked:
            cell = cells.get(question)
            learned = cell is not None and cell.nstar is not None
            ratios.append(cell.nstar / best[question] if learned else math.inf)
            lows.append((bracket_of(cell).low + 1) / best[question] if learned else math.inf)
        found[name] = Profile(*(tuple(sorted(some or [math.inf])) for some in (ratios, lows)))
    return found


def ranks(found: Mapping[str, Profile]) -> dict[str, int]:
    """Returns the rank of every model: 1 and how many are better whatever the brackets leave open.

    A model is better where its score is above the highest that the other's brackets allow. What is
    not settled so is a tie, and shares its rank.
    """
    return {
        name: 1 + sum(other.score > one.highest_score for other in found.values())
        for name, one in found.items()
    }
