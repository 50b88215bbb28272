"""What steps of fewer rows give where the data set is small: steps/s by N, with them and without.

    .venv/bin/python -m benchmarks.small_sets

One device, one run, both programs in turns; medians. Compile seconds of both, from an empty cache.
"""

import statistics
import time
from collections.abc import Sequence
from typing import Any

from absl import app, flags
from rich.console import Console

from benchmarks.cells import make_study, with_one_validation_batch
from benchmarks.layouts import SMALL_SETS
from benchmarks.output import describe_machine, print_rows, write_json

JSON = flags.DEFINE_string("json", None, "a file for the rows")
ROUNDS = flags.DEFINE_integer("rounds", 5, "turns of each program")

MODELS = (  # model, hidden, format
    ("lstm", 64, "outcome"),
    ("lstm", 256, "outcome"),
    ("dense_ssm", 32, "outcome"),
    ("transformer", 32, "cot"),
)
SIZES = (12, 24, 50, 1000)
WHOLE_SIZES = (16, 32)  # as lanes choose them on a CPU
EVAL_EVERY = 50


def measure(model: str, hidden: int, format_name: str) -> list[dict[str, Any]]:
    """Returns a row of full batches and one of few rows: compile seconds, steps/s per size."""
    import jax

    from ib_bench.training.run import make_run, make_run_operands

    (cell,) = make_study(
        task__modulus=5,
        model__name=model,
        model__hidden=hidden,
        model__heads=2,
        data__format=format_name,
        optim__eval_every=EVAL_EVERY,
    ).cells
    cell_data = with_one_validation_batch(cell.make_data())

    def run_of(size):
        return make_run_operands(cell_data, size, 1e-3, 10)

    programs, compile_seconds = {}, {}
    for name, whole_sizes in (("full batches", ()), ("few rows", WHOLE_SIZES)):
        run = make_run(cell.program, whole_sizes)
        state = jax.jit(run.init)(run_of(1))
        started = time.perf_counter()
        programs[name] = jax.jit(run.advance).lower(state, run_of(1)).compile()
        compile_seconds[name] = time.perf_counter() - started
    rates = {(name, size): [] for name in programs for size in SIZES}
    for _ in range(ROUNDS.value):
        for name, advance in programs.items():
            for size in SIZES:
                started = time.perf_counter()
                jax.block_until_ready(advance(state, run_of(size)))
                rates[name, size].append(EVAL_EVERY / (time.perf_counter() - started))
    return [
        {
            "name": f"{model} {hidden} {format_name}, {name}",
            "compile_seconds": compile_seconds[name],
            **{str(size): statistics.median(rates[name, size]) for size in SIZES},
        }
        for name in programs
    ]


def main(argv: Sequence[str]) -> None:
    del argv
    from ib_bench.training.devices import use_every_core

    use_every_core(1)
    rows = [row for model in MODELS for row in measure(*model)]
    print_rows(SMALL_SETS, rows, Console(width=110))
    if JSON.value:
        write_json(JSON.value, describe_machine(), rows)


if __name__ == "__main__":
    app.run(main)
