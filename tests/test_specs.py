"""Configs become frozen settings, or one line that says what is wrong."""

import ast
import importlib.util
import pathlib

import pytest
from ib_bench.configs import base

from ib_bench.specs import make_study

CONFIGS = pathlib.Path(base.__file__).parent
FILES = [path for path in sorted(CONFIGS.rglob("*.py")) if path.stem not in ("__init__", "base")]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.get_config()


def changed(**values):
    """The base config with other values; "__" in a name stands for "."."""
    config = base.get_config()
    config.unlock()
    for key, value in values.items():
        if "__" in key:
            group, name = key.split("__")
            config[group][name] = value
        else:
            config[key] = value
    return config.lock()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_config_builds_and_starts_with_its_command(path):
    config = load(path)
    assert config.is_locked
    assert make_study(config).cells
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert f"--config=configs/{path.relative_to(CONFIGS)}" in docstring


def test_tuples_span_cells_and_entries_of_a_sweep_add_up():
    sweep = (
        {"model.name": "lstm", "data.format": ("outcome", "acot")},
        {"model.name": "dense_ssm", "model.hidden": 8},
    )
    study = make_study(changed(sweep=sweep, task__modulus=(2, 3)))
    assert len(study.cells) == 2 * 2 + 2
    assert len({cell.key for cell in study.cells}) == 6


def test_the_command_line_wins_over_a_sweep():
    config = changed(sweep=({"model.hidden": 8}, {"model.hidden": 16}), model__hidden=(32,))
    study = make_study(config, {"model.hidden": (32,)})
    assert [dict(cell.model.settings) for cell in study.cells] == [{"hidden": 32}]


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


# For every key another value, and the settings under which it matters.
OTHER = {
    "task.name": (("dihedral",), {}),
    "task.modulus": ((7,), {}),
    "task.k": ((3,), {"task__name": ("dihedral",)}),
    "task.states": ((4,), {"task__name": ("random_machine",)}),
    "task.symbols": ((4,), {"task__name": ("random_machine",)}),
    "task.seed": ((1,), {"task__name": ("random_machine",)}),
    "task.factors": (("dihedral(3)",), {"task__name": ("product",)}),
    "data.max_length": ((6,), {}),
    "data.length_distribution": (("fixed",), {}),
    "data.format": (("cot",), {}),
    "data.validation_lengths": ("as_training", {}),
    "data.padded_lengths": ((7,), {}),
    "data.padded_symbols": ((4,), {}),
    "model.name": (("dense_ssm",), {}),
    "model.hidden": ((32,), {}),
    "model.layers": ((3,), {"model__name": ("transformer",)}),
    "model.heads": ((2,), {"model__name": ("transformer",)}),
    "optim.steps": (500, {}),
    "optim.batch_size": (32, {}),
    "optim.eval_every": (125, {}),
    "optim.threshold": (1e-3, {}),
    "optim.beta1": (0.8, {}),
    "optim.beta2": (0.99, {}),
    "optim.epsilon": (1e-6, {}),
    "grid.learning_rates": ((1e-2,), {}),
    "grid.seeds": ((1,), {}),
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
