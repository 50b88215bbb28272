#!/usr/bin/env bash
# Runs what two cores can and keeps what it found in docs/results/: records, page, tables, figures.
#   bash docs/make_results.sh                 # all: hours; goes on where it stopped
#   bash docs/make_results.sh cpu             # configs/cpu.py alone
#   bash docs/make_results.sh paper_small     # every preset of configs/paper, :small, in one workdir
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
run=${IB_BENCH:-.venv/bin/ib_bench}

for name in "${@:-cpu paper_small hierarchy_small}"; do
  for study in $name; do
    case $study in
      paper_small) configs=(configs/paper/*[0-9].py) configs=("${configs[@]/%/:small}") ;;
      *_small) configs=("configs/${study%_small}.py:small") ;;
      *) configs=("configs/$study.py") ;;
    esac
    for config in "${configs[@]}"; do
      "$run" run --config="$config" --workdir="results/$study"
    done
    "$run" report --workdir="results/$study" --out="docs/results/$study"
    tar --sort=name --mtime=@0 --owner=0 --group=0 -C "results/$study" -cf - cells probes |
      xz -9e > "docs/results/$study/records.tar.xz"
  done
done
