"""Bad input ends in one line that names the key, the value and the fix, with exit code 2."""

import itertools
import json
import subprocess
import sys

import pytest

from ib_bench.__main__ import main
from ib_bench.cli import run
from ib_bench.cli.presets import available_configs, find_config


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
        (
            ["run", "--config=quick", "--workdir=W", "--config.modle.hidden=3"],
            ["config: unknown key 'modle'", 'mean "model"'],
        ),
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
        (
            ["run", "--config=quick", "--workdir=W", "--config.model.hiden=3"],
            ["config.model.hiden: unknown key; did you mean 'model.hidden'"],
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


# What is wrong in flags is found before JAX is imported; one process tries them all.
MALFORMED = [
    (["run", "--config=quick", "--config.optim.stps=3"], ["unknown key 'stps'", '"steps"']),
    (["run", "--config=quick", "--config.optim.steps=many"], ["config.optim.steps=many"]),
    (["run", "--config=quick", "--config.optim.steps=2.5"], ["config.optim.steps=2.5"]),
    (["run", "--config=quick", "--config.search.confirm=maybe"], ["config.search.confirm=maybe"]),
    (["run", "--config=quick", "--config.optim=3"], ["config.optim=3"]),
    (["run", "--config=quick", "--config.optim.steps"], ["config.optim.steps"]),
    (["run", "--config=quick", "--nonsense=1"], ["nonsense"]),
    (["run", "--config=quick", "surplus"], ["'surplus'", "--name=value"]),
    (["run", "--config=quick", "--workdir="], ["workdir: missing", "--workdir="]),
    (["run", "--config=paper/tabel3"], ["'paper/tabel3'", "did you mean 'paper/table3'"]),
    (["run", "--config=configs/quik.py"], ["'configs/quik.py'", "presets: cpu"]),
    (["run", "--config"], ["config: there is no file ''", "presets: cpu"]),
    (["run", "--config="], ["config: there is no file ''", "presets: cpu"]),
    (["lsit"], ["command: 'lsit' is unknown", "did you mean 'list'"]),
    (["tabulate"], ["command: 'tabulate' is unknown", "valid: check, leaderboard, list, report"]),
]

TRY_ALL = """
import json, os, sys
from ib_bench.__main__ import main

for number, arguments in enumerate(json.load(sys.stdin)):
    child = os.fork()
    if not child:
        os.dup2(os.open(os.path.join(sys.argv[1], str(number)), os.O_CREAT | os.O_WRONLY), 2)
        sys.argv = ["ib_bench", *arguments]
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_malformed_flags_end_in_one_line_each(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", TRY_ALL, str(tmp_path)],
        input=json.dumps([arguments for arguments, _ in MALFORMED]),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert result.stdout.split() == ["2"] * len(MALFORMED)
    for number, (arguments, told) in enumerate(MALFORMED):
        text = (tmp_path / str(number)).read_text()
        assert len(text.splitlines()) == 1, text
        assert text.startswith(f"ib_bench {arguments[0]}: ")
        assert all(words in text for words in told), text


def test_an_error_in_the_values_of_a_sweep_is_one_line_too(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from ib_bench.configs import base\n"
        "def get_config():\n"
        "    config = base.get_config()\n"
        "    config.sweep = ({'model.hiden': 8},)\n"
        "    return config\n"
    )
    result = ib_bench("run", f"--config={path}", f"--workdir={tmp_path / 'work'}")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert "sweep.model.hiden: unknown key; did you mean 'model.hidden'?" in line


def test_nothing_is_written_where_the_study_is_wrong(tmp_path):
    workdir = tmp_path / "work"
    result = ib_bench(
        "run", "--config=quick", f"--workdir={workdir}", "--config.model.hidden=0", "--only=lstm"
    )
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    # The sweep of this preset names `hidden`; the command line wins, so that 0 is refused.
    assert "model.hidden: 0 is out of range" in result.stderr
    assert not workdir.exists()


def test_only_tells_of_a_pattern_that_is_none(tiny_study):
    study = tiny_study(data__max_length=(3, 4))
    with pytest.raises(ValueError, match=r"only: '\(' is no regular expression"):
        run._restricted(study, "(")
    with pytest.raises(ValueError, match="only: 'gru' matches none of 2 cells; labels look like"):
        run._restricted(study, "gru")
    assert [cell.data.max_length for cell in run._restricted(study, "L=3 ").cells] == [3]


def test_a_preset_goes_by_its_name_with_or_without_folder_and_suffix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where no folder `configs` is
    for names in (("quick", "quick.py", "configs/quick.py"), ("paper/table3", "paper/table3.py")):
        paths = {find_config(name) for name in names}
        assert len(paths) == 1 and paths.pop().endswith(f"{names[0]}.py")
    (tmp_path / "quick").write_text("")
    assert find_config("quick") == "quick"  # a file of one's own comes first
    assert find_config("quick.py:argument").endswith("quick.py:argument")


def test_a_workdir_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    result = ib_bench("run", "--config=quick", f"--workdir={tmp_path / 'file' / 'below'}")
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "workdir:" in result.stderr and "--workdir" in result.stderr


def test_no_command_prints_the_usage():
    for arguments, code in (([], 2), (["--help"], 0)):
        with pytest.raises(SystemExit) as caught:
            main(["ib_bench", *arguments])
        assert caught.value.code == code


def test_list_prints_every_name():
    from ib_bench import data
    from ib_bench.models import MODELS
    from ib_bench.search.policy import POLICIES
    from ib_bench.tasks import TASKS

    result = ib_bench("list")
    assert result.returncode == 0
    assert result.stderr == ""
    registries = (TASKS, MODELS, data.FORMATS, data.DISTRIBUTIONS, POLICIES, available_configs())
    for name in (*itertools.chain(*registries), "quick", "paper/table3"):
        (line,) = [line for line in result.stdout.splitlines() if line.startswith(f"  {name} ")]
        assert len(line.split(maxsplit=1)[1]) > 10  # and what it is


def test_a_disk_that_fails_ends_in_one_line_and_its_own_exit_code(monkeypatch, capsys):
    def full(argv):
        raise OSError(28, "No space left on device", "/results/probes/x.json")

    monkeypatch.setattr("ib_bench.cli.list.main", full)
    with pytest.raises(SystemExit) as end:
        main(["ib_bench", "list"])
    assert end.value.code == 74
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert "No space left on device: '/results/probes/x.json'" in told
