"""Runs a study on a Ray cluster: one Ray Core task a unit, no actors. Opens no device itself.

Every worker needs the same ib_bench and the same workdir: a shared folder or gs://. Tasks meet in
the store alone, so whatever Ray runs twice comes to the same answer.
"""

import collections
import dataclasses
import logging
import os
import platform
import signal
import socket
import time
import uuid
from collections.abc import Callable

from etils import epath

from ib_bench.executors.cores import own_core
from ib_bench.executors.presence import Presence
from ib_bench.executors.units import Unit, make_units
from ib_bench.executors.worker import answer, is_answered, record_failure
from ib_bench.results import Store
from ib_bench.results.environment import describe_software
from ib_bench.search.scheduler import Preempted
from ib_bench.specs import CellSpec, StudySpec
from ib_bench.training.devices import keep_compiled, require_platform, use_every_core

logger = logging.getLogger(__name__)

RESOURCES = {"tpu": "TPU", "gpu": "GPU", "cpu": "CPU"}  # as Ray names them, the best first
# Fewer leave slots idle behind the longest unit, more start and compile more often. Simulated with
# measured cells (benchmarks/growth.py): 10,000 cells on 256 slots take 0.90 h with 3, 0.54 with 10.
UNITS_PER_SLOT = 10
_POLL_SECONDS = 2.0
_CONNECT_SECONDS = 10.0
_STOP_SECONDS = 120.0  # that tasks have for their checkpoints
_TASK = {
    # A fresh process for every task: a chip is not reused by one that has opened another.
    "max_calls": 1,
    # Lost machines, never -1: what kills its worker each time must come to an end.
    "max_retries": 3,
    "num_cpus": 1,
    "scheduling_strategy": "SPREAD",
}


def run_study(
    study: StudySpec,
    store: Store,
    tell: Callable[[int], None],
    should_stop: Callable[[], bool],
    address: str = "auto",
    wanted: str | None = None,
) -> list[CellSpec]:
    """Answers every cell of a study on a cluster; cells whose answer is stored are skipped.

    Args:
      study: which cells, and how they are searched and trained.
      store: where records are; all machines of the cluster reach it by the same name.
      tell: called every few seconds, with the number of tasks under way.
      should_stop: asked every few seconds.
      address: of the cluster's head; "auto" for the one of this machine, "local" to start one.
      wanted: the platform, "tpu", "gpu" or "cpu"; None for the best that the cluster has.

    Returns:
      The cells that failed, each with a record under `failures/`.

    Raises:
      ValueError: Ray is missing, or there is no cluster.
      Preempted: `should_stop` said so. Starting the study again goes on where it was.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray = _connect(address)
    try:
        resource = _choose_resource(ray.cluster_resources(), wanted)
        options = {"GPU": {"num_gpus": 1}, "TPU": {"resources": {"TPU": 1}}}.get(resource, {})
        task = ray.remote(**_TASK, **options)(_work)

        def num_slots() -> int:
            return int(ray.cluster_resources().get(resource, 0))

        logger.info("ray: %d slots of %s", num_slots(), resource)
        todo = tuple(cell for cell in study.cells if not is_answered(cell, study, store))
        most_cells = max(1, -(-len(todo) // (UNITS_PER_SLOT * max(1, num_slots()))))
        waiting = collections.deque(make_units(dataclasses.replace(study, cells=todo), most_cells))
        stop_file = store.workdir / "workers" / f"stop-{uuid.uuid4().hex[:8]}"
        software = describe_software()
        under_way, failed = {}, []
        try:
            while waiting or under_way:
                # Not all at once: a unit of another start of this study may be answered by then.
                while waiting and len(under_way) < max(2, 2 * num_slots()):
                    unit = waiting.popleft()
                    arguments = (study, unit, str(store.workdir), str(stop_file), software)
                    under_way[task.remote(*arguments, resource)] = unit
                ended, _ = ray.wait(list(under_way), timeout=_POLL_SECONDS)
                for reference in ended:
                    unit = under_way.pop(reference)
                    result = _result(ray, reference, unit, study, store)
                    if result is None:
                        waiting.append(unit)
                    else:
                        failed += result
                tell(len(under_way))
                if should_stop():
                    stop_file.parent.mkdir(parents=True, exist_ok=True)
                    stop_file.write_text("")
                    if under_way:
                        left = list(under_way)
                        ray.wait(left, num_returns=len(left), timeout=_STOP_SECONDS)
                    raise Preempted
        finally:
            stop_file.unlink(missing_ok=True)
        return failed
    finally:
        ray.shutdown()


def _connect(address: str):
    try:
        import ray
    except ImportError:
        raise ValueError("executor: ray is not installed; pip install 'ib_bench[ray]'") from None
    # Ray puts handlers of its own in the place of ours, which write checkpoints.
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        host, _, port = address.rpartition(":")
        if host and port.isdecimal():  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        reason = str(error).strip().splitlines()
        raise ValueError(
            f"ray_address: no Ray cluster at {address!r} ({reason[0] if reason else error!r}); "
            "start one with launch/ray/head.sh"
        ) from None
    return ray


def _choose_resource(resources: dict[str, float], wanted: str | None) -> str:
    if wanted:
        return RESOURCES[wanted]
    return next(name for name in RESOURCES.values() if resources.get(name) or name == "CPU")


def _result(ray, reference, unit: Unit, study: StudySpec, store: Store) -> list[CellSpec] | None:
    """Returns the cells of a task that failed, None where it was stopped and shall go on.

    Where a worker was lost once too often, its open cells have failed.
    """
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, OSError | _UnfitError):
            raise error.cause from None
        lost = error
    except ray.exceptions.RayError as error:
        lost = error
    open_cells = [cell for cell in unit.cells if not is_answered(cell, study, store)]
    return [record_failure(cell, lost, store) for cell in open_cells]


class _UnfitError(ValueError):
    """A worker cannot take part in the study; no other task would do better there."""


# --- in the worker's process ---


def _work(
    study: StudySpec, unit: Unit, workdir: str, stop_file: str, software: dict, resource: str
) -> list[CellSpec] | None:
    """Answers one unit; returns the cells that failed, None where the worker was told to stop."""
    store = Store(workdir)
    _check_fitness(store, software)
    if all(is_answered(cell, study, store) for cell in unit.cells):
        return []
    core = own_core() if resource == "CPU" else None
    use_every_core(1 if resource == "CPU" else 0)
    try:
        require_platform(resource.lower())
    except ValueError as error:
        raise _UnfitError(f"{platform.node()}: {error}") from None
    keep_compiled(study.lanes.compile_cache)
    _log_to_stderr()
    # A task has what Ray gave it, whatever the config would take on a machine of its own.
    study = dataclasses.replace(study, lanes=dataclasses.replace(study.lanes, devices=0))
    stop = _Stop(epath.Path(stop_file))
    with Presence(store, study.out.log_seconds) as presence:
        try:
            return answer(unit, study, store, presence.observe, stop.asked)
        except Preempted:
            return None
        finally:
            if core:
                core.close()


def _log_to_stderr() -> None:
    """Ray keeps what a worker says in the logs of its session."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    package = logging.getLogger("ib_bench")
    package.handlers, package.propagate = [handler], False
    package.setLevel(logging.INFO)


def _check_fitness(store: Store, software: dict[str, str]) -> None:
    if not (store.workdir / "studies").exists():
        raise _UnfitError(
            f"workdir: {str(store.workdir)!r} is not the same folder on all machines of the "
            "cluster; use a shared file system or gs://"
        )
    ours = describe_software()
    for name in ("ib_bench", "jax", "commit"):
        if ours[name] != software[name]:
            raise _UnfitError(
                f"executor: a worker has {name} {ours[name]}, the driver {software[name]}; "
                "install the same on all machines of the cluster"
            )


class _Stop:
    """Asks, not more often than every few seconds, whether the driver wants to stop."""

    def __init__(self, path):
        self._path = path
        self._asked = time.monotonic()
        self._terminated = []
        signal.signal(signal.SIGTERM, lambda number, frame: self._terminated.append(number))

    def asked(self) -> bool:
        if self._terminated:
            return True
        if time.monotonic() - self._asked < _POLL_SECONDS:
            return False
        self._asked = time.monotonic()
        return self._path.exists()
