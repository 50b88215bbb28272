"""ib_bench leaderboard: one page and one table from all submissions that hold up."""

import pathlib

from absl import flags

SUBMISSIONS = flags.DEFINE_string(
    "submissions", "leaderboard/submissions", "folder of the submissions, one a folder"
)
OUT = flags.DEFINE_string("out", "leaderboard", "where the page and the table are written")

EX_REFUSED = 1


def main(argv: list[str]) -> int:
    """Writes the board.

    Returns:
      0, or 1 where a submission was refused and left out.
    """
    if len(argv) > 1:
        raise ValueError(
            f"leaderboard: unexpected argument {argv[1]!r}; options are written --name=value"
        )
    from rich.console import Console

    from ib_bench.leaderboard.board import read_verified, write_board
    from ib_bench.leaderboard.submissions import read_all
    from ib_bench.report.folder import missing_packages

    console, out = Console(), pathlib.Path(OUT.value)

    def say(text):
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    submissions, refused = read_all(pathlib.Path(SUBMISSIONS.value))
    for name, problems in refused.items():
        for told in problems[:5]:
            say(f"left out: {name}: {told}")
    out.mkdir(parents=True, exist_ok=True)
    for path in write_board(submissions, read_verified(out / "verified.json"), out):
        say(f"wrote {path}")
    if missing := missing_packages():
        say(
            f"not written: index.html and the chart, which need {' and '.join(missing)}; "
            "install them with: .venv/bin/python -m pip install -e '.[report]'"
        )
    return EX_REFUSED if refused else 0
