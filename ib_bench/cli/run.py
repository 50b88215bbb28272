"""ib_bench run: answers every cell of a study, or goes on where an earlier start left off."""

import dataclasses
import logging
import math
import os
import re
import signal
import time

from absl import flags

from ib_bench.cli.study import prepare_devices, read_study

WORKDIR = flags.DEFINE_string("workdir", None, "where results are written; made where missing")
ONLY = flags.DEFINE_string("only", None, "only cells whose label matches this regular expression")
SHARD = flags.DEFINE_string("shard", "0/1", "i/n: only share i of n of the cells, 0 <= i < n")
PLATFORM = flags.DEFINE_enum(
    "platform", None, ["cpu", "gpu", "tpu"], "end at once where JAX finds another platform"
)
EXECUTOR = flags.DEFINE_enum(
    "executor", "local", ["local", "ray"], "in this process, or on the machines of a Ray cluster"
)
RAY_ADDRESS = flags.DEFINE_string(
    "ray_address", "auto", "of the cluster; auto: of this machine, local: start one here"
)
MULTIHOST = flags.DEFINE_bool(
    "multihost", False, "one of several processes that run one program in step, as on a TPU slice"
)
COORDINATOR = flags.DEFINE_string("coordinator_address", None, "multihost: host:port of process 0")
NUM_PROCESSES = flags.DEFINE_integer("num_processes", None, "multihost: how many there are")
PROCESS_ID = flags.DEFINE_integer("process_id", None, "multihost: which this is, from 0")
PROFILE = flags.DEFINE_string(
    "profile_dir", "", "where the second chunk of each program is profiled to, with a breakdown"
)

EX_FAILED = 1  # some cells raised; the others are answered
EX_TEMPFAIL = 75  # sysexits.h: try again later
_MOST_SECONDS = 10.0  # between two looks at how far a cluster is

logger = logging.getLogger("ib_bench.run")


def main(argv: list[str]) -> int:
    """Runs a study.

    Returns:
      0; 1 where cells failed; 75 where it was asked to stop and should be started again.
    """
    if len(argv) > 1:
        raise ValueError(f"run: unexpected argument {argv[1]!r}; options are written --name=value")
    if not WORKDIR.value:
        raise ValueError("workdir: missing; name a folder, for example --workdir=results/quick")

    if MULTIHOST.value and EXECUTOR.value != "local":
        raise ValueError("multihost: not with --executor=ray, whose tasks are apart; drop one")

    from ib_bench.cli.progress import Reporter
    from ib_bench.executors.worker import is_answered
    from ib_bench.search.scheduler import Preempted
    from ib_bench.training import processes

    prepare_devices(on_workers=EXECUTOR.value == "ray")
    study = read_study()
    if ONLY.value:
        study = _restricted(study, ONLY.value)
    everything, study = study, _shard_of(study, SHARD.value)
    start, run_study = {"local": (_start, _run), "ray": (_start_ray, _run_on_ray)}[EXECUTOR.value]
    failed, code = [], 0
    with Reporter(study.out.log_seconds) as reporter:
        store, is_first = start(everything)
        stop = _stop_on_signals()  # after `start`: with --multihost JAX sets a handler of its own

        def num_answered():
            return sum(is_answered(cell, study, store) for cell in study.cells)

        reporter.begin(len(study.cells), num_answered())
        try:
            failed = run_study(study, store, reporter, stop)
            code = EX_FAILED if failed else 0
        except Preempted:
            code = EX_TEMPFAIL
        reporter.end(num_answered())
    if is_first:
        _show(study, reporter, failed)
    if code == EX_TEMPFAIL:
        print("stopped when asked to; the same command goes on from here")
    if MULTIHOST.value:
        processes.leave()
    return code


# --- in this process ---


def _start(study) -> tuple:
    """Opens devices and the store; returns the store and whether this is the process that tells."""
    from ib_bench.executors.multihost import StoreInStep
    from ib_bench.training import processes
    from ib_bench.training.devices import keep_compiled, require_platform

    if MULTIHOST.value:
        processes.initialize(COORDINATOR.value, NUM_PROCESSES.value, PROCESS_ID.value)
    require_platform(PLATFORM.value)
    # What is profiled is compiled anew: a kept program holds the scopes of older code.
    keep_compiled("" if PROFILE.value else study.lanes.compile_cache)
    store = StoreInStep(WORKDIR.value)
    is_first = processes.index() == 0
    store.prepare()
    if is_first:
        _announce(study, store)
    return store, is_first


def _run(study, store, reporter, stop) -> list:
    from ib_bench.executors import local
    from ib_bench.executors.presence import Presence
    from ib_bench.results.environment import describe_software
    from ib_bench.training import processes
    from ib_bench.training.devices import describe_devices

    software = describe_software()
    logger.info(
        "ib_bench %s, commit %s · python %s · jax %s · %s · %s",
        software["ib_bench"],
        software["commit"][:7],
        software["python"],
        software["jax"],
        describe_devices(),
        store.workdir,
    )
    if processes.index():
        return local.run_study(study, store, lambda chunk: None, stop)
    with Presence(store, study.out.log_seconds) as presence:

        def observe(chunk):
            presence.observe(chunk)
            reporter.observe(chunk)

        return local.run_study(study, store, observe, stop, PROFILE.value)


# --- on a Ray cluster ---


def _start_ray(study) -> tuple:
    from ib_bench.results import Store

    store = Store(WORKDIR.value if "://" in WORKDIR.value else os.path.abspath(WORKDIR.value))
    store.prepare()
    _announce(study, store)
    return store, True


def _run_on_ray(study, store, reporter, stop) -> list:
    from ib_bench.cli.progress import duration
    from ib_bench.executors import ray
    from ib_bench.results.progress import read_progress

    said = -math.inf

    def tell(num_tasks):
        nonlocal said
        if time.monotonic() - said < min(study.out.log_seconds, _MOST_SECONDS):
            return  # in a bucket, looking costs requests
        said = time.monotonic()
        progress = read_progress(store)
        left = progress.seconds_left
        reporter.tell(
            f"{num_tasks} tasks · {len(progress.workers)} workers · "
            f"{progress.steps_per_second:,.0f} steps/s · "
            f"{'?' if left is None else duration(left)} left",
            done=progress.done,
        )

    return ray.run_study(study, store, tell, stop, RAY_ADDRESS.value, PLATFORM.value)


# --- both ---


def _announce(study, store) -> None:
    from ib_bench.results.progress import announce_study

    announce_study(store, {cell.key: cell.label for cell in study.cells})


def _show(study, reporter, failed) -> None:
    from rich.console import Console

    from ib_bench.report import nstar_table, print_table, write_report
    from ib_bench.results import Store

    console, store = Console(), Store(WORKDIR.value)
    records = [record for cell in study.cells if (record := store.cell(cell.key))]
    if records:
        print_table(nstar_table(records), console)
        for path in write_report(store, store.workdir):
            console.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
        # Figures and the page take seconds, and may be made while a study runs.
        report = f"ib_bench report --workdir={WORKDIR.value}"
        console.print(f"all of it as a page: {report}", markup=False, highlight=False)
    if failed:
        records = {record.cell_key: record for record in store.failures()}
        for cell in failed[:5]:
            error = records[cell.key].error if cell.key in records else "?"
            console.print(f"failed: {cell.label}: {error}", markup=False, highlight=False)
        told = f"{len(failed)} cells failed, see {store.workdir / 'failures'}"
        console.print(f"{told}; the same command tries them again", markup=False, highlight=False)
    console.print(reporter.summary(), markup=False, highlight=False, soft_wrap=True)


def _restricted(study, pattern: str):
    try:
        cells = tuple(cell for cell in study.cells if re.search(pattern, cell.label))
    except re.error as error:
        raise ValueError(f"only: {pattern!r} is no regular expression: {error}") from None
    if not cells:
        raise ValueError(
            f"only: {pattern!r} matches none of {len(study.cells)} cells; "
            f"labels look like {study.cells[0].label!r}"
        )
    return dataclasses.replace(study, cells=cells)


def _shard_of(study, text: str):
    from ib_bench.executors.units import cells_of_shard, parse_shard

    return dataclasses.replace(study, cells=cells_of_shard(study, *parse_shard(text)))


def _stop_on_signals():
    """Returns should_stop(): True once SIGTERM or SIGINT came. A second SIGINT stops at once."""
    received = []

    def remember(number, frame):
        received.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, remember)
    return lambda: bool(received)
