"""Figure 8: the dense SSM with acot: N* of all lengths up to L falls as L grows (claim 4.4).

ib_bench run --config=configs/paper/figure8.py --workdir=results/figure8
ib_bench run --config=configs/paper/figure8.py:small --workdir=results/figure8_small

Cost: 132 cells, 990 million lane-steps, about 127 days on two cores or 20 hours on an H200;
  :small: 20 cells, 480,000 lane-steps, about 2 minutes on two cores (benchmarks/costs.py).
"""

from ib_bench.configs.paper import models, sharing, study


def get_config(size="paper"):
    config = study(size)
    config.data.format = ("acot",)
    if size == "small":
        config.data.max_length = (5, 6, 8)
        config.data.padded_lengths = (5, 8)  # 5 as in the other presets, whose cells these are too
    config.sweep = sharing(config, *models(size, "dense_ssm"))
    return config.lock()
