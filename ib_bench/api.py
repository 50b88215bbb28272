"""From Python, or a notebook: one question, one record."""

import logging
import os
from collections.abc import Callable
from typing import Any

from ib_bench.configure import make_study
from ib_bench.executors import local
from ib_bench.executors.worker import is_answered
from ib_bench.own import hand_over
from ib_bench.results import CellRecord, Store
from ib_bench.tasks import Automaton
from ib_bench.training.devices import keep_compiled, use_every_core

logger = logging.getLogger("ib_bench.measure")


def measure(
    model: str | Callable,
    task: str | Callable | Automaton = "modular_addition",
    format: str = "outcome",  # noqa: A002 - the field's word
    length_distribution: str = "uniform",
    max_length: int = 5,
    *,
    workdir: str | os.PathLike = "results/measured",
    config: Any = None,
    **settings: Any,
) -> CellRecord:
    """Measures how many training sequences a model needs for one task: N* with its bracket.

    The record is kept in `workdir`; the same call again reads it, and goes on where it was stopped.
    A function that has no file, as in a notebook, counts as a new model each time it is defined.

    Args:
      model: a name of `ib_bench list`, "my_package.my_file:make_model", or the maker itself: called
        with num_inputs, num_outputs, max_positions and the keys of `config.model` that it names, it
        returns init(key, tokens int32[B, T]) -> params and
        apply(params, tokens) -> logits float32[B, T, num_outputs], or a flax.linen module.
      task: a name of `ib_bench list`, "my_file:make_task", its maker, or an `Automaton`.
      format: "outcome", "cot" or "acot" (paper, section 2).
      length_distribution: "fixed", "uniform" or "short_to_long".
      max_length: L.
      workdir: where records are kept, made where missing.
      config: a ConfigDict to start from, with a single value where others have several; None takes
        configs/base.py, whose budget is the paper's: set steps, learning rates and seeds for less.
      **settings: further keys with one underscore pair for the dot: `model__hidden=32`,
        `optim__steps=1000`, `grid__seeds=(10, 20)`.

    Raises:
      ValueError: something is wrong with these; one line that names the key and the fix.
      RuntimeError: the cell failed; its error is told.
    """
    from ib_bench.configs import base

    values = {
        "model.name": model if isinstance(model, str) else hand_over(model),
        "task.name": _task_name(task),
        "data.format": format,
        "data.length_distribution": length_distribution,
        "data.max_length": max_length,
    }
    values |= {key.replace("__", ".", 1): value for key, value in settings.items()}
    study = make_study(base.get_config() if config is None else config, values)
    if len(study.cells) > 1:
        raise ValueError(
            f"measure: the config spans {len(study.cells)} cells; give one value to each key, or "
            "run them all with ib_bench run"
        )
    store = Store(workdir)
    store.prepare()
    (cell,) = study.cells
    if not is_answered(cell, study, store):
        _open_devices(study.lanes)
        if local.run_study(study, store, lambda chunk: None, lambda: False):
            failures = {record.cell_key: record for record in store.failures()}
            raise RuntimeError(f"{cell.label} failed: {failures[cell.key].error}")
    return store.cell(cell.key)


def _task_name(task: str | Callable | Automaton) -> str:
    if isinstance(task, str):
        return task
    if not isinstance(task, Automaton):
        return hand_over(task)
    return hand_over(lambda: task, f"automaton:{task.table_hash}")


def _open_devices(lanes) -> None:
    try:
        use_every_core(lanes.devices)
    except RuntimeError:  # a notebook has used JAX before
        logger.warning(
            "JAX was used before: on a CPU, one core is used; call measure first, or restart"
        )
    keep_compiled(lanes.compile_cache)
