"""ib_bench status, beside a study that runs."""

import os
import subprocess
import sys
import time

from started import start


def status(workdir):
    command = [sys.executable, "-m", "ib_bench", "status", f"--workdir={workdir}"]
    environment = os.environ | {"COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


def test_a_running_study_is_told_from_files_alone(config, tmp_path):
    process = start(config, tmp_path)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("workers/*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, 19)  # SIGSTOP: it stays as it is while we look
    try:
        told = status(tmp_path)
        assert told.returncode == 0
        assert "4 cells: " in told.stdout and "running" in told.stdout
        assert "lstm-8 acot T=4 V=2" in told.stdout and "steps/s, lanes busy" in told.stdout
    finally:
        process.kill()
        process.wait()


def test_a_finished_study_has_no_workers(undisturbed):
    told = status(undisturbed)
    assert told.returncode == 0
    assert told.stdout.splitlines() == ["4 cells: 4 done, 0 running, 0 failed, 0 waiting"]


def test_a_folder_without_a_study_is_said_to_be_one(tmp_path):
    told = status(tmp_path)
    assert told.returncode == 2
    assert "no study was started" in told.stderr
    assert len(told.stderr.splitlines()) == 1
