"""An interrupted study ends with what an uninterrupted one would have found."""

import json
import os
import random
import re
import signal
import subprocess
import time

import pytest
from started import assert_same_science, start

from ib_bench.results import Store


@pytest.fixture(scope="module")
def undisturbed_in_pairs(config, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("undisturbed_in_pairs")
    assert start(config, workdir, "--config.search.width=2").wait(timeout=300) == 0
    return workdir


def kill_until_it_ends(config, workdir, num_kills, width):
    clock = random.Random(0)
    kills = 0
    while kills < num_kills:
        process = start(config, workdir, f"--config.search.width={width}")
        try:
            # Starting takes seconds; most kills shall hit training and writing.
            code = process.wait(timeout=clock.uniform(2.0, 7.0))
            assert code == 0  # finished early: take an answer away, so that there is work again
            victims = sorted(workdir.glob("cells/*.json")) + sorted(workdir.glob("probes/*/*"))
            for victim in clock.sample(victims, k=len(victims) // 2):
                victim.unlink()
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    assert start(config, workdir, f"--config.search.width={width}").wait(timeout=300) == 0
    assert not list(workdir.glob("set_aside/*"))
    assert not list(workdir.glob("checkpoints/*"))


def test_kills_at_random_moments_change_nothing(config, undisturbed, tmp_path):
    """Some here, twenty of each kind in the slow test below."""
    kill_until_it_ends(config, tmp_path, num_kills=8, width=1)
    assert_same_science(tmp_path, undisturbed)


def test_kills_change_nothing_where_sizes_are_tried_in_pairs(
    config, undisturbed_in_pairs, tmp_path
):
    """Rounds of two sizes, one of them often moot, may be cut in the middle of their records."""
    kill_until_it_ends(config, tmp_path, num_kills=5, width=2)
    assert_same_science(tmp_path, undisturbed_in_pairs)


def test_sigterm_saves_and_exits_with_75_and_the_same_command_goes_on(
    config, undisturbed, tmp_path
):
    process = start(config, tmp_path)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("probes/*/*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == os.EX_TEMPFAIL == 75
    assert list(tmp_path.glob("checkpoints/*"))
    assert start(config, tmp_path).wait(timeout=300) == 0
    assert_same_science(tmp_path, undisturbed)


def test_a_finished_study_ends_at_once_and_rewrites_no_record(config, undisturbed):
    before = {path: path.stat().st_mtime_ns for path in undisturbed.glob("*/**/*.json")}
    assert start(config, undisturbed).wait(timeout=120) == 0
    assert {path: path.stat().st_mtime_ns for path in undisturbed.glob("*/**/*.json")} == before


LONGER = (
    "--config.data.max_length=(4,)",
    "--config.data.length_distribution=('fixed','uniform','short_to_long')",
    "--config.task.modulus=(2,3)",
    "--config.data.padded_symbols=(3,)",
    "--config.grid.seeds=(10,20,30,40)",
    "--config.optim.steps=2000",
    "--config.optim.threshold=0.01",
    "--config.out.log_seconds=0",
)


def steps_of_records(workdir):
    return sum(
        cell.lane_steps.useful + cell.lane_steps.cancelled for cell in Store(workdir).cells()
    )


@pytest.mark.slow
def test_twenty_sigterms_and_twenty_sigkills_of_one_study(config, tmp_path):
    """Nothing lost, nothing wrong, exit codes right; what is repeated is at most one chunk a kill,
    for a checkpoint is written after each."""
    undisturbed = tmp_path / "undisturbed"
    assert start(config, undisturbed, *LONGER).wait(timeout=900) == 0
    workdir = tmp_path / "disturbed"
    clock = random.Random(1)
    waiting = [signal.SIGTERM, signal.SIGKILL] * 20
    clock.shuffle(waiting)
    sent, codes, trained = [], [], 0
    while True:
        log = tmp_path / "log"
        with open(log, "w") as file:
            process = start(config, workdir, *LONGER, log=file)
            try:
                code = process.wait(timeout=clock.uniform(3.0, 9.0) if waiting else 900)
            except subprocess.TimeoutExpired:
                process.send_signal(waiting[-1])
                sent.append(waiting.pop())
                code = process.wait(timeout=120)
        codes.append(code)
        told = re.search(r"([\d,]+) training steps", log.read_text())
        words = [json.loads(path.read_text()) for path in workdir.glob("workers/*.json")]
        for path in workdir.glob("workers/*.json"):
            path.unlink()
        trained += int(told[1].replace(",", "")) if told else sum(word["steps"] for word in words)
        if code == 0:
            break
        assert code == (75 if sent[-1] == signal.SIGTERM else -signal.SIGKILL)
    assert_same_science(workdir, undisturbed)
    assert not list(workdir.glob("set_aside/*")) and not list(workdir.glob("checkpoints/*"))
    repeated = trained - steps_of_records(workdir)
    kills = sent.count(signal.SIGKILL)
    print(
        f"{sent.count(signal.SIGTERM)} SIGTERMs, {kills} SIGKILLs in {len(codes)} starts; "
        f"{trained:,} steps trained, {repeated:,} of them again"
    )
    assert len(sent) == 40, "the study was over too soon"
    assert repeated <= kills * 2 * 20  # lanes x eval_every
