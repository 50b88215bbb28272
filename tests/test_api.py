"""From Python: one question, one record; and models of one's own, by name and by hand."""

import importlib
import pathlib
import subprocess
import sys

import pytest

import ib_bench
from ib_bench.own import hand_over, is_own, load, source_of
from ib_bench.results import Store
from ib_bench.tasks import Automaton

EXAMPLES = pathlib.Path(__file__).parents[1] / "docs" / "examples"
QUICK = {
    "max_length": 3,
    "model__hidden": 8,
    "data__padded_lengths": (4,),
    "optim__steps": 400,
    "optim__eval_every": 20,
    "optim__threshold": 0.1,
    "grid__learning_rates": (3e-2, 1e-2),
    "grid__seeds": (10, 20),
    "search__failure_cost": 5.0,
    "search__tolerance": 0.5,
}
MINE = """
import flax.linen as nn
import jax.numpy as jnp

def make_model(*, num_inputs, num_outputs, max_positions, hidden, width=3, **more):
    SEEN.append((num_inputs, num_outputs, max_positions, hidden, width, more))

    class GRU(nn.Module):
        @nn.compact
        def __call__(self, tokens_BT):
            x = nn.Embed(num_inputs, hidden)(tokens_BT)
            return nn.Dense(num_outputs)(nn.RNN(nn.GRUCell(hidden))(x))

    return GRU()

SEEN = []
TABLE = jnp.ones(3)  # a device is used while the file is imported

def broken(*, num_inputs, num_outputs, max_positions):
    return None.shape

def text(*, num_inputs, num_outputs, max_positions):
    return "a model"

def keeps(*, num_inputs, num_outputs, max_positions):
    class Keeps(nn.Module):
        @nn.compact
        def __call__(self, tokens_BT):
            x = nn.Embed(num_inputs, 4)(tokens_BT)
            x = nn.BatchNorm(use_running_average=True)(x)
            return nn.Dense(num_outputs)(x)
    return Keeps()

def needs(*, num_inputs, num_outputs, max_positions, depth):
    return make_model(
        num_inputs=num_inputs, num_outputs=num_outputs, max_positions=max_positions, hidden=depth
    )

def odd(*, num_inputs, num_outputs, max_positions, shape=(3, 4)):
    return make_model(
        num_inputs=num_inputs, num_outputs=num_outputs, max_positions=max_positions, hidden=3
    )

number = 3
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A folder with a user's file, as the current one."""
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path])
    yield tmp_path
    sys.modules.pop("mine", None)


@pytest.mark.parametrize("name", ["linen_gru", "nnx_gru", "equinox_gru"])
def test_the_examples_are_short_and_learn(name, tmp_path, monkeypatch):
    text = (EXAMPLES / f"{name}.py").read_text()
    assert sum(bool(line.strip()) for line in text.splitlines()) <= 15
    monkeypatch.syspath_prepend(EXAMPLES)
    record = ib_bench.measure(
        f"{name}:make_model", "modular_addition(2)", "acot", workdir=tmp_path, **QUICK
    )
    assert record.status == "learned" and record.nstar <= 8
    assert record.cell["model"] == {
        "name": f"{name}:make_model",
        "source": source_of(f"{name}:make_model", "model.name"),
        "hidden": 8,
    }


def test_measure_returns_the_record_that_a_run_would_store(tmp_path):
    record = ib_bench.measure("lstm", "modular_addition", "acot", workdir=tmp_path, **QUICK)
    assert Store(tmp_path).cells() == [record]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert (
        ib_bench.measure("lstm", "modular_addition(2)", "acot", workdir=tmp_path, **QUICK) == record
    )
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")} == before


def test_measure_takes_a_maker_and_an_automaton(mine):
    made = load("mine:make_model", "model.name")
    flip = Automaton("flip", [[0, 1], [1, 0]])
    record = ib_bench.measure(made, flip, "acot", workdir="work", model__width=7, **QUICK)
    assert record.cell["task"] == f"automaton:{flip.table_hash}()"
    assert record.cell["table"] == flip.table_hash
    assert record.cell["model"]["width"] == 7 and record.cell["model"]["name"] == "mine:make_model"
    seen = sys.modules["mine"].SEEN[-1]
    assert seen[:5] == (2, 2, 4, 8, 7)
    assert seen[5]["layers"] == 2 and "width" not in seen[5]  # all other keys, by **


def test_measure_asks_for_one_cell(tmp_path):
    with pytest.raises(ValueError, match="the config spans 2 cells; give one value to each key"):
        ib_bench.measure("lstm", workdir=tmp_path, **QUICK | {"model__hidden": (8, 16)})
    with pytest.raises(ValueError, match="modle.hidden: unknown key"):
        ib_bench.measure("lstm", workdir=tmp_path, modle__hidden=8)
    assert not list(tmp_path.iterdir())


def test_measure_tells_what_a_model_raised(mine):
    with pytest.raises(RuntimeError, match="failed: ValueError: model.name: .*keeps batch_stats"):
        ib_bench.measure("mine:keeps", format="acot", workdir="work", **QUICK)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("mine:missing", "'mine' has no function 'missing'; it has make_model, broken"),
        ("mine:number", "'mine' has no function 'number'"),
        ("nothere:make", "'nothere' cannot be imported: ModuleNotFoundError"),
        ("mine.py:make_model", "names no function; write my_package.my_file:make"),
        ("./mine:make_model", "names no function"),
        (":make_model", "names no function"),
        (
            "mine:broken",
            r"broken\(num_inputs=1, .*\) raised AttributeError: .* \(mine.py, line \d+\)",
        ),
        ("mine:text", "returned a str; return two functions, init"),
        ("mine:needs", "model.depth: mine:needs needs it and it has no value; set --config.model"),
        ("mine:odd", r"model.shape: \(3, 4\) cannot be written to a record"),
    ],
)
def test_what_is_wrong_with_a_model_of_ones_own_is_one_line(mine, name, told):
    with pytest.raises(ValueError, match=told) as error:
        ib_bench.measure(name, workdir="work", **QUICK)
    assert len(str(error.value).splitlines()) == 1
    assert not (mine / "work").exists()


def test_another_text_is_another_model(mine):
    """Once it is imported anew: what a process has imported stays what it was."""

    def source(name):
        return source_of(f"{name}:needs", "model.name")

    before = source("mine")
    (mine / "mine.py").write_text(MINE + "\n# changed\n")
    assert source("mine") == before
    importlib.reload(sys.modules["mine"])
    assert source("mine") != before
    package = mine / "mypkg" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    (package / "net.py").write_text(MINE)
    layers, first = package.parent / "layers.py", source("mypkg.inner.net")
    layers.write_text("one = 1\n")  # another file of the package
    importlib.reload(sys.modules["mypkg.inner.net"])
    assert source("mypkg.inner.net") != first
    for name in [name for name in sys.modules if name.startswith("mypkg")]:
        del sys.modules[name]


def test_what_has_no_file_counts_as_new_each_time():
    def define(size):
        return lambda **sizes: size

    first = hand_over(define(1))
    source = source_of(first, "model.name")
    assert is_own(first) and source_of(first, "model.name") == source
    assert hand_over(define(2)) == first  # the same name, another function
    assert source_of(first, "model.name") != source


def test_keys_of_ones_own_come_from_the_command_line(mine):
    command = [sys.executable, "-m", "ib_bench", "run", "--config=quick", "--workdir=work"]
    command += ["--config.model.name=mine:make_model", "--config.model.width=(3, 5)", "--only=none"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "matches none of 16 cells" in result.stderr  # 8 of quick, twice
    assert "mine:make_model-32-3" in result.stderr
    wrong = [word for word in command if "model.name" not in word]
    result = subprocess.run(wrong, capture_output=True, text=True, timeout=120)
    assert result.returncode == 2
    assert "config.model.width: unknown key" in result.stderr
    command[-2] = "--config.model.source=x"
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "'source' cannot be a key" in result.stderr


def test_measure_imports_no_jax_before_it_is_called():
    code = "import sys, ib_bench; print('jax' in sys.modules, callable(ib_bench.measure))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.split() == ["False", "True"]
    with pytest.raises(AttributeError, match="no attribute 'measur'"):
        ib_bench.measur  # noqa: B018
