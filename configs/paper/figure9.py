"""Figure 9: kappa against accuracy at 2L (claim 4.5), every model and format.

ib_bench run --config=configs/paper/figure9.py --workdir=results/figure9
ib_bench run --config=configs/paper/figure9.py:small --workdir=results/figure9_small

Cost: 1188 cells, 8.9 billion lane-steps, about 75 years on two cores or 185 days on an H200;
  :small: 90 cells, 2.2 million lane-steps, about 39 minutes on two cores (benchmarks/costs.py).
"""

from ib_bench.configs.paper import FORMATS, models, sharing, study


def get_config(size="paper"):
    config = study(size)
    config.data.format = FORMATS
    config.sweep = sharing(config, *models(size, "transformer", "lstm", "dense_ssm"))
    return config.lock()
