"""Accuracy beyond the training lengths, where chance is 0 (paper, section 4, table 2)."""

from collections.abc import Sequence

import numpy as np

from ib_bench.results.record import CellRecord


def accuracy_at(cell: CellRecord, length: int) -> float | None:
    """Returns (accuracy - chance) / (1 - chance) at a length; None where it was not evaluated."""
    seen = cell.extrapolation
    if seen is None or length not in seen.lengths:
        return None
    return seen.rescaled[seen.lengths.index(length)]


def accuracy_at_twice(cell: CellRecord) -> float | None:
    """Returns the rescaled accuracy at 2L, the paper's length; None where it was not evaluated."""
    return accuracy_at(cell, 2 * cell.cell["data"]["max_length"])


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Returns Spearman's rho of two equally long lists; ties share the mean of their ranks.

    None for fewer than three pairs, or where all of one list is the same.
    """
    ranks = [_ranks(values) for values in (first, second)]
    if ranks[0].shape != ranks[1].shape:
        raise ValueError(
            f"rank_correlation: {len(first)} and {len(second)} values; give as many of each"
        )
    if len(first) < 3 or any(np.ptp(some) == 0 for some in ranks):
        return None
    return float(np.corrcoef(*ranks)[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    values = np.asarray(values, float)
    below = (values[:, None] > values).sum(axis=1)
    equal = (values[:, None] == values).sum(axis=1)
    return below + (equal + 1) / 2
