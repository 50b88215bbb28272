"""Figure 9: kappa against accuracy at 2L (claim 4.5), of every model and format.

ib_bench run --config=configs/paper/figure9.py --workdir=results/figure9
ib_bench run --config=configs/paper/figure9.py:small --workdir=results/figure9_small

Cost: 1188 cells, 8.9 billion lane-steps, about 75 years on two cores or 185 days on an H200;
  :small: 90 cells, 2.2 million lane-steps, about 39 minutes on two cores (benchmarks/costs.py).
"""

from ib_bench.configs.paper import FORMATS, models, study, twice_as_long


def get_config(size="paper"):
    config = study(size)
    config.data.format = FORMATS
    config.data.length_distribution = ("uniform",)
    config.search.confirm = True
    entries = models(size, "transformer", "lstm", "dense_ssm")
    fixed = tuple(
        entry
        | {
            "data.length_distribution": "fixed",
            "data.max_length": tuple(range(2, max(config.data.max_length) + 1)),
        }
        for entry in entries
    )
    config.sweep = (*fixed, *twice_as_long(config, *entries))
    return config.lock()
