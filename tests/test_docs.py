"""docs/bring_your_model.md: every command on it is run, in its order, in a clean checkout."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from ib_bench.tasks import make_task

ROOT = pathlib.Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "bring_your_model.md").read_text()
# The track takes minutes; a test asks its smallest question, which is asked as it is there.
SHORTER = {"run --config=leaderboard:cpu": ' --only="acot modular_addition.5. L=2 fixed"'}


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A commit of this package as it is now, without a change that is not committed."""
    folder = tmp_path_factory.mktemp("checkout") / "ib_bench"
    folder.mkdir()
    for name in ("ib_bench", "configs", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    if not (folder / "ib_bench" / "configs").exists():
        (folder / "ib_bench" / "configs").symlink_to("../configs")
    (folder / ".gitignore").write_text("__pycache__/\nresults/\nleaderboard/\n/*.py\n/*.csv\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    for block in blocks("python"):
        if match := re.match(r"# (\w+\.py)\n", block):
            (folder / match[1]).write_text(block)
    generator = np.random.RandomState(0)
    task, lines = make_task("dihedral(3)"), ["seed,input,target"]
    for _ in range(60):
        symbols = generator.randint(6, size=6)
        lines.append(f"0,{' '.join(map(str, symbols))},{' '.join(map(str, task.states(symbols)))}")
    (folder / "words.csv").write_text("\n".join(lines) + "\n")
    return folder


def shell(command, folder):
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    return subprocess.run(
        ["bash", "-euc", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


def commands():
    """All commands of the page but those that install it."""
    text = "\n".join(blocks("bash")[1:]).replace("\\\n", "")
    return [line for line in text.splitlines() if line.strip()]


def test_every_command_of_the_page_works(checkout):
    told = {}
    for command in commands():
        assert command.startswith("ib_bench "), command
        more = "".join(flags for part, flags in SHORTER.items() if part in command)
        result = shell(command + more, checkout)
        assert result.returncode == 0, (command, result.stdout, result.stderr)
        told[" ".join(command.split()[1:3])] = result.stdout
    assert "all points are kept" in told["check --config.model.name=my_gru:make_model"]
    assert "N*" in told["run --config=leaderboard:cpu"]
    assert "packed 1 of 16 cells into leaderboard/submissions/my-gru" in told["submit pack"]
    assert "every number follows" in told["submit check"]
    assert "wrote leaderboard/README.md" in told["leaderboard"]
    assert "My GRU" in (checkout / "leaderboard" / "README.md").read_text()
    assert "8 states, 8 symbols" in told["check --config.task.name=my_tasks:quaternions"]


def test_the_python_of_the_page_works(checkout):
    (block,) = [block for block in blocks("python") if "ib_bench.measure" in block]
    result = shell(f"python - <<'END'\n{block}\nEND", checkout)
    assert result.returncode == 0, result.stderr
    nstar, low = map(int, result.stdout.split()[-2:])
    assert 0 <= low < nstar


@pytest.mark.slow
def test_the_installation_of_the_page_works(tmp_path):
    """In a new clone, without an environment."""
    subprocess.run(["git", "clone", "-q", ROOT, tmp_path / "clone"], check=True)
    result = subprocess.run(
        ["bash", "-euc", f"{blocks('bash')[0]}\nib_bench list"],
        cwd=tmp_path / "clone",
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert result.returncode == 0, result.stderr
    assert "modular_addition" in result.stdout


def test_a_rerun_of_what_was_packed_agrees_and_runs_no_other_file(checkout):
    """After the page: its one cell again, with the packed file alone on the path."""
    folder = checkout / "leaderboard" / "submissions" / "my-gru"
    (checkout / "my_gru.py").unlink()
    command = "ib_bench submit check leaderboard/submissions/my-gru"
    result = shell(command, checkout)  # nothing is imported: the file may be gone
    assert result.returncode == 0 and "not verified" in result.stdout, result.stderr
    result = shell(f"{command} --rerun --record", checkout)
    assert result.returncode == 0, (result.stdout, result.stderr)
    assert "agrees: my_gru_make_model-32_acot" in result.stdout
    assert "verified: 1 cells came out again" in result.stdout
    assert shell("ib_bench leaderboard", checkout).returncode == 0
    assert "| verified |" in (checkout / "leaderboard" / "README.md").read_text()
    model = folder / "model" / "my_gru.py"
    model.write_text(model.read_text().replace("GRUCell", "SimpleCell"))
    result = shell(f"{command} --rerun", checkout)
    assert result.returncode == 2
    assert "is not the file that the records are of" in result.stderr
