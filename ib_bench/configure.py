"""Reads a config into the frozen settings of `specs.py`. The only file that knows ConfigDict.

All is checked here, before anything runs: what is wrong ends in one line that names the key, the
value and the fix.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from ml_collections import ConfigDict

from ib_bench import data
from ib_bench.checks import check_range
from ib_bench.configs import base
from ib_bench.lookup import check_name, nearest
from ib_bench.models import make_model, settings_of
from ib_bench.own import is_own, source_of
from ib_bench.search.policy import POLICIES
from ib_bench.specs import (
    CellSpec,
    DataSpec,
    GridSpec,
    LanesSpec,
    ModelSpec,
    OptimSpec,
    OutSpec,
    SearchSpec,
    StudySpec,
)
from ib_bench.tasks import make_task, parameters_of

_SPANS = {"task", "data", "model"}  # groups whose tuples span cells
_NEVER_SPAN = {
    "task.factors",
    "data.padded_lengths",
    "data.padded_symbols",
    "data.evaluation_lengths",
    "data.evaluation_multiples",
}
_MAX_EVALUATION_LENGTH = 1000
_GROUPS = ("task", "data", "model", "optim", "grid", "search", "lanes", "out")
_MAY_BE_ZERO = {"loops"}  # of the model; all its other numbers are sizes


def make_study(config: ConfigDict, overrides: Mapping[str, Any] | None = None) -> StudySpec:
    """Turns a config into checked, frozen settings.

    Args:
      config: as `configs/base.py` lays it out.
      overrides: values by dotted key, as from the command line; they win over `config.sweep`. The
        groups `model` and `task` may get keys that a maker of the user's own reads.

    Raises:
      ValueError: one line that names the key, the value and the fix.
    """
    values = _flat(config) | dict(overrides or {})
    _check_keys(values)
    search = _make_group(SearchSpec, "search", values)
    _check_search(search)
    lanes = _make_group(LanesSpec, "lanes", values)
    check_name(("auto", "map", "vmap"), lanes.strategy, "lanes.strategy")
    check_range("lanes.devices", lanes.devices, 0, 4096)
    check_range("lanes.per_device", lanes.per_device, 0, 65536)
    check_range("lanes.memory_fraction", lanes.memory_fraction, 0.01, 1.0)
    out = _make_group(OutSpec, "out", values)
    check_range("out.checkpoint_minutes", out.checkpoint_minutes, 0, math.inf)
    check_range("out.log_seconds", out.log_seconds, 0, math.inf)
    cells = tuple(dict.fromkeys(_make_cells(values, overrides or {})))
    for cell in cells:
        _check_sizes(cell, search)
    return StudySpec(cells, search, lanes, out)


def _flat(config: ConfigDict) -> dict[str, Any]:
    """Dotted keys to plain values."""
    flat = {}
    for group, values in config.items():
        if group == "sweep":
            entries = values if isinstance(values, tuple | list) else (values,)
            for entry in entries:
                if not isinstance(entry, Mapping | ConfigDict):
                    raise ValueError(
                        f"config.sweep: {entry!r} is no entry; "
                        'use dicts such as {"model.hidden": 8}'
                    )
            flat["sweep"] = tuple(dict(entry) for entry in entries)
        elif isinstance(values, Mapping | ConfigDict):
            flat.update({f"{group}.{key}": value for key, value in values.items()})
        else:
            raise ValueError(f"config.{group}: unknown key{nearest(group, _GROUPS)}")
    return flat


def _check_keys(values: dict[str, Any]) -> None:
    """Compares keys and types with `configs/base.py`, the one place where keys are declared."""
    known = _flat(base.get_config())
    own = _groups_of_own(values)
    for where, keys in [("config", values), *(("sweep", entry) for entry in values["sweep"])]:
        for key, value in keys.items():
            if key not in known and key.split(".")[0] in own:
                _check_own_key(key, value)
                continue
            if key not in known:
                raise ValueError(f"{where}.{key}: unknown key{nearest(key, known)}")
            spans = _may_span(key)
            kind = type(known[key][0]) if spans else type(known[key])
            for item in _options(value) if spans else (value,):
                if not _has_type(item, kind):
                    raise ValueError(
                        f"{where}.{key}: {item!r} is a {type(item).__name__}; use a {kind.__name__}"
                    )
    for key in known.keys() - values.keys():
        raise ValueError(f"config.{key}: missing; start the config from configs/base.py")


def _groups_of_own(values: dict[str, Any]) -> set[str]:
    """Returns which of "model" and "task" name a user's function somewhere in the study."""
    return {
        group
        for group in ("model", "task")
        for entry in (values, *values["sweep"])
        for name in _options(entry.get(f"{group}.name", ()))
        if isinstance(name, str) and is_own(name)
    }


def _check_own_key(key: str, value: Any) -> None:
    name = key.partition(".")[2]
    if not name.isidentifier() or name in ("name", "source"):
        raise ValueError(f"config.{key}: {name!r} cannot be a key; choose another word")
    for item in _options(value):
        if not isinstance(item, bool | int | float | str):
            raise ValueError(
                f"config.{key}: {item!r} is a {type(item).__name__}; use numbers, truths or texts"
            )


def _has_type(value: Any, kind: type) -> bool:
    if kind is float:
        return type(value) in (int, float)
    if kind is tuple:
        return isinstance(value, tuple | list)
    return type(value) is kind


def _may_span(key: str) -> bool:
    return key.split(".")[0] in _SPANS and key not in _NEVER_SPAN


def _options(value: Any) -> tuple:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _make_group(cls: type, group: str, values: dict[str, Any]) -> Any:
    fields = {}
    for field in dataclasses.fields(cls):
        value = values[f"{group}.{field.name}"]
        if field.type is float:  # 1 and 1.0 are the same, also in a key
            value = float(value)
        fields[field.name] = tuple(value) if isinstance(value, list | tuple) else value
    return cls(**fields)


def _make_cells(values: dict[str, Any], overrides: Mapping[str, Any]) -> Iterator[CellSpec]:
    optim = _make_group(OptimSpec, "optim", values)
    grid = _make_group(GridSpec, "grid", values)
    _check_optim(optim)
    _check_grid(grid)
    grid = dataclasses.replace(grid, learning_rates=tuple(map(float, grid.learning_rates)))
    for entry in values["sweep"] or ({},):
        chosen = values | {key: value for key, value in entry.items() if key not in overrides}
        spanning = [key for key in chosen if _may_span(key)]
        for key in spanning:
            if not _options(chosen[key]):
                raise ValueError(f"config.{key}: () is empty; name at least one value")
        for combination in itertools.product(*(_options(chosen[key]) for key in spanning)):
            yield _make_cell(chosen | dict(zip(spanning, combination, strict=True)), optim, grid)


def _make_cell(values: dict[str, Any], optim: OptimSpec, grid: GridSpec) -> CellSpec:
    task = make_task(_task_text(values))
    length = values["data.max_length"]
    check_range("data.max_length", length, 2, data.MAX_LENGTH)
    check_name(data.FORMATS, values["data.format"], "data.format")
    check_name(data.DISTRIBUTIONS, values["data.length_distribution"], "data.length_distribution")
    validation = values["data.validation_lengths"]
    check_name(data.VALIDATION_LENGTHS, validation, "data.validation_lengths")
    check_range("data.label_every", values["data.label_every"], 1, data.MAX_LENGTH)
    evaluation_lengths = _evaluation_lengths(values, length)
    padded_symbols = tuple(values["data.padded_symbols"])
    _check_whole("data.padded_symbols", padded_symbols)
    _check_whole("data.padded_lengths", values["data.padded_lengths"])
    data_spec = DataSpec(
        max_length=length,
        length_distribution=values["data.length_distribution"],
        format=values["data.format"],
        # Only acot has labels to leave out; past L none but the last is left: one cell, not many.
        label_every=min(values["data.label_every"], length)
        if values["data.format"] == "acot"
        else 1,
        validation_lengths=validation,
        evaluation_lengths=evaluation_lengths,
        padded_length=_round_up(length, values["data.padded_lengths"]),
        padded_symbols=_round_up(task.num_symbols, padded_symbols),
        padded_states=_round_up(task.num_states, padded_symbols),
    )
    model = _make_model_spec(values)
    cell = CellSpec(task.name, data_spec, model, optim, grid)
    make_model(  # raises where settings do not fit each other
        model.name, num_inputs=1, num_outputs=1, max_positions=1, **dict(model.settings)
    )
    return cell


def _make_model_spec(values: dict[str, Any]) -> ModelSpec:
    name = values["model.name"]
    given = {
        key.partition(".")[2]: value
        for key, value in values.items()
        if key.startswith("model.") and key != "model.name"
    }
    settings = settings_of(name, given)
    declared = base.get_config().model
    for key, value in settings.items():
        if type(value) is int and key in declared:  # names are checked by the model
            check_range(f"model.{key}", value, 0 if key in _MAY_BE_ZERO else 1, 65536)
    for key, value in settings.items():  # a maker's own default may be anything
        if not isinstance(value, bool | int | float | str | None):
            raise ValueError(
                f"model.{key}: {value!r} cannot be written to a record; use numbers, truths or "
                "texts as defaults"
            )
    if not is_own(name):
        return ModelSpec(name, tuple(settings.items()))
    usual = {key: options[0] for key, options in declared.items()}
    shown = tuple(key for key, value in settings.items() if value != usual.get(key))
    return ModelSpec(name, tuple(settings.items()), source_of(name, "model.name"), shown)


def _task_text(values: dict[str, Any]) -> str:
    """Writes the task of these values as `make_task` reads it."""
    name = values["task.name"]
    if "(" in name:  # all of it
        return name
    parameters = parameters_of(name)
    if name == "product":
        for factor in values["task.factors"]:
            if not isinstance(factor, str):
                raise ValueError(
                    f"task.factors: {factor!r} is no task; use texts such as 'dihedral(3)'"
                )
        return f"product({','.join(values['task.factors'])})"
    arguments = [values.get(f"task.{key}", one.default) for key, one in parameters.items()]
    for key, value in zip(parameters, arguments, strict=True):
        if value is parameters[key].empty:
            raise ValueError(f"task.{key}: {name} needs it and it has no value; set it")
        if is_own(name) and type(value) is not int:
            raise ValueError(f"task.{key}: {value!r} is no whole number; {name} takes those alone")
    return f"{name}({','.join(map(repr, arguments))})"


def _evaluation_lengths(values: dict[str, Any], length: int) -> tuple[int, ...]:
    """Returns all lengths that a run is evaluated at, ascending."""
    found = set()
    for key, factor in (("data.evaluation_lengths", 1), ("data.evaluation_multiples", length)):
        _check_whole(key, values[key])
        for value in values[key]:
            check_range(key, value, -(-2 // factor), _MAX_EVALUATION_LENGTH // factor)
            found.add(value * factor)
    return tuple(sorted(found))


def _round_up(size: int, sizes: tuple[int, ...]) -> int:
    return min((padded for padded in sizes if padded >= size), default=size)


def _check_optim(optim: OptimSpec) -> None:
    check_range("optim.batch_size", optim.batch_size, 1, 65536)
    check_range("optim.eval_every", optim.eval_every, 1, 10**9)
    check_range("optim.steps", optim.steps, 1, 10**9)
    if optim.steps % optim.eval_every:
        fix = max(1, optim.steps // optim.eval_every) * optim.eval_every
        raise ValueError(
            f"optim.steps: {optim.steps} is no multiple of optim.eval_every={optim.eval_every}; "
            f"use {fix}"
        )
    check_range("optim.threshold", optim.threshold, 0, math.inf)
    check_range("optim.stall", optim.stall, 0, 10**9)
    check_range("optim.beta1", optim.beta1, 0, 0.999999)
    check_range("optim.beta2", optim.beta2, 0, 0.999999)
    check_range("optim.epsilon", optim.epsilon, 0, 1)


def _check_grid(grid: GridSpec) -> None:
    for key, values in (("learning_rates", grid.learning_rates), ("seeds", grid.seeds)):
        if not values:
            raise ValueError(f"grid.{key}: () is empty; name at least one value")
    for rate in grid.learning_rates:
        if not (_has_type(rate, float) and 0 < rate <= 1e38):  # float32
            raise ValueError(
                f"grid.learning_rates: {rate!r} is out of range; use positive numbers to 1e38"
            )
    for seed in grid.seeds:
        if not (_has_type(seed, int) and 0 <= seed < 2**32):
            raise ValueError(
                f"grid.seeds: {seed!r} is out of range; use whole numbers 0 to 2^32 - 1"
            )
    for key, values in (("learning_rates", grid.learning_rates), ("seeds", grid.seeds)):
        if len(set(values)) < len(values):
            raise ValueError(f"grid.{key}: {values} names a value twice; use each once")


def _check_search(search: SearchSpec) -> None:
    check_name(("nstar", "success_curve"), search.mode, "search.mode")
    check_name(POLICIES, search.policy, "search.policy")
    check_range("search.max_size", search.max_size, 1, 16_000_000)
    check_range("search.tolerance", search.tolerance, 0, 1000)
    check_range("search.width", search.width, 1, 1000)
    check_range("search.max_probes", search.max_probes, 1, 10**6)
    check_range("search.failure_cost", search.failure_cost, 1, 10**6)
    if (search.policy == "grid") != bool(search.sizes):
        raise ValueError(
            f"search.sizes: {search.sizes} does not go with search.policy={search.policy!r}; "
            "policy 'grid' needs sizes, the others choose their own"
        )
    _check_whole("search.sizes", search.sizes)


def _check_sizes(cell: CellSpec, search: SearchSpec) -> None:
    """Raises a ValueError where `search.sizes` asks for more than there is."""
    limit = cell.split.num_train
    if search.policy == "grid" and max(search.sizes) > limit:
        raise ValueError(
            f"search.sizes: {max(search.sizes)} exceeds the {limit} sequences left for training "
            f"in {cell.label}; use at most {limit}"
        )


def _check_whole(key: str, sizes: tuple) -> None:
    for size in sizes:
        if not (_has_type(size, int) and size >= 1):
            raise ValueError(f"{key}: {size!r} is no size; use whole numbers from 1")
