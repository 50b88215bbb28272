"""Training steps per second against the number of lanes on one device. No flags."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.rows import Row
from benchmarks.worker import make_advance

ROWS = (
    Row("lstm", 256, 5),
    Row("lstm", 768, 5),
    Row("dense_ssm", 256, 5),
    Row("transformer", 256, 5, "cot", layers=6, heads=4),
)
LANES = (1, 4, 16, 64, 256, 1024)
LEAST_GROWTH = 1.1  # so many times the throughput, or no more lanes are tried


def measure_rows(
    rows: tuple[Row, ...], seconds: float, budget: float, peak_tflops: float | None
) -> Iterator[dict[str, Any]]:
    """Yields a result per row and number of lanes; each row has its share of the time.

    Args:
      rows: what is measured.
      seconds: of measuring one number of lanes, at least.
      budget: seconds for all of it; what is left is not measured.
      peak_tflops: the device's peak at float32, for MFU.
    """
    start = time.monotonic()
    for number, row in enumerate(rows, 1):
        deadline = start + budget * number / len(rows)
        for result in measure(row, seconds, lambda deadline=deadline: time.monotonic() > deadline):
            mfu = result["tflops"] / peak_tflops if peak_tflops else None
            yield {**result, "mfu": mfu}


def measure(row: Row, seconds: float, is_late: Callable[[], bool]) -> Iterator[dict[str, Any]]:
    """Yields a result per number of lanes, until more of them give nothing or no longer fit."""
    before = 0.0
    for lanes in LANES:
        if is_late():
            return
        started = time.perf_counter()
        advance, num_lanes = make_advance(row, strategy="vmap", devices=1, per_device=lanes)
        if num_lanes < lanes:
            return
        advance()
        first_chunk_seconds = time.perf_counter() - started
        rates, measured = [], 0.0
        while measured < seconds:
            started = time.perf_counter()
            steps = advance()
            elapsed = time.perf_counter() - started
            rates.append(steps / elapsed)
            measured += elapsed
        rate = float(np.median(rates))
        yield {
            "name": row.name,
            "lanes": lanes,
            "ours": rate,
            "tflops": rate * row.flops / 1e12,
            "first_chunk_seconds": first_chunk_seconds,
        }
        if rate < LEAST_GROWTH * before:
            return
        before = rate
