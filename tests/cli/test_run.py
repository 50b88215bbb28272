"""A run from the command line, as a user would start it: relative folder, flags for everything."""

import json
import re
import subprocess
import sys

import pytest
from ib_bench.configs import base

# Every key whose value a record states, set to another value than its default.
FLAGS = {
    "data.max_length": 4,
    "data.length_distribution": "fixed",
    "data.format": "acot",
    "data.validation_lengths": "as_training",
    "task.modulus": 3,
    "model.name": "transformer",
    "model.hidden": 6,
    "model.layers": 1,
    "model.heads": 3,
    "model.positions": "rotary",
    "optim.steps": 60,
    "optim.batch_size": 24,
    "optim.eval_every": 20,
    "optim.threshold": 0.25,
    "optim.stall": 40,
    "optim.beta1": 0.8,
    "optim.beta2": 0.98,
    "optim.epsilon": 1e-6,
    "grid.learning_rates": (0.02, 0.01),
    "grid.seeds": (7, 8),
    "search.policy": "grid",
    "search.sizes": (5, 9),
    "search.max_size": 40,
    "search.tolerance": 0.25,
    "search.width": 2,
    "search.max_probes": 3,
    "search.failure_cost": 4.0,
}


def ib_bench(folder, *arguments, **flags):
    flags = [f"--config.{key}={value!r}".replace("'", "") for key, value in flags.items()]
    command = [sys.executable, "-m", "ib_bench", *arguments, *flags]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study in a relative workdir, checkpointed after every chunk; returns (folder, process)."""
    folder = tmp_path_factory.mktemp("here")
    more = {"lanes.strategy": "map", "lanes.devices": 1, "out.checkpoint_minutes": 0.0}
    process = ib_bench(
        folder,
        "run",
        f"--config={base.__file__}",
        "--workdir=results/own",
        "--profile_dir=profile",
        **FLAGS,
        **more,
    )
    return folder / "results" / "own", process


def test_a_relative_workdir_serves_checkpoints_too(finished):
    workdir, process = finished
    assert process.returncode == 0, process.stderr
    assert len(list(workdir.glob("cells/*.json"))) == 1
    assert (workdir / "nstar.csv").exists() and (workdir / "nstar.md").exists()


def test_the_second_chunk_is_profiled_and_its_breakdown_told(finished):
    workdir, process = finished
    (path,) = workdir.parent.parent.glob("profile/*/breakdown.json")
    shares = json.loads(path.read_text())
    assert sum(shares.values()) == pytest.approx(1)
    assert all(share > 0 for share in shares.values()), shares
    assert process.stderr.count("time of a chunk: matrix products") == 1


def test_every_flag_reaches_the_record(finished):
    (path,) = finished[0].glob("cells/*.json")
    record = json.loads(path.read_text())
    cell = record["cell"]
    assert cell["task"] == "modular_addition(3)"
    for key, value in FLAGS.items():
        group, name = key.split(".")
        if group == "task":
            continue
        stated = (record["search"] if group == "search" else cell[group])[name]
        assert stated == (list(value) if isinstance(value, tuple) else value), key
    assert [probe["size"] for probe in record["probes"]] == [5, 9]


def test_a_run_does_what_its_flags_say(finished):
    """Not only the record's specification: also the runs in it."""
    for path in finished[0].glob("probes/*/*.json"):
        record = json.loads(path.read_text())
        assert {(run["learning_rate"], run["seed"]) for run in record["runs"]} == {
            (rate, seed) for rate in (0.02, 0.01) for seed in (7, 8)
        }
        assert all(run["steps"] <= 60 and run["steps"] % 20 == 0 for run in record["runs"])
        solved = [run["outcome"] == "solved" for run in record["runs"]]
        below = [run["best_loss"] < 0.25 for run in record["runs"]]
        assert solved == below
        assert (record["verdict"] == "learned") == any(solved)
        environment = record["environment"]
        assert (environment["strategy"], environment["num_devices"]) == ("map", 1)


def test_the_summary_prints_how_busy_the_lanes_were(finished):
    last = finished[1].stdout.strip().splitlines()[-1]
    assert re.search(r"1/1 cells, 1 of them now, in [\d.]+ min; [\d,]+ training steps", last)
    assert re.search(r"lanes busy \d+\.\d % of lane-steps", last)


# --- memory -------------------------------------------------------------------------------------

MEASURE = """
import resource, sys
from ib_bench.__main__ import main
try:
    main(["ib_bench", *sys.argv[1:]])
except SystemExit as end:
    assert not end.code, end.code
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux alone")
def test_sixteen_million_sequences_take_no_more_memory_than_a_thousand(tmp_path):
    def peak_megabytes(size):
        flags = {
            "task.modulus": 5,
            "data.max_length": 20,
            "model.hidden": 32,
            "optim.steps": 20,
            "optim.eval_every": 20,
            "grid.learning_rates": (0.01,),
            "grid.seeds": (10,),
            "search.policy": "grid",
            "search.sizes": (size,),
        }
        words = [f"--config.{key}={value!r}".replace("'", "") for key, value in flags.items()]
        command = [sys.executable, "-c", MEASURE, "run", f"--config={base.__file__}"]
        command += [f"--workdir={tmp_path / str(size)}", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        (record,) = (tmp_path / str(size)).glob("probes/*/*.json")
        assert json.loads(record.read_text())["size"] == size
        return int(done.stdout.split("peak")[1]) / 1024

    peak_megabytes(999)  # compiles: that takes more memory than anything here
    small, large = peak_megabytes(1_000), peak_megabytes(16_000_000)
    assert small > 100  # megabytes
    assert abs(large - small) < 300


LINGERING = """
import sys, threading
from ib_bench import __main__
threading.Thread(target=threading.Event().wait).start()
sys.argv = ["ib_bench", *sys.argv[1:]]
__main__.start()
"""


@pytest.mark.parametrize(("arguments", "code"), [(["list"], 0), (["lisst"], 2)])
def test_a_process_ends_though_a_thread_still_waits(arguments, code):
    """As orbax's do after a checkpoint that could not be written."""
    command = [sys.executable, "-c", LINGERING, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == code
    assert ("modular_addition" in result.stdout) == (code == 0)
    assert ("did you mean 'list'" in result.stderr) == (code == 2)
