"""Configs become frozen settings, or one line that says what is wrong."""

import ast
import importlib.util
import itertools
import pathlib

import pytest
from changed_configs import changed
from ib_bench.configs import base
from ib_bench.configs.paper import figure7, table3

from ib_bench.configure import make_study

WORDS = str(pathlib.Path(__file__).parent / "tasks" / "s3_words.csv")
OTHER_WORDS = WORDS.replace("/tasks/", "/tasks/../tasks/")  # another text is another task
CONFIGS = pathlib.Path(base.__file__).parent
FILES = [path for path in sorted(CONFIGS.rglob("*.py")) if path.stem not in ("__init__", "base")]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.get_config()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_config_builds_and_starts_with_its_command(path):
    config = load(path)
    assert config.is_locked
    assert make_study(config).cells
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    command = f"ib_bench run --config=configs/{path.relative_to(CONFIGS)} --workdir=results/"
    assert command in docstring


def test_the_base_config_is_locked_and_builds_a_study():
    assert base.get_config().is_locked
    assert len(make_study(base.get_config()).cells) == 1


def test_tuples_span_cells_and_entries_of_a_sweep_add_up():
    sweep = (
        {"model.name": "lstm", "data.format": ("outcome", "acot")},
        {"model.name": "dense_ssm", "model.hidden": 8},
    )
    study = make_study(changed(sweep=sweep, task__modulus=(2, 3)))
    assert len(study.cells) == 2 * 2 + 2
    assert len({cell.key for cell in study.cells}) == 6
    tasks = ["modular_addition(2)", "modular_addition(3)"]
    assert {(c.model.name, c.task, c.data.format) for c in study.cells} == {
        *itertools.product(["lstm"], tasks, ["outcome", "acot"]),
        *itertools.product(["dense_ssm"], tasks, ["outcome"]),
    }


def test_a_cell_that_two_entries_name_is_asked_once():
    sweep = ({"data.format": ("outcome", "acot")}, {"data.format": "acot", "model.hidden": (64, 8)})
    study = make_study(changed(sweep=sweep))
    assert [(dict(c.model.settings)["hidden"], c.data.format) for c in study.cells] == [
        (64, "outcome"),
        (64, "acot"),
        (8, "acot"),
    ]


def test_tuples_span_every_group_that_may():
    study = make_study(
        changed(
            task__name=("modular_addition", "dihedral"),
            task__k=(3, 4),
            data__max_length=(3, 5),
            data__format=("outcome", "cot"),
            model__name=("lstm", "transformer"),
            model__heads=(2, 4),
        )
    )
    # Keys that a task or a model does not take span nothing: 3 tasks, 3 models.
    assert len(study.cells) == 3 * 2 * 2 * 3
    assert len({cell.key for cell in study.cells}) == len(study.cells)


def test_only_acot_has_labels_to_leave_out():
    formats = ("outcome", "cot", "acot")
    study = make_study(
        changed(data__format=formats, data__label_every=(1, 2, 9), data__max_length=(5,))
    )
    kept = [(cell.data.format, cell.data.label_every) for cell in study.cells]
    # Past L only the last is left.
    assert kept == [("outcome", 1), ("cot", 1), ("acot", 1), ("acot", 2), ("acot", 5)]
    assert len({cell.program for cell in study.cells}) == 3  # no program of its own


def test_the_command_line_wins_over_a_sweep():
    config = changed(sweep=({"model.hidden": 8}, {"model.hidden": 16}), model__hidden=(32,))
    study = make_study(config, {"model.hidden": (32,)})
    assert [dict(cell.model.settings) for cell in study.cells] == [{"hidden": 32}]
    study = make_study(config)
    assert [dict(cell.model.settings)["hidden"] for cell in study.cells] == [8, 16]


def test_whole_numbers_stand_for_the_numbers_they_are():
    one = make_study(changed(grid__learning_rates=(1.0,), optim__threshold=1.0)).cells[0]
    other = make_study(changed(grid__learning_rates=(1,), optim__threshold=1)).cells[0]
    assert one == other and one.key == other.key


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"task__modulus": (1,)}, "task.modulus: 1 is out of range; use 2 to 1000"),
        ({"task__modulus": (2.5,)}, "config.task.modulus: 2.5 is a float; use a int"),
        ({"task__modulus": ()}, "config.task.modulus: .. is empty"),
        ({"data__max_length": (1,)}, "data.max_length: 1 is out of range; use 2 to 64"),
        ({"data__max_length": (65,)}, "data.max_length: 65 is out of range"),
        ({"data__format": ("cto",)}, "data.format: 'cto' is unknown; did you mean 'cot'"),
        ({"model__name": ("lsmt",)}, "model.name: 'lsmt' is unknown; did you mean 'lstm'"),
        ({"task__name": ("parity",)}, "task.name: 'parity' is unknown"),
        ({"optim__steps": 260}, "optim.steps: 260 is no multiple .* use 250"),
        ({"optim__steps": 100}, "optim.steps: 100 is no multiple .* use 250"),
        ({"optim__steps": 500.0}, "config.optim.steps: 500.0 is a float; use a int"),
        ({"optim__beta1": "0.9"}, "config.optim.beta1: '0.9' is a str; use a float"),
        ({"optim__beta1": 1.0}, "optim.beta1: 1.0 is out of range; use 0 to 0.999999"),
        ({"optim__threshold": float("nan")}, "optim.threshold: nan is out of range"),
        ({"optim__batch_size": 0}, "optim.batch_size: 0 is out of range; use 1 to"),
        ({"model__hidden": (True,)}, "config.model.hidden: True is a bool; use a int"),
        ({"model__hidden": (0,)}, "model.hidden: 0 is out of range; use 1 to"),
        ({"model__name": ("transformer",), "model__heads": (3,)}, "heads"),
        (
            {"model__name": ("transformer",), "model__positions": ("rotery",)},
            "model.positions: 'rotery' is unknown; did you mean 'rotary'",
        ),
        (
            {"model__name": ("looped_transformer",), "model__loops": (-1,)},
            "model.loops: -1 is out of range; use 0 to",
        ),
        (
            {"model__name": ("bilinear",), "model__structure": ("blok",)},
            "model.structure: 'blok' is unknown; did you mean 'block'",
        ),
        (
            {"model__name": ("bilinear",), "model__structure": ("block",), "model__block": (0,)},
            "model.block: 0 is out of range; use 1 to",
        ),
        ({"model__additive": (1,)}, "config.model.additive: 1 is a int; use a bool"),
        (
            {"model__name": ("mamba",), "model__eigenvalues": ("sign",)},
            "model.eigenvalues: 'sign' is unknown; did you mean 'signed'",
        ),
        ({"data__length_distribution": ("unifrom",)}, "did you mean 'uniform'"),
        ({"data__validation_lengths": "unifrom"}, "did you mean 'uniform'"),
        ({"data__label_every": (0,)}, "data.label_every: 0 is out of range; use 1 to 64"),
        (
            {"data__evaluation_lengths": (10, 2000)},
            "data.evaluation_lengths: 2000 .* use 2 to 1000",
        ),
        ({"data__evaluation_multiples": (300,)}, "data.evaluation_multiples: 300 .* use 1 to 200"),
        ({"data__evaluation_lengths": ("a",)}, "data.evaluation_lengths: 'a' is no size"),
        ({"search__mode": "curve"}, "search.mode: 'curve' is unknown"),
        ({"data__padded_symbols": ("a",)}, "data.padded_symbols: 'a' is no size"),
        ({"data__padded_lengths": (5, 0)}, "data.padded_lengths: 0 is no size"),
        ({"data__padded_lengths": 5}, "config.data.padded_lengths: 5 is a int; use a tuple"),
        ({"task__name": ("modular_adition",)}, "did you mean 'modular_addition'"),
        ({"task__name": ("product",), "task__factors": (3,)}, "task.factors: 3 is no task"),
        ({"task__name": ("product",), "task__factors": ("dihedrl(3)",)}, "mean 'dihedral'"),
        ({"grid__learning_rates": (0.0,)}, "grid.learning_rates: 0.0 is out of range"),
        ({"grid__learning_rates": ("a",)}, "grid.learning_rates: 'a' is out of range"),
        ({"grid__learning_rates": ((1e-3,),)}, "grid.learning_rates: .* is out of range"),
        ({"grid__learning_rates": (1, 1.0)}, "grid.learning_rates: .* names a value twice"),
        ({"grid__seeds": (-1,)}, r"grid.seeds: -1 is out of range; use whole numbers 0 to 2\^32"),
        ({"grid__seeds": (2**32,)}, "grid.seeds: 4294967296 is out of range"),
        ({"search__max_size": 16_000_001}, "search.max_size: 16000001 is out of range"),
        ({"search__tolerance": -0.1}, "search.tolerance: -0.1 is out of range; use 0 to"),
        ({"search__width": 0}, "search.width: 0 is out of range; use 1 to"),
        ({"search__failure_cost": 0.5}, "search.failure_cost: 0.5 is out of range; use 1 to"),
        ({"search__sizes": (5,)}, "search.sizes: .* the others choose their own"),
        ({"search__policy": "grid", "search__sizes": (5, 0)}, "search.sizes: 0 is no size"),
        ({"sweep": 3}, "config.sweep: 3 is no entry; use dicts"),
        ({"sweep": ("abc",)}, "config.sweep: 'abc' is no entry; use dicts"),
        ({"sweep": ({"model.hidden": ()},)}, "model.hidden: .. is empty"),
        ({"sweep": ({"model.hidden": "x"},)}, "sweep.model.hidden: 'x' is a str; use a int"),
        ({"lanes__memory_fraction": 1.5}, "lanes.memory_fraction: 1.5 is out of range"),
        ({"grid__seeds": (1, 1)}, "grid.seeds: .* names a value twice"),
        ({"grid__seeds": ()}, "grid.seeds: .* is empty"),
        ({"search__policy": "costaware"}, "did you mean 'cost_aware'"),
        ({"search__policy": "grid"}, "search.sizes: .* policy 'grid' needs sizes"),
        (
            {"search__policy": "grid", "search__sizes": (60,)},
            "search.sizes: 60 exceeds the 50 sequences .* use at most 50",
        ),
        ({"sweep": ({"model.hiden": 3},)}, "sweep.model.hiden: unknown key; did you mean"),
        ({"lanes__strategy": "pmap"}, "lanes.strategy: 'pmap' is unknown"),
    ],
)
def test_bad_values_name_the_key_the_value_and_the_fix(values, told):
    with pytest.raises(ValueError, match=told):
        make_study(changed(**values))


def test_a_key_that_is_unknown_or_missing_is_named():
    config = changed()
    config.unlock()
    config.model.hiden = (8,)
    with pytest.raises(ValueError, match=r"config.model.hiden: unknown key; .* 'model.hidden'"):
        make_study(config)
    config = changed()
    config.unlock()
    config.modle = {"hidden": 8}
    with pytest.raises(ValueError, match=r"config.modle.hidden: unknown key; .* 'model.hidden'"):
        make_study(config)
    config = changed()
    config.unlock()
    config.hidden = 8
    with pytest.raises(ValueError, match="config.hidden: unknown key"):
        make_study(config)
    config = changed()
    config.unlock()
    del config.search.width
    with pytest.raises(ValueError, match="config.search.width: missing; .* configs/base.py"):
        make_study(config)


# For every key another value, and the settings under which it matters.
OTHER = {
    "task.name": (("dihedral",), {}),
    "task.modulus": ((7,), {}),
    "task.k": ((3,), {"task__name": ("dihedral",)}),
    "task.states": ((4,), {"task__name": ("random_machine",)}),
    "task.symbols": ((4,), {"task__name": ("random_machine",)}),
    "task.seed": ((1,), {"task__name": ("random_machine",)}),
    "task.factors": (("dihedral(3)",), {"task__name": ("product",)}),
    "task.variables": ((1,), {"task__name": ("register_machine",)}),
    "task.path": ((WORDS,), {"task__name": ("words",), "task__path": (OTHER_WORDS,)}),
    "task.claims": (
        ("permutation_composition(3)",),
        {"task__name": ("words",), "task__path": (WORDS,)},
    ),
    "data.max_length": ((6,), {}),
    "data.length_distribution": (("fixed",), {}),
    "data.format": (("cot",), {}),
    "data.label_every": ((2,), {"data__format": ("acot",)}),
    "data.evaluation_lengths": ((10,), {}),
    "data.evaluation_multiples": ((2,), {}),
    "data.validation_lengths": ("as_training", {}),
    "data.padded_lengths": ((7,), {}),
    "data.padded_symbols": ((4,), {}),
    "model.name": (("dense_ssm",), {}),
    "model.hidden": ((32,), {}),
    "model.layers": ((3,), {"model__name": ("transformer",)}),
    "model.heads": ((2,), {"model__name": ("transformer",)}),
    "model.positions": (("rotary",), {"model__name": ("transformer",)}),
    "model.loops": ((3,), {"model__name": ("looped_transformer",)}),
    "model.structure": (("block",), {"model__name": ("bilinear",)}),
    "model.rank": ((3,), {"model__name": ("bilinear",), "model__structure": ("cp",)}),
    "model.block": ((4,), {"model__name": ("bilinear",), "model__structure": ("block",)}),
    "model.additive": ((True,), {"model__name": ("bilinear",)}),
    "model.unit_state": ((True,), {"model__name": ("bilinear",)}),
    "model.state": ((8,), {"model__name": ("mamba",)}),
    "model.expand": ((1,), {"model__name": ("mamba",)}),
    "model.conv": ((3,), {"model__name": ("mamba",)}),
    "model.householders": ((3,), {"model__name": ("delta_product",)}),
    "model.eigenvalues": (("signed",), {"model__name": ("deltanet",)}),
    "optim.steps": (500, {}),
    "optim.batch_size": (32, {}),
    "optim.eval_every": (125, {}),
    "optim.threshold": (1e-3, {}),
    "optim.stall": (500, {}),
    "optim.beta1": (0.8, {}),
    "optim.beta2": (0.99, {}),
    "optim.epsilon": (1e-6, {}),
    "grid.learning_rates": ((1e-2,), {}),
    "grid.seeds": ((1,), {}),
    "search.mode": ("success_curve", {}),
    "search.policy": ("paper", {}),
    "search.max_size": (1000, {}),
    "search.tolerance": (0.1, {}),
    "search.width": (2, {}),
    "search.max_probes": (9, {}),
    "search.failure_cost": (9.0, {}),
    "search.sizes": ((4,), {"search__policy": "grid", "search__sizes": (3,)}),
    "search.confirm": (True, {}),
    "lanes.strategy": ("vmap", {}),
    "lanes.devices": (1, {}),
    "lanes.per_device": (3, {}),
    "lanes.memory_fraction": (0.5, {}),
    "lanes.compile_cache": ("", {}),
    "out.checkpoint_minutes": (1.0, {}),
    "out.log_seconds": (1.0, {}),
}


def test_every_key_has_another_value_here():
    config = base.get_config()
    keys = {f"{group}.{key}" for group in config if group != "sweep" for key in config[group]}
    assert keys == OTHER.keys()


@pytest.mark.parametrize("key", OTHER)
def test_every_key_changes_the_study(key):
    value, context = OTHER[key]
    before = make_study(changed(**context))
    after = make_study(changed(**{**context, key.replace(".", "__"): value}))
    assert before != after
    if key.split(".")[0] in ("task", "data", "model", "optim", "grid"):
        assert before.cells[0].key != after.cells[0].key


def test_a_study_of_the_paper_has_two_sizes_and_no_other():
    with pytest.raises(ValueError, match="config: size 'tiny' is unknown; write :small"):
        table3.get_config("tiny")
    whole, small = make_study(table3.get_config()), make_study(table3.get_config("small"))
    assert {cell.optim.steps for cell in whole.cells} == {250_000}
    assert len(small.cells) < len(whole.cells)


def test_the_parts_of_a_sharing_factor_share_the_program_of_the_whole():
    study = make_study(figure7.get_config("small"))
    parts, whole = [("fixed", n) for n in (2, 3, 4)], [("fixed", 5), ("uniform", 5)]
    for program, cells in study.groups():
        lengths = sorted((c.data.length_distribution, c.data.max_length) for c in cells)
        # m = 2 and 3; L is evaluated at 2L besides.
        assert lengths == sorted((whole if program.evaluation_lengths else parts) * 2)


def test_lengths_to_evaluate_at_may_be_multiples_of_each():
    study = make_study(
        changed(
            data__max_length=(5, 10),
            data__evaluation_lengths=(10, 7),
            data__evaluation_multiples=(2,),
        )
    )
    assert [cell.data.evaluation_lengths for cell in study.cells] == [(7, 10), (7, 10, 20)]
