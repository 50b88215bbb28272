"""The matrix products of a training step, alone on one core: XLA's against PyTorch's.

    .venv/bin/python -m benchmarks.products

For each linear map of the transformers and of the LSTM: x W, and of its gradients g W' and x' g, in
the order that differentiation gives. Both take turns; medians count.
"""

import importlib.metadata
import importlib.util
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from absl import app, flags
from rich.console import Console

from benchmarks.layouts import PRODUCTS
from benchmarks.output import describe_machine, print_rows, write_json

JSON = flags.DEFINE_string("json", None, "a file for the rows")
ROUNDS = flags.DEFINE_integer("rounds", 7, "turns of each contestant")

# (rows, columns of x, columns of g): what a step multiplies, batch 64.
SHAPES = (
    *((640, 256, out) for out in (256, 768, 1024)),  # a transformer of 256 at T = 10
    (640, 1024, 256),
    *((640, 64, out) for out in (64, 192, 256)),  # a transformer of 64 at T = 10
    (640, 256, 64),
    *((64, hidden, 4 * hidden) for hidden in (64, 256)),  # a step of an LSTM
)
FLOPS = 1e9  # of one turn, at least


def contestants(shape: tuple[int, int, int], with_pytorch: bool) -> dict[str, Callable]:
    """Returns, for each product and each library, multiply(times)."""
    draw = np.random.RandomState(0)
    N, H, G = shape
    x, w, g = (draw.randn(*size).astype(np.float32) for size in ((N, H), (H, G), (N, G)))

    made = {}
    products = {
        "forward": (lambda x, w: x @ w, x, w),
        "rows": (lambda g, w: g @ w.T, g, w),
        "weights": (lambda x, g: x.T @ g, x, g),
    }
    for name, (product, left, right) in products.items():
        made[name] = in_xla(product, left, right)
        if with_pytorch:
            made[f"{name}_pytorch"] = in_pytorch(product, left, right)
    return made


def in_xla(product: Callable, left: np.ndarray, right: np.ndarray) -> Callable:
    """Returns multiply(times) under one `jax.jit`."""
    import jax

    @jax.jit
    def multiply(times, left, right):
        def body(_, made):  # reads the last product, or XLA would multiply once
            return product(left.at[0, 0].add(1e-30 * made[0, 0]), right)

        return jax.lax.fori_loop(0, times, body, product(left, right))

    left, right = jax.device_put((left, right))
    return lambda times: jax.block_until_ready(multiply(times, left, right))


def in_pytorch(product: Callable, left: np.ndarray, right: np.ndarray) -> Callable:
    """Returns multiply(times) on one thread."""
    import torch

    torch.set_num_threads(1)
    left, right = torch.tensor(left), torch.tensor(right)

    def multiply(times):
        for _ in range(times):
            product(left, right)

    return multiply


def measure(shape: tuple[int, int, int], rounds: int, with_pytorch: bool) -> dict[str, Any]:
    """Returns GFLOP/s of every product of one linear map."""
    flops = 2 * np.prod(shape)
    times = int(-(-FLOPS // flops))
    multiply = contestants(shape, with_pytorch)
    rates = {name: [] for name in multiply}
    for turn in range(1 + rounds):
        for name, run in multiply.items():
            started = time.perf_counter()
            run(times)
            if turn:  # the first compiles
                rates[name].append(times * flops / (time.perf_counter() - started) / 1e9)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    N, H, G = shape
    return {"name": f"{N:,} x {H:,} by {H:,} x {G:,}", **medians}


def main(argv: Sequence[str]) -> None:
    del argv
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    from ib_bench.training.devices import use_every_core

    use_every_core()
    with_pytorch = importlib.util.find_spec("torch") is not None
    torch = importlib.metadata.version("torch") if with_pytorch else None
    rows = [measure(shape, ROUNDS.value, with_pytorch) for shape in SHAPES]
    print_rows(PRODUCTS, rows, Console(width=120))
    if JSON.value:
        write_json(JSON.value, describe_machine(torch=torch), rows)


if __name__ == "__main__":
    app.run(main)
