"""Bad input ends in one line that names the key, the value and the fix, with exit code 2."""

import subprocess
import sys

import pytest


def ib_bench(*arguments):
    command = [sys.executable, "-m", "ib_bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rnu"], ["'rnu'", "did you mean 'run'"]),
        (["run", "--workdir=W"], ["config: missing", "--config="]),
        (["run", "--config=quik", "--workdir=W"], ["'quik'", "did you mean 'quick'"]),
        (["run", "--config=quick"], ["workdir: missing", "--workdir="]),
        (["run", "--config=quick", "--workdir=W", "--config.modle.hidden=3"], ["modle"]),
        (["run", "--config=quick", "--workdir=W", "--config.optim.steps=many"], ["many"]),
        (["run", "--config=quick", "--workdir=W", "--nonsense=1"], ["nonsense"]),
        (
            ["run", "--config=quick", "--workdir=W", "--config.task.modulus=1"],
            ["task.modulus: 1", "use 2 to 1000"],
        ),
        (
            ["run", "--config=quick", "--workdir=W", "--config.data.max_length=1"],
            ["data.max_length: 1", "use 2 to 64"],
        ),
        (
            ["run", "--config=quick", "--workdir=W", "--config.model.name=lsmt"],
            ["'lsmt'", "did you mean 'lstm'"],
        ),
        (["run", "--config=quick", "--workdir=W", "--only=gru"], ["only: 'gru'", "labels look"]),
        (["report", "--workdir=W"], ["holds no finished cells"]),
    ],
)
def test_one_line_says_what_is_wrong(arguments, told, tmp_path):
    workdir = str(tmp_path / "work")
    result = ib_bench(*(word.replace("=W", f"={workdir}") for word in arguments))
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert all(text in result.stderr for text in told), result.stderr


def test_a_workdir_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    result = ib_bench("run", "--config=quick", f"--workdir={tmp_path / 'file' / 'below'}")
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "workdir:" in result.stderr and "--workdir" in result.stderr


def test_list_prints_every_name():
    from ib_bench import data
    from ib_bench.models import MODELS
    from ib_bench.tasks import TASKS

    result = ib_bench("list")
    assert result.returncode == 0
    for name in (*TASKS, *MODELS, *data.FORMATS, *data.DISTRIBUTIONS, "quick", "paper/table3"):
        assert f"  {name} " in result.stdout
