"""Table 3: N* of an LSTM of 256, outcome supervision.

Cut to what two cores can do in minutes to hours, as in the README:

ib_bench run --config=configs/paper/table3.py --workdir=results/table3 \
  --config.task.modulus=2 --config.data.max_length=5 --config.optim.steps=5000

ib_bench run --config=configs/paper/table3.py --workdir=results/table3
ib_bench run --config=configs/paper/table3.py:small --workdir=results/table3_small

Cost: 48 cells, 360 million lane-steps, about 76 days on two cores or 12 hours on an H200;
  :small: 6 cells, 144,000 lane-steps, about 2 minutes on two cores (benchmarks/costs.py).
"""

from ib_bench.configs.paper import models, study


def get_config(size="paper"):
    config = study(size)
    config.data.format = ("outcome",)
    config.sweep = models(size, "lstm of 256")
    return config.lock()
