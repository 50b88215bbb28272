"""How many lanes a device carries with "vmap": more of them until throughput stops growing.

Tried once per program, device kind and JAX version, and kept beside the compiled programs.
"""

import dataclasses
import json
import logging
import time
from collections.abc import Callable

import jax
from etils import epath

from ib_bench.files import write_whole
from ib_bench.specs import LanesSpec, ProgramSpec
from ib_bench.training import processes
from ib_bench.training.devices import cache_folder, choose_devices
from ib_bench.training.lanes import Lanes, choose_strategy
from ib_bench.training.run import RunOperands

logger = logging.getLogger(__name__)

FACTOR = 4  # between the numbers of lanes that are tried
LEAST_GROWTH = 1.1  # so many times the throughput, or the fewer lanes are kept
_STEPS = 50  # of a trial


def calibrated(
    program: ProgramSpec, spec: LanesSpec, num_runs: int, example: RunOperands
) -> LanesSpec:
    """Returns `spec` with the lanes per device chosen, where that is left open and matters.

    Args:
      program: what will be trained.
      spec: lanes as configured; `per_device` = 0 leaves the number open.
      num_runs: runs that may ever be wanted at once.
      example: operands of any run; trials train on them.
    """
    if spec.per_device or choose_strategy(spec) != "vmap":
        return spec
    devices = choose_devices(spec.devices)
    name = f"{program.key} {devices[0].device_kind} jax {jax.__version__}"
    folder = cache_folder(spec.compile_cache)
    path = epath.Path(folder) / "lanes.json" if folder else None
    wanted = -(-num_runs // (len(devices) * processes.count()))
    found = processes.from_first(_known(path).get(name))
    if found is None or (found["lanes"] == found["most"] < wanted):  # room to grow since then
        short = dataclasses.replace(program, eval_every=_STEPS)

        def rate_of(lanes: int) -> float | None:
            trial = dataclasses.replace(spec, per_device=lanes)
            return processes.from_first(_rate(short, trial, lanes, example))

        found = {"lanes": best_number(rate_of, wanted), "most": wanted}
        if path:  # others may have added theirs meanwhile; what is lost is tried again
            write_whole(path, json.dumps(_known(path) | {name: found}, indent=1))
    logger.info("%s: %d lanes per device", program.label, min(found["lanes"], wanted))
    return dataclasses.replace(spec, per_device=min(found["lanes"], wanted))


def _known(path: epath.Path | None) -> dict[str, dict]:
    try:
        return json.loads(path.read_text()) if path and path.exists() else {}
    except (OSError, ValueError):
        return {}


def best_number(rate_of: Callable[[int], float | None], most: int) -> int:
    """Returns the number of lanes at which throughput stops growing.

    Args:
      rate_of: training steps per second, summed over so many lanes; None where they do not fit.
      most: no more than these.
    """
    best, best_rate = 1, 0.0
    lanes = 1
    while True:
        rate = rate_of(lanes)
        if rate is None or rate < LEAST_GROWTH * best_rate:
            return best
        best, best_rate = lanes, rate
        if lanes == most:
            return best
        lanes = min(most, FACTOR * lanes)


def _rate(program: ProgramSpec, spec: LanesSpec, lanes: int, example: RunOperands) -> float | None:
    num_devices = len(choose_devices(spec.devices)) * processes.count()
    population = Lanes(program, spec, lanes * num_devices, example)
    if population.per_device < lanes:
        return None
    runs = dict.fromkeys(range(population.num_lanes), example)
    population.load(runs)
    population.advance(runs)  # the first call also moves data and warms up
    started = time.perf_counter()
    population.advance(runs)
    return population.num_lanes * program.eval_every / (time.perf_counter() - started)
