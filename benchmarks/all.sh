#!/usr/bin/env bash
# Measures everything that needs no accelerator, about an hour, and writes the tables of README.md.
#   bash benchmarks/all.sh                # all
#   bash benchmarks/all.sh throughput     # these
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-.venv/bin/python}
measured=benchmarks/measured

for name in "${@:-policies starts breakdown small_sets throughput products time_to_nstar stall}"; do
  for script in $name; do
    extra=()
    [[ $script == stall ]] && extra=(--folder=results/trajectories)  # goes on where it was
    "$python" -m "benchmarks.$script" --json="$measured/$script.json" "${extra[@]}"
    "$python" -m benchmarks.readme
  done
done
