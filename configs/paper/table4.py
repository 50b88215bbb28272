"""Table 4: N* of the transformer of 2 layers, every format and length distribution.

ib_bench run --config=configs/paper/table4.py --workdir=results/table4
ib_bench run --config=configs/paper/table4.py:small --workdir=results/table4_small

Cost: 144 cells, 1.1 billion lane-steps, about 5.1 years on two cores or 12 days on an H200;
  :small: 18 cells, 432,000 lane-steps, about 19 minutes on two cores (benchmarks/costs.py).
"""

from ib_bench.configs.paper import FORMATS, models, study


def get_config(size="paper"):
    config = study(size)
    config.data.format = FORMATS
    config.sweep = models(size, "transformer of 2 layers")
    return config.lock()
