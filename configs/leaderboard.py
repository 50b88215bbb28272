"""The leaderboard: the same questions to every model, so that N* stand in one table.

ib_bench run --config=configs/leaderboard.py:cpu --workdir=results/my_model \\
    --config.model.name=my_file:make_model
ib_bench run --config=configs/leaderboard.py --workdir=results/my_model_paper
ib_bench run --config=configs/leaderboard.py:cpu --workdir=results/lstm

The model is yours, with all of its keys; everything else belongs to the track.

cpu: 16 cells of L = 5 and 10 with 4,000 steps, two learning rates and two seeds, N* to 25 %: at
  most 20 minutes on two cores. A statement about this budget alone.
paper: 78 cells of the paper's size, 250,000 steps, three learning rates, five seeds, N* to 5 %:
  for an accelerator. About 0.6 billion lane-steps, as its cells cost in the paper's other studies.
Both have what the sharing factor needs (modular addition, m = 5, lengths 2 to 5 in the cpu track
and 2 to 10 in the paper track) and evaluate at twice the training length.
"""

from ib_bench.configs import base

TRACKS = ("cpu", "paper")
TASKS = (
    {"task.name": "modular_addition", "task.modulus": (2, 5)},
    {"task.name": "permutation_composition", "task.k": 3},
)
LARGE_TASKS = (
    {"task.name": "modular_addition", "task.modulus": (2, 5, 10)},
    {"task.name": "permutation_composition", "task.k": (3, 5)},
)


def get_config(track="paper"):
    if track not in TRACKS:
        raise ValueError(f"config: track {track!r} is unknown; write :cpu or :paper")
    config = base.get_config()
    config.data.length_distribution = ("uniform",)
    config.data.format = ("outcome", "acot")
    parts = {"task.name": "modular_addition", "task.modulus": 5}
    parts |= {"data.length_distribution": "fixed"}
    if track == "cpu":
        config.data.padded_lengths = (5, 10)
        config.data.padded_symbols = (6,)  # one program serves all tasks
        config.optim.steps = 4000
        config.optim.eval_every = 100
        config.optim.stall = 500
        config.grid.learning_rates = (1e-2, 3e-3)
        config.grid.seeds = (10, 20)
        config.search.tolerance = 0.25
        config.search.failure_cost = 12.0
        config.model.hidden = (32,)
        config.model.heads = (2,)
        short = {"data.max_length": 5, "data.evaluation_lengths": (10,)}
        parity = {"task.name": "modular_addition", "task.modulus": 2}
        long = {"data.max_length": 10, "data.evaluation_lengths": (20,)}
        config.sweep = (
            *(task | short for task in TASKS),
            parity | long,
            parts | short | {"data.max_length": (2, 3, 4, 5)},
        )
    else:
        config.data.evaluation_multiples = (2,)
        lengths = {"data.length_distribution": ("uniform", "short_to_long")}
        config.sweep = (
            *(task | lengths | {"data.max_length": (5, 10, 20)} for task in LARGE_TASKS),
            *({"data.max_length": n} | parts for n in (5, 10)),
            parts | {"data.max_length": (2, 3, 4, 6, 7, 8, 9), "data.evaluation_multiples": ()},
        )
    return config.lock()
