"""Figure 2: the transformer's N* against L in each format, one length at a time (claim 3.1).

ib_bench run --config=configs/paper/figure2.py --workdir=results/figure2
ib_bench run --config=configs/paper/figure2.py:small --workdir=results/figure2_small

Cost: 96 cells, 720 million lane-steps, about 10 years on two cores or 25 days on an H200;
  :small: 12 cells, 288,000 lane-steps, about 13 minutes on two cores (benchmarks/costs.py).
"""

from ib_bench.configs.paper import FORMATS, models, study


def get_config(size="paper"):
    config = study(size)
    config.data.format = FORMATS
    config.data.length_distribution = ("fixed", "uniform")
    config.sweep = models(size, "transformer")
    return config.lock()
