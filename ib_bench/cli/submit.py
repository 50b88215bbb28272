"""ib_bench submit: packs a workdir for the leaderboard, or checks what somebody has packed.

ib_bench submit pack --workdir=DIR --name=TITLE
ib_bench submit check FOLDER [--rerun]
"""

import json
import pathlib

from absl import flags

WORKDIR = flags.DEFINE_string("workdir", None, "pack: the folder of the study")
NAME = flags.DEFINE_string("name", None, "pack: how the board calls the model")
TRACK = flags.DEFINE_string("track", "cpu", "pack: of configs/leaderboard.py")
OUT = flags.DEFINE_string("out", "leaderboard/submissions", "pack: where the folder is made")
AUTHORS = flags.DEFINE_string("authors", "", "pack: who you are, for the board")
URL = flags.DEFINE_string("url", "", "pack: https://..., a paper or the code")
DESCRIPTION = flags.DEFINE_string("description", "", "pack: what the model is, in a sentence")
BOARD = flags.DEFINE_string(
    "board", "leaderboard", "check: the board whose submissions this one is compared with"
)
RERUN = flags.DEFINE_bool(
    "rerun", False, "check: train two small cells again; runs the submission's own code"
)
RECORD = flags.DEFINE_bool("record", False, "check --rerun: note in the board that it was verified")

EX_REFUSED = 1


def main(argv: list[str]) -> int:
    """Packs or checks a submission.

    Returns:
      0, or 1 where it is refused.
    """
    actions = {"pack": _pack, "check": _check}
    if len(argv) < 2 or argv[1] not in actions:
        raise ValueError(
            "submit: write `submit pack --workdir=DIR --name=TITLE` or `submit check FOLDER`"
        )
    return actions[argv[1]](argv[2:])


def _say(text, style=None):
    from rich.console import Console

    Console().print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def _pack(rest: list[str]) -> int:
    from ib_bench.leaderboard import submission
    from ib_bench.leaderboard.tracks import load_track
    from ib_bench.results import Store

    if rest:
        raise ValueError(f"submit: unexpected argument {rest[0]!r}; options are --name=value")
    if not WORKDIR.value or not NAME.value:
        raise ValueError("submit: pack needs --workdir=DIR and --name=TITLE")
    track = load_track(TRACK.value)
    folder, missing = submission.pack(
        Store(WORKDIR.value),
        track,
        pathlib.Path(OUT.value),
        NAME.value,
        authors=AUTHORS.value,
        url=URL.value,
        description=DESCRIPTION.value,
    )
    _say(f"packed {len(track.cells) - len(missing)} of {len(track.cells)} cells into {folder}")
    for label in missing:
        _say(f"missing: {label}")
    if missing:
        _say(f"they count as not learned; ib_bench run --config=leaderboard:{track.name} goes on")
    return _check([str(folder)])


def _check(rest: list[str]) -> int:
    from ib_bench.leaderboard.check import check
    from ib_bench.leaderboard.submission import read
    from ib_bench.leaderboard.submissions import best_of_others
    from ib_bench.leaderboard.untrusted import RefusedError

    if len(rest) != 1:
        raise ValueError("submit: name one folder, as in `ib_bench submit check FOLDER`")
    folder = pathlib.Path(rest[0])
    try:
        found = read(folder)
    except RefusedError as error:
        _say(f"refused: {error}", "red")
        return EX_REFUSED
    said = found.description
    best = best_of_others(pathlib.Path(BOARD.value) / "submissions", said.name, said.track)
    problems = check(found, {} if RERUN.value else best)
    for told in problems[:20]:
        _say(f"refused: {told}", "red")
    if len(problems) > 20:
        _say(f"and {len(problems) - 20} more")
    if problems:
        return EX_REFUSED
    steps = sum(cell.lane_steps.total for cell in found.cells)
    _say(
        f"{said.name}: {len(found.cells)} cells of the track {said.track}, "
        f"{sum(map(len, found.probes.values()))} sizes, {steps:,} lane-steps: every number follows "
        "from its runs"
    )
    if RERUN.value:
        return _rerun(found, folder, best)
    _say("not verified: nothing was run again; --rerun trains two small cells, with its own code")
    return 0


def _rerun(found, folder, best) -> int:
    from ib_bench.configs import base
    from ib_bench.configure import make_study
    from ib_bench.leaderboard.rerun import choose_cells, rerun
    from ib_bench.report.tables import entry_of
    from ib_bench.training.devices import keep_compiled, require_platform, use_every_core

    lanes = make_study(base.get_config()).lanes
    use_every_core(lanes.devices)
    require_platform("cpu")
    keep_compiled(lanes.compile_cache)
    comparisons = rerun(found, folder, choose_cells(found, best), lanes)
    for one in comparisons:
        mark = "agrees" if one.agrees else "differs"
        _say(f"{mark}: {one.submitted.cell_key}: {entry_of(one.submitted)}, {entry_of(one.again)}")
    if not all(one.agrees for one in comparisons):
        _say("refused: what was run again differs", "red")
        return EX_REFUSED
    _say(f"verified: {len(comparisons)} cells came out again")
    if RECORD.value:
        from ib_bench.files import write_whole
        from ib_bench.leaderboard.board import read_verified

        path = pathlib.Path(BOARD.value) / "verified.json"
        noted = read_verified(path) | {found.description.name: found.description.records}
        write_whole(path, json.dumps(dict(sorted(noted.items())), indent=1) + "\n")
        _say(f"noted in {path}")
    return 0
