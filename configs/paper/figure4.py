"""Figure 4: outcome supervision, transformer against recurrent models (claim 3.3).

ib_bench run --config=configs/paper/figure4.py --workdir=results/figure4
ib_bench run --config=configs/paper/figure4.py:small --workdir=results/figure4_small

Cost: 48 cells, 360 million lane-steps, about 1.9 years on two cores or 4.7 days on an H200;
  :small: 6 cells, 144,000 lane-steps, about 2 minutes on two cores (benchmarks/costs.py).
"""

from ib_bench.configs.paper import models, study


def get_config(size="paper"):
    config = study(size)
    config.data.format = ("outcome",)
    config.data.length_distribution = ("uniform",)
    config.sweep = models(size, "transformer", "lstm", "dense_ssm")
    return config.lock()
