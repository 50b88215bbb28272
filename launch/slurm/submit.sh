#!/usr/bin/env bash
# Submits a study as an array of TASKS jobs. Arguments go to sbatch.
#   CONFIG=configs/paper/table3.py WORKDIR=/shared/table3 TASKS=16 \
#       bash launch/slurm/submit.sh --gres=gpu:1
# FLAGS are flags of ib_bench run, for example FLAGS=--platform=gpu.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source launch/dry_run.sh
: "${CONFIG:?set CONFIG to a preset, for example configs/paper/table3.py}"
: "${WORKDIR:?set WORKDIR to a folder that all nodes share}"
TASKS=${TASKS:-8}
read -ra flags <<<"${FLAGS:-}"

command=(sbatch --array="0-$((TASKS - 1))" --export=ALL "$@"
  launch/slurm/array.sbatch ${flags[@]+"${flags[@]}"})
do_or_print "${command[@]}"
