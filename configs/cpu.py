"""The paper's design at small size, for two CPU cores: 162 cells in a good hour.

ib_bench run --config=configs/cpu.py --workdir=results/cpu
"""

from ib_bench.configs import base


def get_config():
    config = base.get_config()
    config.task.modulus = (2, 3, 5)
    config.data.max_length = (5, 8)
    config.data.padded_lengths = (5, 8)
    config.data.padded_symbols = (5,)  # one program serves m = 2, 3 and 5
    config.data.length_distribution = ("fixed", "uniform", "short_to_long")
    config.data.format = ("outcome", "cot", "acot")
    config.sweep = (
        {"model.name": "lstm", "model.hidden": 32},
        {"model.name": "dense_ssm", "model.hidden": 32},
        {"model.name": "transformer", "model.hidden": 32, "model.layers": 2, "model.heads": 2},
    )
    config.optim.steps = 3000
    config.optim.eval_every = 250
    # None of 200 solved runs would have been stopped by this (benchmarks/README.md).
    config.optim.stall = 500
    config.grid.learning_rates = (3e-3, 1e-3)
    config.grid.seeds = (10, 20)
    config.search.tolerance = 0.1
    # A failed probe costs four runs of 3,000 steps, a learned one about 1,000 steps.
    config.search.failure_cost = 12.0
    return config.lock()
