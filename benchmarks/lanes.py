"""Training steps per second against the number of lanes on one device; for a GPU or TPU.

    .venv/bin/python -m benchmarks.lanes --peak_tflops=67 --json=lanes.json

Four times as many lanes are tried until throughput grows by less than a tenth, or memory ends. MFU
is the share of the device's peak that the matrix products take; give the peak of the precision in
use (float32 here).
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from absl import app, flags
from rich.console import Console

from benchmarks.layouts import LANES as LAYOUT
from benchmarks.output import describe_machine, print_rows, write_json
from benchmarks.rows import Row
from benchmarks.worker import make_advance

JSON = flags.DEFINE_string("json", None, "a file for the rows")
PEAK = flags.DEFINE_float("peak_tflops", None, "the device's float32 peak, for MFU")
SECONDS = flags.DEFINE_float("seconds", 3.0, "of measuring one number of lanes, at least")
BUDGET = flags.DEFINE_float("budget", 240.0, "seconds for all of it; what is left is not measured")

ROWS = (
    Row("lstm", 256, 5),
    Row("lstm", 768, 5),
    Row("dense_ssm", 256, 5),
    Row("transformer", 256, 5, "cot", layers=6, heads=4),
)
LANES = (1, 4, 16, 64, 256, 1024)


def measure(row: Row, deadline: float) -> Iterator[dict[str, Any]]:
    """Yields a result per number of lanes, until more of them give nothing."""
    before = 0.0
    for lanes in LANES:
        if time.monotonic() > deadline:
            return
        started = time.perf_counter()
        advance, num_lanes = make_advance(row, strategy="vmap", devices=1, per_device=lanes)
        if num_lanes < lanes:
            return  # they no longer fit
        advance()
        compiled = time.perf_counter() - started
        rates, measured = [], 0.0
        while measured < SECONDS.value:
            started = time.perf_counter()
            steps = advance()
            seconds = time.perf_counter() - started
            rates.append(steps / seconds)
            measured += seconds
        rate = float(np.median(rates))
        flops = rate * row.flops / 1e12
        yield {
            "name": row.name,
            "lanes": lanes,
            "ours": rate,
            "tflops": flops,
            "mfu": flops / PEAK.value if PEAK.value else None,
            "first_chunk_seconds": compiled,
        }
        if rate < 1.1 * before:
            return
        before = rate


def main(argv: Sequence[str]) -> None:
    del argv
    from ib_bench.training.devices import keep_compiled, use_every_core

    use_every_core(1)
    keep_compiled("auto")
    import jax

    console = Console(width=100)
    console.print(f"one {jax.devices()[0].device_kind}, JAX {jax.__version__}", highlight=False)
    rows = []
    start = time.monotonic()
    for number, row in enumerate(ROWS, 1):
        for result in measure(row, start + BUDGET.value * number / len(ROWS)):
            rows.append(result)
            if JSON.value:
                about = describe_machine(device=jax.devices()[0].device_kind)
                write_json(JSON.value, about, rows)
    print_rows(LAYOUT, rows, console)


if __name__ == "__main__":
    app.run(main)
