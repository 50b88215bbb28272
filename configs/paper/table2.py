"""Table 2: accuracy at length 2L of transformers trained with the most data there are.

The cells of table 1: every run is evaluated at 2L when it ends, and a cell keeps what the best of
those at N_max does. For this table alone --config.search.max_probes=1 tries no other size.

ib_bench run --config=configs/paper/table2.py --workdir=results/table2
ib_bench run --config=configs/paper/table2.py:small --workdir=results/table2_small

Cost: 144 cells, 1.1 billion lane-steps, about 15 years on two cores or 37 days on an H200;
  :small: 18 cells, 432,000 lane-steps, about 19 minutes on two cores (benchmarks/costs.py).
"""

from ib_bench.configs.paper.table1 import get_config

__all__ = ["get_config"]
