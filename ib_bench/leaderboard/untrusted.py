"""Reads files that a stranger wrote: bounded, as text, and nothing but what is expected.

Nothing in them is executed, no path in them is followed, and a file that is too large is refused
before it is read.
"""

import dataclasses
import json
import os
import pathlib
import re
import stat
from collections.abc import Iterator
from typing import Any

MOST_FILES = 64
MOST_TEXT = 500  # characters of any text
MOST_DEPTH = 12  # levels of brackets in JSON; a record has six
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
# Control characters, and those that change the direction of a line.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


class RefusedError(ValueError):
    """A submission that is not accepted; the message says why, in a line."""


def list_files(folder: pathlib.Path, allowed: dict[str, int]) -> dict[str, int]:
    """Returns the files of a folder with their sizes.

    Args:
      folder: of the submission.
      allowed: regular expressions of relative paths, and the bytes that such a file may have.

    Raises:
      RefusedError: a link, something that is no plain file, an unknown name, too many, too large.
    """
    found = {}
    for path in _walk(folder):
        name = path.relative_to(folder).as_posix()
        shown = printable(name)
        state = path.lstat()
        if not stat.S_ISREG(state.st_mode):
            raise RefusedError(f"{shown}: a link or no plain file; submissions hold plain files")
        limits = [limit for pattern, limit in allowed.items() if re.fullmatch(pattern, name)]
        if not limits:
            raise RefusedError(f"{shown}: no file of a submission; leave it out")
        if state.st_size > limits[0]:
            raise RefusedError(f"{shown}: {state.st_size:,} bytes; at most {limits[0]:,} are read")
        found[name] = state.st_size
        if len(found) > MOST_FILES:
            raise RefusedError(f"more than {MOST_FILES} files")
    return found


def _walk(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """All that lies in a folder and one level below; deeper folders count as no plain files."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                with os.scandir(entry.path) as below:
                    yield from (pathlib.Path(one.path) for one in below)
            else:
                yield pathlib.Path(entry.path)


def read_lines(path: pathlib.Path, most_bytes: int) -> Iterator[str]:
    """Yields the lines of a text file in constant memory, whatever its length.

    Raises:
      RefusedError: a line is longer than `most_bytes`, or no UTF-8.
    """
    with _open(path) as file:
        number = 0
        while line := file.readline(most_bytes + 1):
            number += 1
            if len(line) > most_bytes:
                raise RefusedError(f"{path.name}, line {number}: longer than {most_bytes:,} bytes")
            yield _decoded(line, f"{path.name}, line {number}")


def read_text(path: pathlib.Path, most_bytes: int) -> str:
    """Returns a text file.

    Raises:
      RefusedError: it is longer than `most_bytes`, or no UTF-8.
    """
    with _open(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise RefusedError(f"{path.name}: longer than {most_bytes:,} bytes")
    return _decoded(content, path.name)


def _open(path: pathlib.Path):
    """Opens a plain file for reading; a link that took its place meanwhile is not followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise RefusedError(f"{path.name}: cannot be read: {error.strerror}") from None
    return os.fdopen(descriptor, "rb")


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise RefusedError(f"{where}: no UTF-8") from None


def parse(text: str, where: str) -> Any:
    """Reads JSON: no NaN, no infinity, no key twice, no nesting without end.

    Raises:
      RefusedError: it is something else.
    """

    def refuse(word):
        raise ValueError(f"{word} is no number of JSON")

    def unique(pairs):
        content = dict(pairs)
        if len(content) < len(pairs):
            raise ValueError("a key occurs twice")
        return content

    depth = deepest = 0
    for bracket in re.findall(r"[\[\]{}]", re.sub(r'"(?:[^"\\]|\\.)*"', "", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    if deepest > MOST_DEPTH:
        raise RefusedError(f"{where}: {deepest} levels of brackets; at most {MOST_DEPTH}")
    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"{where}: no JSON: {printable(str(error))}") from None


def build(cls: type, content: Any, where: str) -> Any:
    """Makes a flat dataclass of texts and lists of texts.

    Raises:
      RefusedError: a field is missing, unknown, of another type, too long, or holds characters that
        do not print.
    """
    if not isinstance(content, dict):
        raise RefusedError(f"{where}: no object")
    fields = {field.name: field for field in dataclasses.fields(cls)}
    if missing := sorted(fields.keys() - content.keys()):
        raise RefusedError(f"{where}: missing {', '.join(missing)}")
    if unknown := sorted(content.keys() - fields.keys()):
        raise RefusedError(f"{where}: unknown {', '.join(map(printable, unknown))}")
    for name, field in fields.items():
        if type(content[name]) is not field.type:
            raise RefusedError(f"{where}: {name} is no {field.type.__name__}")
        check_texts(content[name], f"{where}: {name}")
    return cls(**content)


def check_texts(value: Any, where: str) -> None:
    """Raises a RefusedError where a text is too long or holds what does not print."""
    if isinstance(value, str):
        if len(value) > MOST_TEXT:
            raise RefusedError(f"{where}: a text of {len(value)} characters; at most {MOST_TEXT}")
        if _UNPRINTABLE.search(value):
            raise RefusedError(f"{where}: {printable(value)} holds characters that do not print")


def check_name(name: str, where: str) -> None:
    """Raises a RefusedError unless a text may be the name of a folder."""
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise RefusedError(
            f"{where}: {printable(name)} is no name; use letters, digits and ._- (at most 64)"
        )


def printable(text: str, most: int = 80) -> str:
    """A text as it may be shown: short, and nothing in it that a terminal obeys."""
    shown = _UNPRINTABLE.sub("?", text)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."
