#!/usr/bin/env bash
# On a machine with a GPU or TPU, in under 8 minutes after the install: throughput against lanes, then
# cells of the paper's table 3 with its whole budget of 250,000 steps. Tables and records go to $1.
#   PEAK_TFLOPS=67 [PLATFORM=gpu] bash benchmarks/accelerator.sh results/accelerator
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-results/accelerator}
python=${PYTHON:-.venv/bin/python}
mkdir -p "$folder"

"$python" -m benchmarks.throughput --platform="${PLATFORM:-gpu}" --budget=200 --seconds=3 \
  --peak_tflops="${PEAK_TFLOPS:-67}" \
  --json="$folder/lanes.json" | tee "$folder/lanes.txt"

# Stopped by SIGTERM after its share of the time; started again, it goes on (exit code 75).
code=0
timeout --signal=TERM 220 "$python" -m ib_bench run --config=configs/paper/table3.py \
  --workdir="$folder/table3" --config.task.modulus='(2, 3)' --config.data.max_length='(5, 10)' \
  --config.optim.eval_every=1000 || code=$?
[[ $code == 0 || $code == 75 || $code == 124 ]] || exit "$code"
"$python" -m ib_bench report --workdir="$folder/table3" ||
  echo "no cell is finished yet: the same command goes on"
