"""Tasks that users bring: tables, generators, files of words."""

import sys

import numpy as np
import pytest

from ib_bench.tasks import TASKS, Automaton, check_words, group_of, make_task, parameters_of

FILE = """
import numpy as np
from ib_bench.tasks import Automaton, group_of

def counter(size, step=1):
    return (np.arange(size)[:, None] + np.array([0, step])) % size

def alternating():
    return group_of([(1, 2, 0, 3), (0, 2, 3, 1)])

def late():
    return Automaton("late", [[0, 1], [1, 0]], initial_state=1)

def text():
    return "none"

def broken():
    return 1 // 0
"""


@pytest.fixture
def my_tasks(tmp_path, monkeypatch):
    (tmp_path / "my_tasks.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("my_tasks", None)


def test_a_table_of_ones_own_is_a_task(my_tasks):
    task = make_task("my_tasks:counter(4,3)")
    assert task.name == "my_tasks:counter(4,3)"
    assert task.transition.tolist() == [[0, 3], [1, 0], [2, 1], [3, 2]]
    assert list(parameters_of("my_tasks:counter")) == ["size", "step"]
    assert make_task("my_tasks:late").initial_state == 1


def test_generators_give_the_group_with_the_numbers_of_the_built_in_one(my_tasks):
    task = make_task("my_tasks:alternating()")
    built_in = make_task("alternating_group(4)")
    assert task.table_hash == built_in.table_hash and task.states_are_symbols
    for k in (2, 3, 5):
        turn, swap = [*range(1, k), 0], [1, 0, *range(2, k)]
        known = make_task(f"permutation_composition({k})")
        assert group_of([turn, swap]).table_hash == known.table_hash


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("my_tasks:missing()", "task.name: 'my_tasks' has no function 'missing'; it has counter"),
        ("no_such:maker()", "task.name: 'no_such' cannot be imported: ModuleNotFoundError"),
        ("my_tasks:counter(0.5)", "arguments are whole numbers"),
        ("my_tasks:counter()", "missing 1 required positional argument: 'size'"),
        ("my_tasks:text()", "returned a str; return an Automaton or a table"),
        ("my_tasks:broken()", r"ZeroDivisionError: .*\(my_tasks.py, line 18\)"),
        ("my_tasks.py:counter(3)", "names no function; write my_package.my_file:make"),
    ],
)
def test_what_is_wrong_with_a_task_of_ones_own_is_one_line(my_tasks, text, told):
    with pytest.raises(ValueError, match=told) as error:
        make_task(text)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("generators", "told"),
    [
        ([], "none; name at least one"),
        ([()], "is no permutation"),
        ([(0, 2)], r"\(0, 2\) is no permutation of 0..1"),
        ([(1, 0), (0, 1, 2)], "is no permutation of 0..1"),
        ([[*range(1, 7), 0], [1, 0, *range(2, 7)]], "more than 1000 elements"),
    ],
)
def test_generators_that_are_none_are_refused(generators, told):
    with pytest.raises(ValueError, match=told):
        group_of(generators)


# --- files of words -----------------------------------------------------------------------------


def write_words(path, task, count=60, length=7, seed=0):
    generator = np.random.RandomState(seed)
    lines = ["seed,input,target"]
    for _ in range(count):
        symbols = generator.randint(task.num_symbols, size=length)
        lines.append(
            f"{seed},{' '.join(map(str, symbols))},{' '.join(map(str, task.states(symbols)))}"
        )
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize(
    "text", ["dihedral(3)", "cycle_navigation(4)", "bounded_counter(2)", "random_machine(4,3,7)"]
)
def test_words_show_their_machine(text, tmp_path):
    """All that can be reached of it: states that never occur are not in the words."""
    task = make_task(text)
    path = write_words(tmp_path / "words.csv", task)
    assert check_words(task, path) == 60
    shown = TASKS["words"](path)
    assert shown.table_hash == task.table_hash
    assert shown.states_are_symbols == task.states_are_symbols
    assert make_task(f"words({path!r},{text!r})").table_hash == task.table_hash


def test_words_of_a_machine_that_starts_elsewhere(tmp_path):
    task = Automaton("late", [[0, 1, 2], [1, 2, 0], [2, 0, 1]], initial_state=2)
    assert TASKS["words"](write_words(tmp_path / "words.csv", task)).initial_state == 2


def test_a_claim_that_is_wrong_is_refused_with_line_and_position(tmp_path):
    path = write_words(tmp_path / "words.csv", make_task("modular_addition(4)"))
    with pytest.raises(ValueError, match=r"line 2, position \d: state \d; dihedral\(2\) is in \d"):
        make_task(f"words({path!r},'dihedral(2)')")
    with pytest.raises(ValueError, match="symbol 3; modular_addition\\(2\\) has 2 symbols"):
        make_task(f"words({path!r},'modular_addition(2)')")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["input,target", "0 1,0 1", "0 1,0 0"], "line 3, position 2: state 0 and symbol 1 lead"),
        (["input,target", "0 1,0 1", "0 x,0 1"], "line 3: ids are whole numbers"),
        (["input,target", "0 1,0"], "line 2: 2 symbols and 1 states"),
        (["input,target", "0 -1,0 1"], r"line 2: an id is not in 0..999"),
        (["input,target", "0 1,0 99999999999"], "line 2: "),
        (["input,target", "0 1,0 1"], "transitions are never seen, the first: state 0 and"),
        (["input,target"], "holds no word"),
        (["input", "0"], "no column 'target'"),
        ([], "no column 'input'"),
        (["input,target", "0,0", "0 0,0 0", "0 0 0,0 0 0", "\0,1"], ""),
    ],
)
def test_a_file_that_holds_no_words_is_refused_by_line(lines, told, tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=f"task.path: .*{told}") as error:
        make_task(f"words({str(path)!r},'')")
    assert len(str(error.value).splitlines()) == 1


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="task.path: .*none.csv.* cannot be read"):
        make_task(f"words({str(tmp_path / 'none.csv')!r},'')")
