"""Two CPU devices for every test, whatever the machine; small studies that train in seconds."""

import pytest
import started

from ib_bench.training.devices import forget_compiled, keep_compiled, use_every_core

use_every_core(2)
keep_compiled("auto")


@pytest.fixture(autouse=True, scope="module")
def let_go_of_programs():
    """A process has room for so many compiled programs only."""
    yield
    forget_compiled()


@pytest.fixture(scope="session")
def tiny_config():
    """Returns make(**dotted overrides with "__" for "."): an LSTM of 8 on parity, L = 3 or 4."""
    from ib_bench.configs import base

    def make(**overrides):
        config = base.get_config()
        config.unlock()
        defaults = {
            "data__max_length": (3,),
            "data__padded_lengths": (4,),
            "data__format": ("acot",),
            "model__hidden": (8,),
            "optim__steps": 120,
            "optim__eval_every": 20,
            "optim__threshold": 0.1,
            "grid__learning_rates": (3e-2, 1e-2),
            "grid__seeds": (10, 20),
            "search__tolerance": 0.0,
            "search__failure_cost": 5.0,
        }
        for key, value in {**defaults, **overrides}.items():
            group, name = key.split("__")
            config[group][name] = value
        return config.lock()

    return make


@pytest.fixture(scope="session")
def tiny_study(tiny_config):
    """Returns make(**overrides): the study of `tiny_config`."""
    from ib_bench.configure import make_study

    return lambda **overrides: make_study(tiny_config(**overrides))


@pytest.fixture(scope="session")
def config(tmp_path_factory):
    """The file of a small study of four cells, checkpointed after every chunk."""
    path = tmp_path_factory.mktemp("config") / "tiny.py"
    path.write_text(started.CONFIG)
    return path


@pytest.fixture(scope="session")
def undisturbed(config, tmp_path_factory):
    """The workdir of that study, run once and left alone."""
    workdir = tmp_path_factory.mktemp("undisturbed")
    assert started.start(config, workdir).wait(timeout=300) == 0
    return workdir
