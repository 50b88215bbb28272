"""Names to things: the one place that says "unknown X, did you mean Y"."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")


def nearest(name: str, valid: Iterable[str]) -> str:
    """Returns "; did you mean 'x'?" or an empty string."""
    valid = sorted(valid)
    matches = [other for other in valid if name and other.startswith(name)]
    matches = matches or difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def check_name(valid: Iterable[str], name: str, key: str) -> None:
    """Raises a ValueError unless `name` is valid: names `key`, the value, the nearest, and all."""
    valid = sorted(valid)
    if name not in valid:
        raise ValueError(
            f"{key}: {name!r} is unknown{nearest(str(name), valid)} (valid: {', '.join(valid)})"
        )


def lookup(registry: Mapping[str, T], name: str, key: str) -> T:
    """Returns `registry[name]`.

    Raises:
      ValueError: names `key`, the value, the nearest valid name and all valid names.
    """
    check_name(registry, name, key)
    return registry[name]
