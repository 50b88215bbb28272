"""How a study is shared out between machines that never speak with each other."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ib_bench.executors.units import cells_of_shard, make_units, parse_shard


@pytest.fixture(scope="module")
def study(tiny_study):
    """Forty-eight cells of four programs."""
    return tiny_study(
        data__max_length=(3, 4),
        data__length_distribution=("fixed", "uniform", "short_to_long"),
        data__format=("acot", "outcome"),
        model__name=("lstm", "gru"),
        task__name=("modular_addition", "cycle_navigation"),
        data__padded_symbols=(3,),
        task__k=(3,),
    )


@settings(deadline=None)
@given(count=st.integers(1, 60))
def test_every_cell_is_in_exactly_one_shard(study, count):
    shards = [cells_of_shard(study, index, count) for index in range(count)]
    keys = [cell.key for shard in shards for cell in shard]
    assert sorted(keys) == sorted(cell.key for cell in study.cells)


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_shards_are_about_equal(study, count):
    sizes = [len(cells_of_shard(study, index, count)) for index in range(count)]
    assert max(sizes) <= 1.5 * len(study.cells) / count


def test_shards_keep_programs_together_as_far_as_they_can(study):
    programs = {program for program, _ in study.groups()}
    shards = [{cell.program for cell in cells_of_shard(study, k, 2)} for k in range(2)]
    assert shards[0] | shards[1] == programs
    assert not shards[0] & shards[1]


def test_a_unit_has_one_program_and_not_too_many_cells(study):
    units = make_units(study, 5)
    assert [cell for unit in units for cell in unit.cells] == [
        cell for _, cells in study.groups() for cell in cells
    ]
    for unit in units:
        assert 1 <= len(unit.cells) <= 5
        assert {cell.program for cell in unit.cells} == {unit.program}


def test_without_a_limit_a_unit_is_all_cells_of_a_program(study):
    assert [(unit.program, list(unit.cells)) for unit in make_units(study)] == study.groups()


@pytest.mark.parametrize("text", ["3/3", "4/3", "-1/3", "1", "a/b", "1/0", "", "0/4/2"])
def test_what_is_no_shard_is_refused_with_the_fix(text):
    with pytest.raises(ValueError, match=r"shard: .* use i/n with i from 0 to n - 1"):
        parse_shard(text)


def test_a_shard_is_read():
    assert parse_shard("2/16") == (2, 16)
