"""One contestant in a process of its own: `python -m benchmarks.worker KIND [ROW [THREADS]]`.


Reads a number of seconds from a line of its input, trains for about so long, and answers with a
line: training steps per second, summed over its lanes ("peak": GFLOP/s). Idle in between, so that
contestants that take turns do not disturb each other.
"""

import json
import os
import sys
import time

from benchmarks.cells import make_study, with_one_validation_batch
from benchmarks.rows import BATCH_SIZE, MODULUS, Row


def make_lanes(row: Row, kind: str):
    """Returns advance(): trains ib_bench's lanes for a chunk and returns the steps done.

    "ours" is what `ib_bench run` uses; "vmap" is plain jit(vmap) of a few runs on one device.
    """
    from ib_bench.training.devices import use_every_core

    use_every_core(1 if kind == "vmap" else 0)
    lanes = {"strategy": "vmap", "per_device": 2 if _is_slow(row) else 4} if kind == "vmap" else {}
    return make_advance(row, **lanes)[0]


def make_advance(row: Row, **lanes):
    """Returns advance() as above for any `lanes` of a config, and how many lanes there are."""
    from ib_bench.training.lanes import Lanes
    from ib_bench.training.run import make_run_operands

    study = make_study(
        task__modulus=MODULUS,
        data__max_length=row.length,
        data__padded_lengths=(row.length,),
        data__format=row.format,
        model__name=row.model,
        model__hidden=row.hidden,
        model__layers=row.layers or 1,
        model__heads=row.heads or 1,
        optim__batch_size=BATCH_SIZE,
        optim__eval_every=_steps_of_chunk(row),
        **{f"lanes__{key}": value for key, value in lanes.items()},
    )
    (cell,) = study.cells
    cell_data = with_one_validation_batch(cell.make_data())

    def make_run(seed):
        return make_run_operands(cell_data, 2_000, 1e-3, seed)

    population = Lanes(cell.program, study.lanes, max(64, study.lanes.per_device), make_run(0))
    runs = {lane: make_run(lane) for lane in range(population.num_lanes)}
    population.load(runs)

    def advance():
        population.advance(runs)
        return len(runs) * cell.program.eval_every

    return advance, population.num_lanes


def _is_slow(row: Row) -> bool:
    """Whether a step takes a good part of a second, so that a chunk should be short."""
    return row.flops > 5e9


def _steps_of_chunk(row: Row) -> int:
    """The default of `optim.eval_every` where a chunk of so many steps takes under a second."""
    if _is_slow(row):
        return 10
    return 250 if row.flops < 1e8 else 50


def make_peak():
    """Returns advance(): multiplies matrices on every core and returns the work in GFLOP."""
    from ib_bench.training.devices import use_every_core

    use_every_core()
    import jax
    import jax.numpy as jnp

    size, times = 1024, 4
    devices = jax.local_devices()

    def multiply(a, b):
        return jax.lax.fori_loop(0, times, lambda _, a: a @ b * (1 / size), a)

    multiply = jax.pmap(multiply, devices=devices)
    ones = jnp.ones((len(devices), size, size))

    def advance():
        jax.block_until_ready(multiply(ones, ones))
        return len(devices) * times * 2 * size**3 / 1e9

    return advance


def make_pytorch(row: Row, num_threads: int):
    """Returns advance(): trains in PyTorch for ten steps."""
    from benchmarks.pytorch_models import make_step

    step = make_step(row, num_threads)

    def advance():
        for _ in range(10):
            step()
        return 10

    return advance


def main() -> None:
    kind = sys.argv[1]
    answers, sys.stdout = sys.stdout, sys.stderr
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if kind == "peak":
        advance = make_peak()
    else:
        row = Row(**json.loads(sys.argv[2]))
        advance = (
            make_pytorch(row, int(sys.argv[3])) if kind == "pytorch" else make_lanes(row, kind)
        )
    advance()
    for line in sys.stdin:
        seconds, steps, started = float(line), 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds:
            steps += advance()
        print(steps / elapsed, file=answers, flush=True)


if __name__ == "__main__":
    main()
