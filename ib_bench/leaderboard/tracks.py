"""Tracks: the cells that every model of a board answers. The model is left open."""

import functools
import json
from typing import Any, NamedTuple

from ib_bench.configs import leaderboard
from ib_bench.configure import make_study
from ib_bench.lookup import check_name
from ib_bench.specs import CellSpec, SearchSpec

TRACKS = leaderboard.TRACKS


class Track(NamedTuple):
    """What a track asks.

    Attributes:
      name: a key of `TRACKS`.
      cells: by question (`question_of`), of a model that stands in for any.
      search: how they are searched.
    """

    name: str
    cells: dict[str, CellSpec]
    search: SearchSpec


@functools.cache
def load_track(name: str) -> Track:
    """Reads a track of configs/leaderboard.py.

    Raises:
      ValueError: there is none of this name.
    """
    check_name(TRACKS, name, "track")
    study = make_study(leaderboard.get_config(name))
    return Track(name, {question_of(cell.as_dict()): cell for cell in study.cells}, study.search)


def question_of(cell: dict[str, Any]) -> str:
    """Names all that a cell's answer depends on, but the model."""
    question = {key: value for key, value in cell.items() if key != "model"}
    return json.dumps(question, sort_keys=True)
