"""What users bring: functions named "my_package.my_file:make_model", of any importable file."""

import functools
import hashlib
import importlib
import inspect
import os
import pathlib
import sys
import uuid
from collections.abc import Callable, Mapping

from ib_bench.lookup import lookup

_ROOT = pathlib.Path(__file__).parent
_HANDED: dict[str, Callable] = {}  # functions that were handed over as such, by name
_FRESH: dict[str, str] = {}  # what stands for the source of those that have none


def is_own(name: str) -> bool:
    """Tells whether a model's or a task's name is that of a user's function."""
    return ":" in name


def hand_over(function: Callable, name: str = "") -> str:
    """Takes a function that lives in this process, in a notebook perhaps; returns its name."""
    if not name:
        called = getattr(function, "__qualname__", type(function).__qualname__)
        name = f"{getattr(function, '__module__', 'unknown')}:{called}"
    if _HANDED.get(name) is not function:
        _HANDED[name] = function
        _FRESH.pop(name, None)
    return name


def find(registry: Mapping[str, Callable], name: str, key: str) -> Callable:
    """Returns a user's function, or the one that a registry has by this name.

    Raises:
      ValueError: there is none; the line names `key`.
    """
    return load(name, key) if is_own(name) else lookup(registry, name, key)


def load(name: str, key: str) -> Callable:
    """Imports a user's function; the current folder counts.

    Args:
      name: "module:function", the module with dots.
      key: of the config, for messages.

    Raises:
      ValueError: there is none of this name, or its file cannot be imported.
    """
    if name in _HANDED:
        return _HANDED[name]
    module_name, _, attribute = name.partition(":")
    usage = "write my_package.my_file:make"
    if not module_name or not attribute or module_name.endswith(".py") or "/" in module_name:
        raise ValueError(f"{key}: {name!r} names no function; {usage}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise ValueError(f"{key}: {module_name!r} cannot be imported: {told(error)}") from error
    function = module
    for part in attribute.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        functions = [
            name
            for name, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == module_name
        ]
        raise ValueError(
            f"{key}: {module_name!r} has no function {attribute!r}; "
            f"it has {', '.join(functions) or 'none'}"
        )
    return function


def source_of(name: str, key: str) -> str:
    """Returns 12 hex digits over the file of a function, and over all files of its package.

    Another text is another model, so that no answer to one is taken for an answer to the other.
    What has no file of its own, as in a notebook, counts as new each time it is handed over.
    """
    function = load(name, key)
    module = sys.modules.get(getattr(function, "__module__", ""))
    path = getattr(module, "__file__", None)
    plain = inspect.isfunction(function) and "<locals>" not in function.__qualname__
    if not (path and pathlib.Path(path).is_file() and (plain or inspect.isclass(function))):
        return _FRESH.setdefault(name, uuid.uuid4().hex[:12])
    return _digest_of(function, path, getattr(module, "__package__", "") or "")


@functools.cache  # what a process has imported stays as it was, whatever becomes of the file
def _digest_of(function: Callable, path: str, package: str) -> str:
    files = [pathlib.Path(path)]
    if package:
        root = pathlib.Path(path).parents[package.count(".")]
        files = sorted(root.rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def told(error: BaseException) -> str:
    """An error of a user's code in one line: its class, what it says, and where it was raised."""
    said = str(error).strip().splitlines()
    trace, place = error.__traceback__, ""
    while trace:
        path = pathlib.Path(trace.tb_frame.f_code.co_filename)
        others = _ROOT in path.parents or "site-packages" in path.parts
        if path.is_file() and not others:
            place = f" ({path.name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return f"{type(error).__name__}: {said[0][:300] if said else ''}{place}"
