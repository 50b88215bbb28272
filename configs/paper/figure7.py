"""Figure 7: the sharing factor kappa of recurrent models in each format (claim 4.3).

ib_bench run --config=configs/paper/figure7.py --workdir=results/figure7
ib_bench run --config=configs/paper/figure7.py:small --workdir=results/figure7_small

Cost: 792 cells, 5.9 billion lane-steps, about 26 years on two cores or 63 days on an H200;
  :small: 60 cells, 1.4 million lane-steps, about 7 minutes on two cores (benchmarks/costs.py).
"""

from ib_bench.configs.paper import FORMATS, models, sharing, study


def get_config(size="paper"):
    config = study(size)
    config.data.format = FORMATS
    config.sweep = sharing(config, *models(size, "lstm", "dense_ssm"))
    return config.lock()
