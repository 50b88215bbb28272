#!/usr/bin/env bash
# Makes .venv, installs ib_bench, runs configs/quick.py and prints the N* table.
# Arguments go to `ib_bench run`; a second call goes on where the first stopped, or ends at once.
#   PYTHON=python3.12 bash launch/local.sh --config=configs/cpu.py --workdir=results/cpu
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source launch/environment.sh
make_environment '.[report]'

arguments=("$@")
has() { local word; for word in ${arguments[@]+"${arguments[@]}"}; do [[ $word == --$1 || $word == --$1=* ]] && return; done; return 1; }
has config || arguments+=(--config=configs/quick.py)
has workdir || arguments+=(--workdir=results/quick)
exec .venv/bin/ib_bench run "${arguments[@]}"
