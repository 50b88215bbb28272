"""A study on a Ray cluster: one head, several nodes, all on this machine."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from started import answers, assert_same_science, start

from benchmarks.cluster import Cluster, kill_node
from ib_bench.results import Store

pytest.importorskip("ray")


@pytest.fixture
def make_cluster():
    with contextlib.ExitStack() as clusters:
        yield lambda num_nodes: clusters.enter_context(Cluster(num_nodes))


def start_on(cluster, config, workdir, *flags, log=subprocess.DEVNULL, environment=None):
    """Starts a driver."""
    flags = ["--executor=ray", f"--ray_address={cluster.address}", *flags]
    return start(config, workdir, *flags, environment=cluster.token | (environment or {}), log=log)


def wait_until(condition, seconds=180):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_the_answers_are_those_of_a_local_run_though_a_worker_and_a_node_are_killed(
    make_cluster, config, undisturbed, tmp_path
):
    cluster = make_cluster(2)
    workdir, log = tmp_path / "work", tmp_path / "log"
    with open(log, "w") as file:
        driver = start_on(cluster, config, workdir, "--config.out.log_seconds=1", log=file)
        wait_until(lambda: list(workdir.glob("probes/*/*.json")) and cluster.workers())
        os.kill(cluster.workers()[0], signal.SIGKILL)
        kill_node(cluster.nodes[0])
        assert driver.wait(timeout=300) == 0, log.read_text()
    assert_same_science(workdir, undisturbed)
    told = log.read_text()
    assert re.search(r"ray: \d slots of CPU", told) and re.search(r"\d tasks · \d workers", told)
    record = Store(workdir).cells()[0]
    assert record.environment["num_devices"] == 1  # one core, one device
    assert not list(workdir.glob("failures/*")) and not list(workdir.glob("workers/stop-*"))


def test_a_driver_that_is_told_to_stop_ends_with_75_and_goes_on(
    make_cluster, config, undisturbed, tmp_path
):
    cluster = make_cluster(1)
    driver = start_on(cluster, config, tmp_path)
    wait_until(lambda: list(tmp_path.glob("probes/*/*.json")))
    driver.terminate()
    assert driver.wait(timeout=180) == os.EX_TEMPFAIL
    assert len(answers(tmp_path)) < 4
    assert list(tmp_path.glob("checkpoints/*"))
    assert start_on(cluster, config, tmp_path).wait(timeout=300) == 0
    assert_same_science(tmp_path, undisturbed)


def test_who_has_no_token_is_kept_out_and_what_kills_its_worker_each_time_comes_to_an_end(
    make_cluster, config, tmp_path
):
    cluster = make_cluster(1)
    stranger = start_on(cluster, config, tmp_path, environment={"RAY_AUTH_TOKEN": "f" * 64})
    assert stranger.wait(timeout=120) == 2
    driver = start_on(cluster, config, tmp_path, "--only=L=3 fixed")
    killed = set()
    while driver.poll() is None:
        for worker in cluster.workers():
            try:
                os.kill(worker, signal.SIGKILL)
                killed.add(worker)
            except ProcessLookupError:
                pass
        time.sleep(0.05)
    assert driver.returncode == 1
    assert len(killed) == 4  # the first try and three more
    (failure,) = Store(tmp_path).failures()
    assert "WorkerCrashedError" in failure.error


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--ray_address=127.0.0.1:1"], ["ray_address: no Ray cluster at", "launch/ray/head.sh"]),
        (["--multihost"], ["multihost: not with --executor=ray"]),
    ],
)
def test_what_cannot_be_is_told_in_one_line(config, tmp_path, flags, told):
    command = [sys.executable, "-m", "ib_bench", "run", f"--config={config}"]
    command += [f"--workdir={tmp_path}", "--executor=ray", *flags]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 2
    assert all(text in result.stderr for text in told), result.stderr


def test_the_driver_opens_no_device(tmp_path):
    script = """
import sys
from ib_bench.cli import run, study
from absl import flags
flags.FLAGS(["run", "--workdir=" + sys.argv[1], "--config=" + sys.argv[2], "--executor=ray"])
study.prepare_devices(on_workers=True)
run._start_ray(study.read_study())
import jax
from jax._src import xla_bridge
assert jax.config.jax_platforms == "cpu"
assert not xla_bridge.backends_are_initialized()
"""
    from ib_bench.configs import base

    command = [sys.executable, "-c", script, str(tmp_path), base.__file__]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr


def test_a_task_is_tried_again_but_not_for_ever_and_in_a_fresh_process():
    from ib_bench.executors.ray import _TASK

    assert _TASK["max_calls"] == 1 and _TASK["max_retries"] == 3


FORTY_EIGHT = (
    "--config.data.length_distribution=('fixed','uniform','short_to_long')",
    "--config.data.format=('acot','outcome')",
    "--config.model.name=('lstm','gru')",
    "--config.task.modulus=(2,3)",
    "--config.data.padded_symbols=(3,)",
    "--config.data.max_length=(3,4)",
    "--config.out.checkpoint_minutes=0.05",
)


@pytest.mark.slow
def test_forty_eight_cells_on_three_nodes_with_a_worker_and_a_node_killed(
    make_cluster, config, tmp_path
):
    undisturbed, workdir, log = (tmp_path / name for name in ("undisturbed", "work", "log"))
    assert start(config, undisturbed, *FORTY_EIGHT).wait(timeout=1800) == 0
    cluster = make_cluster(3)

    def num_done():
        return len(list(workdir.glob("cells/*.json")))

    started = time.monotonic()
    with open(log, "w") as file:
        driver = start_on(cluster, config, workdir, *FORTY_EIGHT, log=file)
        wait_until(lambda: num_done() >= 10 and cluster.workers(), 600)
        os.kill(cluster.workers()[0], signal.SIGKILL)
        wait_until(lambda: num_done() >= 20 and cluster.workers(), 600)
        kill_node(cluster.nodes[1])
        assert driver.wait(timeout=1800) == 0, log.read_text()
    seconds = time.monotonic() - started
    assert num_done() == 48
    assert_same_science(workdir, undisturbed)
    assert not list(workdir.glob("failures/*"))
    decided = re.findall(r"^[\d:]+ (\S+ .*): N=(\d+) \w+,", cluster.logs(), re.MULTILINE)
    answered = re.findall(r"^[\d:]+ (\S+ .*): (?:N\* =|not learned)", cluster.logs(), re.MULTILINE)
    twice = {label for label, size in decided if decided.count((label, size)) > 1}
    print(
        f"48 cells in {seconds:.0f} s; {len(answered) - len(set(answered))} answered twice, "
        f"{len(twice)} with a size that was decided twice, of {len(set(decided))} sizes"
    )
    assert len(set(answered)) == 48
