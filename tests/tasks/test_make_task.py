"""Tasks are written as calls, and what is wrong with one is said in a line."""

import pytest

from ib_bench.tasks import make_task


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (" modular_addition( 5 ) ", "modular_addition(5)"),
        ("modular_addition(modulus=5)", "modular_addition(5)"),
        ("random_machine(3, seed=7, symbols=4)", "random_machine(3,4,7)"),
        (
            "product(dihedral(4), product(modular_addition(2), cycle_navigation(3)))",
            "product(dihedral(4),product(modular_addition(2),cycle_navigation(3)))",
        ),
    ],
)
def test_a_task_may_be_written_freely_and_is_named_in_one_way(text, name):
    task = make_task(text)
    assert task.name == name
    assert make_task(name).table_hash == task.table_hash


def test_a_task_is_built_once():
    assert make_task("dihedral(3)") is make_task("dihedral(3)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "task: '' is not a task; write for example 'modular_addition\\(5\\)'"),
        ("modular_addition", "task: 'modular_addition' is not a task; write for example"),
        ("modular_addition(2", "task: 'modular_addition\\(2' is not a task; write for example"),
        ("modular_addition(2)(3)", "is not a task; write for example"),
        ("tasks.dihedral(3)", "is not a task; write for example"),
        (
            "modular_additon(3)",
            "task.name: 'modular_additon' is unknown; did you mean 'modular_addition'\\? "
            "\\(valid: alternating_group, bounded_counter, cycle_navigation, ",
        ),
        ("product(dihedrel(3))", "task.name: 'dihedrel' is unknown; did you mean 'dihedral'\\?"),
        ("modular_addition()", "missing a required argument: 'modulus'; write modular_addition\\("),
        ("modular_addition(2, 3)", "too many positional arguments; write modular_addition\\("),
        ("modular_addition(m=2)", "write modular_addition\\(modulus: int\\)"),
        (
            "modular_addition(2.5)",
            "'modular_addition\\(2.5\\)': arguments are whole numbers or tasks",
        ),
        ("modular_addition(True)", "arguments are whole numbers or tasks"),
        ("modular_addition('5')", "task.modulus: 5 is no whole number; write modular_addition"),
        ("words(5,'')", "task.path: 5 is no text; write words"),
        ("modular_addition(2 + 3)", "arguments are whole numbers or tasks"),
        ("modular_addition(*[5])", "arguments are whole numbers or tasks"),
        ("modular_addition(**{'modulus': 5})", "arguments are whole numbers or tasks"),
        ("modular_addition(-3)", "task.modulus: -3 is out of range; use 2 to 1000"),
        ("random_machine(3, 3, -1)", "task.seed: -1 is out of range; use 0 to"),
        (
            "modular_addition(dihedral(4))",
            "task.modulus: dihedral\\(4\\) is no whole number; write modular_addition\\(",
        ),
        ("product(3)", "task.factors: 3 is no task; write product\\("),
        ("product(dihedral(3), 3)", "task.factors: 3 is no task"),
        ("product()", "task.factors: product needs at least one task"),
    ],
)
def test_what_is_not_a_task_is_refused_in_one_line(text, message):
    with pytest.raises(ValueError, match=message) as error:
        make_task(text)
    assert "\n" not in str(error.value)


def test_a_task_is_read_and_never_executed(tmp_path):
    target = tmp_path / "made"
    with pytest.raises(ValueError, match="is unknown"):
        make_task(f"open({str(target)!r}, 'w')")
    assert not target.exists()
