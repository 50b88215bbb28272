#!/usr/bin/env bash
# Starts the head of a Ray cluster on this machine. It works on no cell itself.
#   RAY_AUTH_TOKEN=... bash launch/ray/head.sh
# Then, on this machine: RAY_AUTH_MODE=token RAY_AUTH_TOKEN=... ib_bench run --executor=ray ...
# Further arguments go to `ray start`. `ray stop` ends it.
set -euo pipefail
# shellcheck source=launch/ray/settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
do_or_print "$RAY" start --head --port="$PORT" --num-cpus=0 --num-gpus=0 \
  --include-dashboard=false --disable-usage-stats "$@"
