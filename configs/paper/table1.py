"""Table 1: N* of the transformer (6 layers), every format and length distribution.

ib_bench run --config=configs/paper/table1.py --workdir=results/table1
ib_bench run --config=configs/paper/table1.py:small --workdir=results/table1_small

Cost: 144 cells, 1.1 billion lane-steps, about 15 years on two cores or 37 days on an H200;
  :small: 18 cells, 432,000 lane-steps, about 19 minutes on two cores (benchmarks/costs.py).
"""

from ib_bench.configs.paper import FORMATS, models, study


def get_config(size="paper"):
    config = study(size)
    config.data.format = FORMATS
    config.sweep = models(size, "transformer")
    return config.lock()
