"""Figure 3: recurrent models' N* against L in each format (claims 3.2 and 3.4).

ib_bench run --config=configs/paper/figure3.py --workdir=results/figure3
ib_bench run --config=configs/paper/figure3.py:small --workdir=results/figure3_small

Cost: 288 cells, 2.2 billion lane-steps, about 7.9 years on two cores or 19 days on an H200;
  :small: 36 cells, 864,000 lane-steps, about 4 minutes on two cores (benchmarks/costs.py).
"""

from ib_bench.configs.paper import FORMATS, models, study


def get_config(size="paper"):
    config = study(size)
    config.data.format = FORMATS
    config.sweep = models(size, "lstm", "dense_ssm")
    return config.lock()
