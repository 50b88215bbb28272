"""All submissions of a folder, each checked against the others."""

import pathlib

from ib_bench.leaderboard.check import check
from ib_bench.leaderboard.ranking import best_sizes
from ib_bench.leaderboard.submission import Submission, read
from ib_bench.leaderboard.untrusted import RefusedError, printable


def read_all(folder: pathlib.Path) -> tuple[list[Submission], dict[str, list[str]]]:
    """Reads every submission; returns those that hold up, and what is wrong with the others.

    Raises:
      ValueError: there is no such folder.
    """
    if not folder.is_dir():
        raise ValueError(f"submissions: there is no folder {str(folder)!r}")
    accepted, refused = [], {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        try:
            submission = read(path)
        except RefusedError as error:
            refused[printable(path.name)] = [str(error)]
            continue
        if problems := check(submission):
            refused[printable(path.name)] = problems
        else:
            accepted.append(submission)
    return accepted, refused


def best_of_others(folder: pathlib.Path, name: str, track: str) -> dict[str, int]:
    """Returns the smallest N* of every question among the other submissions of a track."""
    if not folder.is_dir():
        return {}
    accepted, _ = read_all(folder)
    others = [
        one for one in accepted if one.description.name != name and one.description.track == track
    ]
    return best_sizes(others)
