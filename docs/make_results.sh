#!/usr/bin/env bash
# Runs what two cores can and keeps what it found in docs/results/: records, page, tables, figures.
#   bash docs/make_results.sh                 # all: hours; goes on where it stopped
#   bash docs/make_results.sh cpu             # configs/cpu.py alone
#   bash docs/make_results.sh paper_small     # every preset of configs/paper, :small, in one workdir
#   bash docs/make_results.sh table3          # nine cells of the paper's size, 5,000 steps a run
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
run=${IB_BENCH:-.venv/bin/ib_bench}

for name in "${@:-cpu paper_small hierarchy_small table3}"; do
  for study in $name; do
    parts=("")
    case $study in
      table3)
        configs=(configs/paper/table3.py)
        parts=("2 5" "3 5" "2 10")  # modulus, length
        ;;
      paper_small) configs=(configs/paper/*[0-9].py) configs=("${configs[@]/%/:small}") ;;
      *_small) configs=("configs/${study%_small}.py:small") ;;
      *) configs=("configs/$study.py") ;;
    esac
    for config in "${configs[@]}"; do
      for part in "${parts[@]}"; do
        read -r modulus length <<< "$part"
        flags=(${modulus:+--config.task.modulus="$modulus" --config.data.max_length="$length"
          --config.optim.steps=5000 --config.grid.learning_rates='(1e-3, 1e-4)'})
        "$run" run --config="$config" --workdir="results/$study" ${flags[@]+"${flags[@]}"}
      done
    done
    "$run" report --workdir="results/$study" --out="docs/results/$study"
    tar --sort=name --mtime=@0 --owner=0 --group=0 -C "results/$study" -cf - cells probes |
      xz -9e > "docs/results/$study/records.tar.xz"
  done
done
