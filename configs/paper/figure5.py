"""Figure 5: outcome supervision, short_to_long against uniform, recurrent models (claim 3.5).

ib_bench run --config=configs/paper/figure5.py --workdir=results/figure5
ib_bench run --config=configs/paper/figure5.py:small --workdir=results/figure5_small

Cost: 96 cells, 720 million lane-steps, about 1.5 years on two cores or 3.6 days on an H200;
  :small: 8 cells, 192,000 lane-steps, about 2 minutes on two cores (benchmarks/costs.py).
"""

from ib_bench.configs.paper import models, study


def get_config(size="paper"):
    config = study(size)
    config.data.format = ("outcome",)
    config.data.length_distribution = ("uniform", "short_to_long")
    config.sweep = models(size, "lstm", "lstm of 256", "dense_ssm")
    return config.lock()
