"""What lies in leaderboard/ holds up, and its table is the one that the command writes."""

import pathlib

import pytest

from ib_bench.leaderboard.board import read_verified, write_board
from ib_bench.leaderboard.submissions import read_all

FOLDER = pathlib.Path(__file__).parents[2] / "leaderboard"


@pytest.fixture(scope="module")
def committed():
    return read_all(FOLDER / "submissions")


def test_every_submission_holds_up(committed):
    accepted, refused = committed
    assert refused == {}
    titles = {one.description.title for one in accepted}
    assert {"LSTM", "GRU", "Dense SSM", "Block-2 SSM", "Real diagonal SSM"} <= titles
    assert {one.description.name for one in accepted} == {
        path.name for path in (FOLDER / "submissions").iterdir()
    }


def test_the_table_is_the_one_of_these_submissions(committed, tmp_path):
    write_board(committed[0], read_verified(FOLDER / "verified.json"), tmp_path)
    assert (tmp_path / "README.md").read_text() == (FOLDER / "README.md").read_text(), (
        "run ib_bench leaderboard"
    )


def test_what_is_verified_is_there(committed):
    hashes = {one.description.name: one.description.records for one in committed[0]}
    assert read_verified(FOLDER / "verified.json").items() <= hashes.items()
