"""The bilinear hierarchy (arXiv 2505.21749): which structure of A(x) tracks what, and how far.

ib_bench run --config=configs/hierarchy.py --workdir=results/hierarchy
ib_bench run --config=configs/hierarchy.py:small --workdir=results/hierarchy_small

Trained on lengths 2..10 with as many sequences as the budget visits once, evaluated at 20 and 500;
only N_max is tried, and all of its runs go to their end. That paper's size: width 256, 100,000
steps of 64, the best of three learning rates. :small is width 32 and 3,000 steps.
Cost: 60 cells, 18 million lane-steps; :small 360,000, about half an hour on two cores.
"""

from ib_bench.configs import base
from ib_bench.configs.paper import check_size

TASKS = (
    {"task.name": "modular_addition", "task.modulus": (2, 3, 5)},
    {"task.name": "permutation_composition", "task.k": 3},
    {"task.name": "random_machine", "task.states": 5, "task.symbols": 5},
)
STRUCTURES = ("full", "cp", "block", "rotation", "diagonal", "positive_diagonal")
OTHERS = ("lstm", "mamba", "transformer")


def get_config(size="paper"):
    check_size(size)
    config = base.get_config()
    config.data.max_length = (10,)
    config.data.evaluation_lengths = (20, 500)
    config.model.block = (2,)
    config.grid.learning_rates = (1e-3, 1e-4, 1e-5)
    config.grid.seeds = (10,)
    config.search.max_probes = 1
    config.search.confirm = True
    config.optim.steps = 100_000
    config.model.hidden = (256,)
    config.model.rank = (256,)
    config.model.heads = (4,)
    if size == "small":
        config.data.padded_symbols = (6,)  # one program serves all tasks
        config.optim.steps = 3000
        config.model.hidden = (32,)
        config.model.rank = (32,)
        config.model.heads = (2,)
        config.grid.learning_rates = (1e-2, 3e-3)
    family = {"model.name": "bilinear", "model.structure": STRUCTURES}
    unit = {
        "model.name": "bilinear",
        "model.structure": ("full", "block"),
        "model.unit_state": True,
    }
    additive = {"model.name": "bilinear", "model.structure": "full", "model.additive": True}
    others = {"model.name": OTHERS}
    config.sweep = tuple(
        task | model for model in (family, unit, additive, others) for task in TASKS
    )
    return config.lock()
