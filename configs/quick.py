"""Three small models on parity and m = 3, L = 5: a first table in minutes.

ib_bench run --config=configs/quick.py --workdir=results/quick
"""

from ib_bench.configs import base


def get_config():
    config = base.get_config()
    config.task.modulus = (2, 3)
    config.data.max_length = (5,)
    config.data.length_distribution = ("uniform",)
    config.data.padded_symbols = (3,)
    config.sweep = (
        {"model.name": "lstm", "model.hidden": 32, "data.format": ("outcome", "acot")},
        {"model.name": "dense_ssm", "model.hidden": 32, "data.format": ("outcome", "acot")},
        {
            "model.name": "transformer",
            "model.hidden": 32,
            "model.layers": 2,
            "model.heads": 2,
            "data.format": ("outcome", "cot"),
        },
    )
    config.optim.steps = 1500
    config.optim.eval_every = 100
    # None of 200 solved runs would have been stopped by this (benchmarks/README.md).
    config.optim.stall = 500
    config.grid.learning_rates = (3e-3, 1e-3)
    config.grid.seeds = (10, 20)
    # A failed probe here costs four runs of 1,500 steps, a learned one a few hundred steps.
    config.search.failure_cost = 10.0
    return config.lock()
