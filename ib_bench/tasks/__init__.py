"""Tasks: what is tracked. `TASKS` is the table of contents; every value builds an `Automaton`."""

import ast
import functools
import inspect

from ib_bench.lookup import lookup
from ib_bench.own import find, is_own
from ib_bench.tasks.automaton import Automaton
from ib_bench.tasks.groups import (
    MAX_MODULUS,
    alternating_group,
    dihedral,
    modular_addition,
    permutation_composition,
    swaps,
)
from ib_bench.tasks.machines import (
    bounded_counter,
    cycle_navigation,
    product,
    random_machine,
    register_machine,
)
from ib_bench.tasks.own import check_words, group_of, make_own, words

__all__ = [
    "MAX_MODULUS",
    "TASKS",
    "Automaton",
    "check_words",
    "group_of",
    "make_task",
    "parameters_of",
]

TASKS = {
    "alternating_group": alternating_group,
    "bounded_counter": bounded_counter,
    "cycle_navigation": cycle_navigation,
    "dihedral": dihedral,
    "modular_addition": modular_addition,
    "permutation_composition": permutation_composition,
    "product": product,
    "random_machine": random_machine,
    "register_machine": register_machine,
    "swaps": swaps,
    "words": words,
}


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    """Returns the parameters of a task: the keys of `config.task` that it reads.

    Args:
      name: a key of `TASKS`, or a user's maker, "my_package.my_file:make".
    """
    return dict(inspect.signature(find(TASKS, name, "task.name")).parameters)


def make_task(text: str) -> Automaton:
    """Builds a task from how it is written: "modular_addition(5)", "product(dihedral(4),...)".

    A user's maker is written "my_package.my_file:make(3)".

    Raises:
      ValueError: the text is no such call, the name is unknown, or an argument is out of range.
    """
    if is_own(text.partition("(")[0]):
        return make_own(text)
    return _make_known(text)


@functools.lru_cache(maxsize=64)
def _make_known(text: str) -> Automaton:
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        call = None
    return _build(call, text)


def _build(call: ast.expr | None, text: str) -> Automaton:
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        raise ValueError(f"task: {text!r} is not a task; write for example 'modular_addition(5)'")
    maker = lookup(TASKS, call.func.id, "task.name")
    arguments = [_argument(argument, text) for argument in call.args]
    named = {keyword.arg: _argument(keyword.value, text) for keyword in call.keywords}
    signature = inspect.signature(maker)
    usage = f"write {call.func.id}{signature}".split(" -> ")[0]
    try:
        bound = signature.bind(*arguments, **named)
    except TypeError as error:
        raise ValueError(f"task: {text!r}: {error}; {usage}") from None
    for key, value in bound.arguments.items():
        kind = signature.parameters[key].annotation
        for item in value if isinstance(value, tuple) else (value,):
            if not isinstance(item, kind):
                shown = item.name if isinstance(item, Automaton) else item
                needed = {int: "whole number", str: "text"}.get(kind, "task")
                raise ValueError(f"task.{key}: {shown} is no {needed}; {usage}")
    return maker(*arguments, **named)


def _argument(value: ast.expr, text: str) -> int | str | Automaton:
    if isinstance(value, ast.Call):
        return _build(value, text)
    try:
        constant = ast.literal_eval(value)
    except (TypeError, ValueError):
        constant = None
    if type(constant) in (int, str):
        return constant
    raise ValueError(f"task: {text!r}: arguments are whole numbers or tasks")
