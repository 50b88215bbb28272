"""A ladder of groups, from parity to S_5: how many runs of each model climb how far.

ib_bench run --config=configs/ladder.py --workdir=results/ladder
ib_bench run --config=configs/ladder.py:small --workdir=results/ladder_small

Aligned chain of thought, lengths 2..10, as many sequences as the budget visits once; only N_max is
tried and all of its runs go to their end, so the table shows how many of them solve it. A model
that climbs nothing here is not known to be unable to: the budget is part of the result.
Cost: 81 cells, 121 million lane-steps; :small 972,000, one to two hours on two cores.
"""

from ib_bench.configs import base
from ib_bench.configs.paper import check_size

GROUPS = (
    {"task.name": "modular_addition", "task.modulus": (2, 3, 5)},
    {"task.name": "permutation_composition", "task.k": (3, 4, 5)},
    {"task.name": "dihedral", "task.k": 4},
    {"task.name": "alternating_group", "task.k": (4, 5)},
)
MODELS = (
    {"model.name": ("transformer", "looped_transformer")},
    {"model.name": ("lstm", "gru", "rnn", "dense_ssm")},
    {"model.name": "mamba", "model.eigenvalues": "signed"},
    {"model.name": "delta_product", "model.eigenvalues": "signed", "model.householders": (2, 4)},
)


def get_config(size="paper"):
    check_size(size, "the whole")
    config = base.get_config()
    config.data.max_length = (10,)
    config.data.format = ("acot",)
    config.data.evaluation_lengths = (20,)
    config.grid.learning_rates = (1e-3, 1e-4, 1e-5)
    config.grid.seeds = (10, 20, 30, 40, 50)
    config.search.max_probes = 1
    config.search.confirm = True
    config.optim.steps = 100_000
    config.model.hidden = (128,)
    if size == "small":
        config.optim.steps = 3000
        config.optim.stall = 500
        config.model.hidden = (32,)
        config.model.heads = (2,)
        config.grid.learning_rates = (3e-3, 1e-3)
        config.grid.seeds = (10, 20)
    config.sweep = tuple(group | model for model in MODELS for group in GROUPS)
    return config.lock()
