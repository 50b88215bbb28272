"""Who comes first on a track, and by how much: from records, by the metrics that reports use."""

import dataclasses
from collections.abc import Mapping, Sequence

from ib_bench.leaderboard.submission import Submission
from ib_bench.leaderboard.tracks import Track, question_of
from ib_bench.metrics import Profile, Sharing, accuracy_at_twice, find_sharing, profiles, ranks
from ib_bench.results import CellRecord


@dataclasses.dataclass(frozen=True)
class Entry:
    """A submission on the board."""

    submission: Submission
    cells: Mapping[str, CellRecord]  # by question
    profile: Profile
    rank: int
    verified: bool

    @property
    def title(self) -> str:
        return self.submission.description.title

    @property
    def sharing(self) -> list[Sharing]:
        return find_sharing(self.submission.cells)

    @property
    def accuracies(self) -> dict[str, float]:
        """Rescaled accuracy at 2L of the cells with mixed lengths, by question."""
        found = {
            question: accuracy_at_twice(cell)
            for question, cell in self.cells.items()
            if cell.cell["data"]["length_distribution"] != "fixed"
        }
        return {question: value for question, value in found.items() if value is not None}


def rank(
    submissions: Sequence[Submission], track: Track, verified: Mapping[str, str]
) -> list[Entry]:
    """Returns the entries of a track, the best first; ties in the order of their titles.

    Args:
      submissions: of this track, checked.
      track: what was asked.
      verified: hashes of records that a rerun has confirmed, by submission.
    """
    by_name = {one.description.name: one for one in submissions}
    cells = {
        name: {question_of(cell.cell): cell for cell in one.cells} for name, one in by_name.items()
    }
    found = profiles(cells, list(track.cells))
    places = ranks(found)
    entries = [
        Entry(
            one,
            cells[name],
            found[name],
            places[name],
            verified.get(name) == one.description.records,
        )
        for name, one in by_name.items()
    ]
    return sorted(entries, key=lambda entry: (entry.rank, -entry.profile.score, entry.title))


def best_sizes(submissions: Sequence[Submission]) -> dict[str, int]:
    """Returns the smallest N* of every question that somebody has learned."""
    best: dict[str, int] = {}
    for submission in submissions:
        for cell in submission.cells:
            if cell.nstar is not None:
                question = question_of(cell.cell)
                best[question] = min(cell.nstar, best.get(question, cell.nstar))
    return best
