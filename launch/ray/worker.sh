#!/usr/bin/env bash
# Joins this machine to a Ray cluster, with all of its cores and accelerators.
#   RAY_AUTH_TOKEN=... bash launch/ray/worker.sh HEAD_ADDRESS
# Further arguments go to `ray start`. `ray stop` ends it.
set -euo pipefail
# shellcheck source=launch/ray/settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
address=${1:?name the address of the head}
do_or_print "$RAY" start --address="$address:$PORT" --disable-usage-stats "${@:2}"
