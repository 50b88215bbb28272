"""A cell's key changes with all that its answer depends on, its program with what is compiled."""

import re

import pytest
from changed_configs import changed

from ib_bench import specs
from ib_bench.configure import make_study


def test_the_runs_of_a_grid_start_in_the_order_of_its_learning_rates():
    grid = make_study(changed(grid__learning_rates=(1e-2, 1e-3), grid__seeds=(2, 1))).cells[0].grid
    assert grid.runs == ((1e-2, 2), (1e-2, 1), (1e-3, 2), (1e-3, 1))


# Cells that differ from the first in one thing.
VARIANTS = {
    "task": {"task__modulus": (3,)},
    "task.kind": {"task__name": ("dihedral",)},
    "max_length": {"data__max_length": (4,)},
    "distribution": {"data__length_distribution": ("fixed",)},
    "format": {"data__format": ("acot",)},
    "validation": {"data__validation_lengths": "as_training"},
    "padded length": {"data__padded_lengths": (10,)},
    "padded symbols": {"data__padded_symbols": (7,)},
    "model": {"model__name": ("dense_ssm",)},
    "model.hidden": {"model__hidden": (32,)},
    "steps": {"optim__steps": 500},
    "batch": {"optim__batch_size": 32},
    "eval_every": {"optim__eval_every": 125},
    "threshold": {"optim__threshold": 1e-3},
    "stall": {"optim__stall": 500},
    "beta1": {"optim__beta1": 0.8},
    "beta2": {"optim__beta2": 0.99},
    "epsilon": {"optim__epsilon": 1e-6},
    "rates": {"grid__learning_rates": (1e-3,)},
    "rates in another order": {"grid__learning_rates": (1e-4, 1e-3, 1e-5)},
    "seeds": {"grid__seeds": (10, 20, 30, 40)},
}


def test_cells_that_differ_in_anything_have_different_keys():
    cells = [make_study(changed(**values)).cells[0] for values in ({}, *VARIANTS.values())]
    assert len({cell.key for cell in cells}) == len(cells)
    assert len({str(cell.as_dict()) for cell in cells}) == len(cells)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"search__policy": "paper", "search__tolerance": 0.5, "search__width": 4},
        {"lanes__devices": 1, "lanes__strategy": "map", "out__log_seconds": 1.0},
        {"task__k": (3,), "task__seed": (7,), "model__heads": (2,), "model__layers": (5,)},
        {"data__padded_lengths": (5,)},  # rounds 5 up to 5 all the same
        {"model__hidden": 64, "data__max_length": 5},  # no tuples
    ],
)
def test_equal_cells_have_equal_keys_whatever_else_is_set(values):
    (one,), (other,) = make_study(changed()).cells, make_study(changed(**values)).cells
    assert one == other and one.key == other.key


def test_a_key_is_a_file_name_that_a_person_can_read():
    key = make_study(changed()).cells[0].key
    assert re.fullmatch(r"lstm-64_outcome_modular_addition_2_L=5_uniform_[0-9a-f]{12}", key)


def test_a_raised_protocol_version_changes_every_key(monkeypatch):
    before = make_study(changed()).cells[0].key
    monkeypatch.setattr(specs, "PROTOCOL_VERSION", specs.PROTOCOL_VERSION + 1)
    assert make_study(changed()).cells[0].key != before


# What is an operand: cells that differ in it share a program. All else is compiled in.
OPERANDS = {"task", "max_length", "distribution", "validation", "threshold", "stall", "steps"}
OPERANDS |= {"rates", "rates in another order", "seeds"}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_program_is_shared_unless_what_is_compiled_differs(name):
    padded = {"data__padded_symbols": (10,)}
    first = make_study(changed(**padded)).cells[0]
    other = make_study(changed(**{**padded, **VARIANTS[name]})).cells[0]
    shared = name in OPERANDS | {"task.kind"}
    assert (first.program == other.program) == shared
    assert (first.program.key == other.program.key) == shared


def test_cells_that_differ_in_data_alone_share_a_program():
    study = make_study(
        changed(
            data__max_length=(3, 4, 5),
            data__length_distribution=("fixed", "uniform", "short_to_long"),
            data__padded_symbols=(5,),
            task__modulus=(2, 3, 5),
        )
    )
    assert len(study.cells) == 27
    assert len(study.groups()) == 1


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        ({}, 50),  # what the split of parity at L = 5 leaves
        ({"search__max_size": 7}, 7),
        ({"optim__steps": 4, "optim__eval_every": 2, "optim__batch_size": 3}, 12),
    ],
)
def test_the_largest_size_is_what_the_search_the_budget_and_the_split_allow(values, limit):
    study = make_study(changed(**values))
    assert specs.max_size(study.cells[0], study.search) == limit
