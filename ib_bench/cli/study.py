"""The study that the command line names: a config, and what is set of it."""

import ast
from typing import Any

from absl import flags
from ml_collections import config_flags

CONFIG = config_flags.DEFINE_config_file(
    "config", None, "a file of configs/, or the name of one: quick", lock_config=True
)
OWN_KEYS = flags.DEFINE_multi_string(
    "own_key", [], "KEY=VALUE that a maker of your own reads; written --config.model.KEY=VALUE"
)


def is_own_key(name: str) -> bool:
    """Tells whether "config.model.KEY" or "config.task.KEY" is a key that no config declares."""
    from ib_bench.configs import base

    root, _, rest = name.partition(".")
    group, _, key = rest.partition(".")
    declared = base.get_config()
    return (
        root == "config"
        and group in ("model", "task")
        and key.isidentifier()
        and (key not in declared[group])
    )


def prepare_devices(on_workers: bool) -> None:
    """Says which devices JAX is to find; before `read_study`, which may import a user's file.

    Args:
      on_workers: the devices are those of other processes, and this one opens none of them.
    """
    import jax

    from ib_bench.training.devices import use_every_core

    if on_workers:
        jax.config.update("jax_platforms", "cpu")
    elif CONFIG.value is not None:
        wanted = CONFIG.value.lanes.devices  # not checked yet
        use_every_core(wanted if isinstance(wanted, int) and 0 < wanted <= 4096 else 0)


def read_study():
    """Returns the checked study of the flags.

    Raises:
      ValueError: no config is named, or something in it is wrong.
    """
    from ib_bench.configure import make_study

    if CONFIG.value is None:
        raise ValueError("config: missing; name a file, for example --config=configs/quick.py")
    overrides = dict(config_flags.get_override_values(flags.FLAGS["config"]))
    for setting in OWN_KEYS.value:
        key, _, value = setting.partition("=")
        overrides[key] = _read(value)
    return make_study(CONFIG.value, overrides)


def _read(text: str) -> Any:
    """A Python literal, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
