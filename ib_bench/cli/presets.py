"""Configs by name: those of configs/, which are installed as ib_bench.configs."""

import contextlib
import importlib.resources
import os
import pathlib

from ib_bench.lookup import nearest


def find_config(name: str) -> str:
    """Returns the path of a config: a file as named, or a packaged preset such as "quick".

    A ":argument" after it is kept, as ml_collections hands it to the config's get_config.

    Raises:
      ValueError: there is neither.
    """
    path, colon, argument = name.partition(":")
    if pathlib.Path(path).is_file():
        return name
    presets = available_configs()
    found = presets.get(path.removesuffix(".py").removeprefix("configs/"))
    if found is None:
        raise ValueError(
            f"config: there is no file {path!r}{nearest(path, presets)} "
            f"(presets: {', '.join(presets)})"
        )
    return f"{found}{colon}{argument}"


def available_configs() -> dict[str, str]:
    """Returns the packaged presets: name -> path."""
    with contextlib.suppress(ModuleNotFoundError):
        root = importlib.resources.files("ib_bench.configs")
        files = sorted(pathlib.Path(os.fspath(root)).rglob("*.py"))
        return {
            str(path.relative_to(root).with_suffix("")): str(path)
            for path in files
            if path.stem not in ("__init__", "base")
        }
    return {}
