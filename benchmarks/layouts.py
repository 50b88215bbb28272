"""The tables of all benchmarks, by the name of their JSON file and of their place in README.md."""

from benchmarks.output import Column, Layout

# Of `ib_bench.training.profiling`, which needs JAX; tables do not.
_KINDS = ("matrix products", "element-wise", "optimizer", "data making", "evaluation", "host")
_RATE, _TIMES, _SHARE = "{:,.0f}", "{:.2f}x", "{:.0%}"

THROUGHPUT = Layout(
    "training steps per second, batch 64, all cores",
    (
        Column("model, positions", "name"),
        Column("ib_bench", "ours", "{:,.1f}"),
        Column("PyTorch", "pytorch", "{:,.1f}"),
        Column("its best form", "pytorch_form"),
        Column("jit(vmap)", "vmap", "{:,.1f}"),
        Column("ib_bench / PyTorch", "ratio", _TIMES),
        Column("ib_bench / vmap", "ratio_vmap", _TIMES),
        Column("GFLOP/s", "gflops", "{:.1f}"),
        Column("of peak", "share_of_peak", _SHARE),
        Column("spread", "spread", _SHARE),
    ),
)
TIME_TO_NSTAR = Layout(
    "wall seconds to N*: parity, LSTM 64, outcome",
    (
        Column("cell, search", "name"),
        Column("ib_bench", "ours", "{:.1f}"),
        Column("PyTorch loop", "pytorch", "{:.1f}"),
        Column("ratio", "ratio", "{:.1f}x"),
        Column("spread", "spread", _SHARE),
        Column("training steps", "steps", "{:,}"),
        Column("of the loop", "pytorch_steps", "{:,}"),
        Column("N*", "nstar"),
        Column("of the loop", "pytorch_nstar"),
    ),
)
POLICIES = Layout(
    "400 synthetic cells, to 5 %, a failed probe costs 50 learned ones",
    (
        Column("policy", "name"),
        Column("failed probes", "failed", "{:.2f}"),
        Column("learned probes", "learned", "{:.2f}"),
        Column("cost", "cost", "{:.1f}"),
        Column("failed, of paper's", "failed_share", _SHARE),
        Column("cost, of paper's", "cost_share", _SHARE),
    ),
)
SMALL_SETS = Layout(
    "training steps per second of one run on one core, batch 64",
    (
        Column("model, program", "name"),
        Column("compile s", "compile_seconds", "{:.1f}"),
        *(Column(f"N = {size:,}", str(size), _RATE) for size in (12, 24, 50, 1000)),
    ),
)
BREAKDOWN = Layout(
    "where the time of a chunk goes",
    (
        Column("model", "name"),
        *(Column(kind, kind, _SHARE) for kind in _KINDS),
    ),
)
STALL = Layout(
    "a run stalls: training loss below 1e-4, best validation loss so many steps old",
    (
        Column("patience", "name", "{:,}"),
        Column("solved runs", "solved"),
        Column("stopped before", "lost"),
        Column("share", "lost_share", "{:.1%}"),
        Column("steps of failed runs", "kept_share", _SHARE),
    ),
)
STARTS = Layout(
    "compile seconds of configs/quick.py, summed over its programs",
    (
        Column("start", "name"),
        Column("programs", "programs"),
        Column("compile s", "compile_seconds", "{:.1f}"),
        Column("share", "share", _SHARE),
    ),
)
PRODUCTS = Layout(
    "GFLOP/s of the products of a linear map, float32, one core",
    (
        Column("x by W", "name"),
        *(
            column
            for title, key in (("x W", "forward"), ("g W'", "rows"), ("x' g", "weights"))
            for column in (
                Column(f"{title}, XLA", key, _RATE),
                Column("PyTorch", f"{key}_pytorch", _RATE),
            )
        ),
    ),
)
LANES = Layout(
    "training steps per second against lanes on one device, batch 64",
    (
        Column("model, positions", "name"),
        Column("lanes", "lanes"),
        Column("steps/s", "ours", _RATE),
        Column("TFLOP/s", "tflops", "{:.2f}"),
        Column("MFU", "mfu", "{:.1%}"),
        Column("compile and first chunk, s", "first_chunk_seconds", _RATE),
    ),
)

EXECUTORS = Layout(
    "wall seconds of a study of tiny cells",
    (
        Column("way", "name"),
        Column("cells", "cells"),
        Column("s", "seconds", "{:.1f}"),
        Column("ratio", "ratio", _TIMES),
        Column("s more per cell", "per_cell", "{:.3f}"),
        Column("useful lane-steps/s", "steps_per_second", _RATE),
        Column("spread", "spread", _SHARE),
    ),
)
GROWTH = Layout(
    "simulated: cells of configs/cpu.py on cores like those measured",
    (
        Column("study", "name"),
        Column("units", "units", "{:,}"),
        Column("wall hours", "wall_hours", "{:.2f}"),
        Column("slot hours", "slot_hours", "{:.1f}"),
        Column("starts and compiling", "overhead", _SHARE),
        Column("slots at work", "efficiency", _SHARE),
    ),
)
LAYOUTS = {
    "throughput": THROUGHPUT,
    "products": PRODUCTS,
    "time_to_nstar": TIME_TO_NSTAR,
    "policies": POLICIES,
    "small_sets": SMALL_SETS,
    "breakdown": BREAKDOWN,
    "starts": STARTS,
    "stall": STALL,
    "lanes": LANES,
    "executors": EXECUTORS,
    "growth": GROWTH,
}
