"""Tasks that users bring: a table, a group by its generators, a file of words and states."""

import csv
import functools
import pathlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ib_bench.own import load, told
from ib_bench.tasks.automaton import Automaton
from ib_bench.tasks.groups import MAX_MODULUS, permutation_group


def make_own(text: str) -> Automaton:
    """Builds the task of a user's maker, written "my_package.my_file:make(3,5)".

    The maker returns an `Automaton`, or a table int[num_states, num_symbols] for one that starts in
    state 0.

    Raises:
      ValueError: there is no such maker, it raised, or it returned something else.
    """
    name, arguments = _split(text)
    return _make_own(load(name, "task.name"), name, arguments)


def _split(text: str) -> tuple[str, tuple[int, ...]]:
    match = re.fullmatch(r"(?P<name>[^()]+?)(\((?P<arguments>[\d,\s-]*)\))?", text.strip())
    try:
        words = (match["arguments"] or "").split(",")
        return match["name"], tuple(int(word) for word in words if word.strip())
    except (TypeError, ValueError):
        raise ValueError(
            f"task: {text!r} is not a task; write for example 'my_file:make(3)', arguments are "
            "whole numbers"
        ) from None


@functools.lru_cache(maxsize=64)
def _make_own(maker: Callable, name: str, arguments: tuple[int, ...]) -> Automaton:
    text = f"{name}({','.join(map(str, arguments))})"
    try:
        made = maker(*arguments)
        if isinstance(made, Automaton):
            return Automaton(text, made.transition, made.initial_state, made.states_are_symbols)
        table = np.asarray(made)
        if table.dtype.kind not in "iu":
            raise ValueError(f"returned a {type(made).__name__}; return an Automaton or a table")
        return Automaton(text, table)
    except Exception as error:
        raise ValueError(f"task.name: {text}: {told(error)}") from error


# --- a group by its generators ------------------------------------------------------------------


def group_of(generators: Sequence[Sequence[int]], name: str = "group") -> Automaton:
    """Returns the group that permutations generate; every element is a symbol and a state.

    Elements are numbered and composed as in `groups`: the identity first, then in lexicographic
    order of their one-line notation; s_k = x_k o s_{k-1}.

    Args:
      generators: permutations of the same points 0..n-1 in one-line notation.
      name: how the task is called.

    Raises:
      ValueError: one of them is no permutation, or they generate more than 1,000 elements.
    """
    rows = [tuple(int(point) for point in row) for row in generators]
    size = len(rows[0]) if rows else 0
    for row in rows:
        if sorted(row) != list(range(size)) or not size:
            raise ValueError(
                f"generators: {row} is no permutation of 0..{size - 1}; write what each point "
                "goes to, (1, 0, 2) swaps the first two"
            )
    if not rows:
        raise ValueError("generators: none; name at least one permutation")
    found = {tuple(range(size))}
    waiting = list(found)
    while waiting:
        element = waiting.pop()
        for row in rows:
            new = tuple(row[point] for point in element)
            if new not in found:
                found.add(new)
                waiting.append(new)
        if len(found) > MAX_MODULUS:
            raise ValueError(f"generators: they generate more than {MAX_MODULUS} elements")
    return permutation_group(name, np.array(sorted(found)))


# --- a file of words and states -----------------------------------------------------------------


class Word(NamedTuple):
    """A line of the file."""

    line: int
    symbols: np.ndarray  # int32[n]
    states: np.ndarray  # int32[n]: the state after each symbol


def words(path: str, claims: str = "") -> Automaton:
    """The machine that a CSV of words and states shows: columns `input`, `target`, ids by spaces.

    With `task.claims`, as "permutation_composition(5)", it is that task, and every word is checked.
    """
    from ib_bench.tasks import make_task

    if claims:
        task = make_task(claims)
        check_words(task, path)
    else:
        task = machine_of_words(path)
    text = f"words({path!r},{claims!r})"
    return Automaton(text, task.transition, task.initial_state, task.states_are_symbols)


def read_words(path: str) -> Iterator[Word]:
    """Yields the words of a CSV with the columns `seed,input,target` of the public word problems.

    Raises:
      ValueError: a line that is none, by its number.
    """
    csv.field_size_limit(2**24)
    try:
        with pathlib.Path(path).open(newline="") as file:
            rows = csv.DictReader(file)
            for key in ("input", "target"):
                if key not in (rows.fieldnames or ()):
                    raise ValueError(
                        f"task.path: {path}: no column {key!r}; the first line names the columns, "
                        "seed,input,target"
                    )
            for row in rows:
                yield Word(rows.line_num, *_ids_of(row, f"{path}, line {rows.line_num}"))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"task.path: {path!r} cannot be read: {error}") from None


def _ids_of(row: dict, where: str) -> tuple[np.ndarray, np.ndarray]:
    try:
        symbols, states = (
            np.array([int(word) for word in (row[key] or "").split()], np.int32)
            for key in ("input", "target")
        )
    except (ValueError, OverflowError):
        raise ValueError(f"task.path: {where}: ids are whole numbers, split by spaces") from None
    if len(symbols) != len(states) or not len(symbols):
        raise ValueError(
            f"task.path: {where}: {len(symbols)} symbols and {len(states)} states; a word has a "
            "state for each of its symbols"
        )
    for ids in (symbols, states):
        if not 0 <= ids.min() <= ids.max() < MAX_MODULUS:
            raise ValueError(f"task.path: {where}: an id is not in 0..{MAX_MODULUS - 1}")
    return symbols, states


def check_words(task: Automaton, path: str) -> int:
    """Compares every word of a file with an automaton; returns how many there are.

    Raises:
      ValueError: the first difference, by line and position.
    """
    count = 0
    for word in read_words(path):
        count += 1
        if word.symbols.max() >= task.num_symbols:
            raise ValueError(
                f"task.path: {path}, line {word.line}: symbol {word.symbols.max()}; {task.name} "
                f"has {task.num_symbols} symbols"
            )
        expected = task.states(word.symbols)
        if (wrong := np.flatnonzero(expected != word.states)).size:
            k = wrong[0]
            raise ValueError(
                f"task.path: {path}, line {word.line}, position {k + 1}: state {word.states[k]}; "
                f"{task.name} is in {expected[k]} there"
            )
    if not count:
        raise ValueError(f"task.path: {path} holds no word")
    return count


def machine_of_words(path: str) -> Automaton:
    """Returns the machine that a file of words shows.

    Raises:
      ValueError: a state and a symbol lead to two states, or one of them is never seen together,
        so that the words are no machine's, or do not show all of it.
    """
    seen: dict[tuple[int, int], tuple[int, int, int]] = {}  # (state, symbol): next, line, position
    start = -1  # the state before the first symbol, whatever its number
    num_states = num_symbols = 0
    for word in read_words(path):
        num_states = max(num_states, int(word.states.max()) + 1)
        num_symbols = max(num_symbols, int(word.symbols.max()) + 1)
        befores = [start, *word.states[:-1].tolist()]
        steps = zip(befores, word.symbols.tolist(), word.states.tolist(), strict=True)
        for k, (before, symbol, after) in enumerate(steps, 1):
            known, line, _ = seen.setdefault((before, symbol), (after, word.line, k))
            if known != after:
                place = "the start" if before == start else f"state {before}"
                raise ValueError(
                    f"task.path: {path}, line {word.line}, position {k}: {place} and symbol "
                    f"{symbol} lead to {after}, in line {line} to {known}; no machine does both"
                )
    if not seen:
        raise ValueError(f"task.path: {path} holds no word")
    table = np.full((num_states, num_symbols), -1, np.int32)
    first = np.full(num_symbols, -1, np.int32)
    for (state, symbol), (after, _, _) in seen.items():
        (first if state == start else table[state])[symbol] = after
    missing = np.argwhere(table < 0)
    if len(missing):
        state, symbol = missing[0]
        raise ValueError(
            f"task.path: {path}: {len(missing)} of {table.size} transitions are never seen, "
            f"the first: state {state} and symbol {symbol}; add words, or name the task that it "
            "is with task.claims"
        )
    alike = np.flatnonzero(((table == first) | (first < 0)).all(axis=1))
    if len(alike) != 1:
        raise ValueError(
            f"task.path: {path}: {len(alike)} states could be the first; add words, so that every "
            "symbol comes first in one of them"
        )
    is_group = num_states == num_symbols and np.array_equal(table[alike[0]], np.arange(num_symbols))
    return Automaton("words", table, int(alike[0]), states_are_symbols=is_group)
