#!/usr/bin/env bash
# Runs the cpu track for every baseline and packs it into leaderboard/submissions/.
#   bash leaderboard/baselines.sh            # about an hour on two cores; goes on where it stopped
#   bash leaderboard/baselines.sh lstm gru   # some of them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
run=${IB_BENCH:-.venv/bin/ib_bench}

declare -A title=(
  [lstm]="LSTM"
  [gru]="GRU"
  [dense_ssm]="Dense SSM"
  [block2]="Block-2 SSM"
  [diagonal]="Real diagonal SSM"
  [deltaproduct2]="DeltaProduct, n_h = 2"
  [mamba_positive]="Mamba, eigenvalues from 0"
  [mamba_signed]="Mamba, eigenvalues from -1"
  [transformer_learned]="Transformer, learned positions"
  [transformer_rotary]="Transformer, rotary"
  [transformer_none]="Transformer, no positions"
)
declare -A settings=(
  [lstm]="name=lstm"
  [gru]="name=gru"
  [dense_ssm]="name=dense_ssm"
  [block2]="name=bilinear structure=block block=2"
  [diagonal]="name=bilinear structure=diagonal"
  [deltaproduct2]="name=delta_product layers=1 householders=2 eigenvalues=signed"
  [mamba_positive]="name=mamba layers=1 eigenvalues=positive"
  [mamba_signed]="name=mamba layers=1 eigenvalues=signed"
  [transformer_learned]="name=transformer positions=learned"
  [transformer_rotary]="name=transformer positions=rotary"
  [transformer_none]="name=transformer positions=none"
)
names=("$@")
if ((${#names[@]} == 0)); then
  names=(lstm gru dense_ssm block2 diagonal transformer_learned transformer_rotary transformer_none
    deltaproduct2 mamba_signed mamba_positive)
fi
for name in "${names[@]}"; do
  flags=()
  for setting in ${settings[$name]}; do
    flags+=("--config.model.$setting")
  done
  "$run" run --config=configs/leaderboard.py:cpu --workdir="results/leaderboard/$name" "${flags[@]}"
  "$run" submit pack --workdir="results/leaderboard/$name" --name="${title[$name]}" \
    --authors="ib_bench" --description="Baseline of width 32: ${settings[$name]}"
done
