"""Figure 6: the sharing factor kappa of the transformer in each format (claims 4.1 and 4.2).

ib_bench run --config=configs/paper/figure6.py --workdir=results/figure6
ib_bench run --config=configs/paper/figure6.py:small --workdir=results/figure6_small

Cost: 396 cells, 3.0 billion lane-steps, about 50 years on two cores or 122 days on an H200;
  :small: 30 cells, 720,000 lane-steps, about 32 minutes on two cores (benchmarks/costs.py).
"""

from ib_bench.configs.paper import FORMATS, models, sharing, study


def get_config(size="paper"):
    config = study(size)
    config.data.format = FORMATS
    config.sweep = sharing(config, *models(size, "transformer"))
    return config.lock()
