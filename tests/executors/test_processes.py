"""Several processes on one study: shards, the same shard twice, processes in step."""

import os
import re
import socket
import time

import pytest
from started import answers, assert_same_science, start

from ib_bench.results import Store


def wait_for(processes):
    return [process.wait(timeout=300) for process in processes]


def test_two_shards_at_once_in_one_workdir_give_the_whole_study(config, undisturbed, tmp_path):
    shards = [start(config, tmp_path, f"--shard={index}/2") for index in range(2)]
    assert wait_for(shards) == [0, 0]
    assert_same_science(tmp_path, undisturbed)
    assert not list(tmp_path.glob("set_aside/*"))
    assert not list(tmp_path.glob("checkpoints/*")) and not list(tmp_path.glob("workers/*"))


def test_the_same_shard_started_twice_by_mistake_gives_the_same_answers(
    config, undisturbed, tmp_path
):
    twins = [start(config, tmp_path) for _ in range(2)]
    assert wait_for(twins) == [0, 0]
    assert_same_science(tmp_path, undisturbed)
    assert not list(tmp_path.glob("set_aside/*"))


def test_what_one_split_left_open_another_goes_on_with(config, undisturbed, tmp_path):
    """A checkpoint of one process serves the shards of a later start."""
    process = start(config, tmp_path)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("checkpoints/*/*/*/scheduler")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait()
    log = tmp_path / "log"
    with open(log, "w") as file:
        shards = [start(config, tmp_path, f"--shard={k}/2", log=file) for k in range(2)]
        assert wait_for(shards) == [0, 0]
    went_on = [int(n) for n in re.findall(r"(\d+) runs go on from a checkpoint", log.read_text())]
    assert len(went_on) >= 1
    assert_same_science(tmp_path, undisturbed)
    assert not list(tmp_path.glob("checkpoints/*"))


# --- in step ------------------------------------------------------------------------------------


def start_in_step(config, workdir, num_processes, *flags, logs):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [
        start(
            config,
            workdir,
            "--multihost",
            f"--coordinator_address=127.0.0.1:{port}",
            f"--num_processes={num_processes}",
            f"--process_id={index}",
            *flags,
            log=logs[index],
        )
        for index in range(num_processes)
    ]


@pytest.fixture
def logs(tmp_path):
    files = [open(tmp_path / f"log{k}", "w+") for k in range(2)]
    yield files
    for file in files:
        file.close()


def test_two_processes_in_step_answer_what_one_answers(config, undisturbed, tmp_path, logs):
    workdir = tmp_path / "work"
    processes = start_in_step(config, workdir, 2, "--config.out.log_seconds=0", logs=logs)
    assert wait_for(processes) == [0, 0]
    assert_same_science(workdir, undisturbed)
    record = Store(workdir).cells()[0]
    assert record.environment["num_devices"] == 4
    told = (tmp_path / "log0").read_text()
    assert re.search(r"\d/4 lanes", told), told
    assert "lanes busy" in told and "lanes busy" not in (tmp_path / "log1").read_text()


def test_processes_in_step_stop_together_and_go_on(config, undisturbed, tmp_path, logs):
    workdir = tmp_path / "work"
    processes = start_in_step(config, workdir, 2, logs=logs)
    deadline = time.monotonic() + 120
    while not list(workdir.glob("probes/*/*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    processes[1].terminate()  # one of them is told
    assert wait_for(processes) == [os.EX_TEMPFAIL] * 2
    assert len(answers(workdir)) < 4
    assert list(workdir.glob("checkpoints/*"))
    again = start(config, workdir)  # and one process goes on with it
    assert again.wait(timeout=300) == 0
    assert_same_science(workdir, undisturbed)
