"""Table 2: accuracy at length 2L of transformers trained with the most data there are.

Only N_max is tried, and all of its runs go to their end; what was not learned is evaluated too.

ib_bench run --config=configs/paper/table2.py --workdir=results/table2
ib_bench run --config=configs/paper/table2.py:small --workdir=results/table2_small

Cost: 144 cells, 540 million lane-steps, about 7.6 years on two cores or 19 days on an H200;
  :small: 18 cells, 216,000 lane-steps, about 9 minutes on two cores (benchmarks/costs.py).
"""

from ib_bench.configs.paper import FORMATS, models, study, twice_as_long


def get_config(size="paper"):
    config = study(size)
    config.data.format = FORMATS
    config.search.max_probes = 1
    config.search.confirm = True
    config.sweep = twice_as_long(config, *models(size, "transformer"))
    return config.lock()
