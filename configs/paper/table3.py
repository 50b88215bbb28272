"""Table 3 of the paper: N* of an LSTM of 256, outcome supervision, at the paper's full budget.

ib_bench run --config=configs/paper/table3.py --workdir=results/table3

Cost: 48 cells of about two failed probes, each 15 runs x 250,000 steps: 360 million lane-steps.
On two cores at about 120 steps/s that is a month; restrict and cut it there:

ib_bench run --config=configs/paper/table3.py --workdir=results/table3_small \
  --config.task.modulus=2 --config.data.max_length=5 --config.optim.steps=5000
"""

from ib_bench.configs import base


def get_config():
    config = base.get_config()
    config.task.modulus = (2, 3, 5, 10)
    config.data.max_length = (5, 10, 20, 30)
    config.data.length_distribution = ("fixed", "uniform", "short_to_long")
    config.data.format = ("outcome",)
    config.model.name = ("lstm",)
    config.model.hidden = (256,)
    return config.lock()
