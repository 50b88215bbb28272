"""Cells of the benchmarks: `configs/base.py` with some keys set."""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np


def make_study(**keys):
    """Returns the study of `configs/base.py` with these keys set ("__" for "."), tuples or not."""
    from ib_bench.configs import base

    from ib_bench import configure

    config = base.get_config()
    config.unlock()
    for key, value in keys.items():
        group, name = key.split("__")
        spans = isinstance(config[group][name], tuple) and not isinstance(value, tuple)
        config[group][name] = (value,) if spans else value
    return configure.make_study(config.lock())


def with_one_validation_batch(cell_data):
    """Cuts evaluation down to one batch, so that training steps are what is measured."""
    return cell_data._replace(num_validation=np.int32(64))


def run_command(workdir: str, keys: Mapping[str, Any]) -> list[str]:
    """Returns the command that runs `configs/base.py` with these dotted keys set."""
    from ib_bench.configs import base

    command = [sys.executable, "-m", "ib_bench", "run", f"--config={base.__file__}"]
    command += [f"--workdir={workdir}"]
    return command + [f"--config.{key}={value}" for key, value in keys.items()]
