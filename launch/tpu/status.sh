#!/usr/bin/env bash
# Tells what state the VMs are in, and how far the study is.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=launch/tpu/settings.sh
source "$here/settings.sh"

for ((index = 0; index < COUNT; index++)); do
  vm=$NAME-$index mark=
  for word in 'done' failed; do
    if has_mark "$vm" "$word"; then mark=" ($word)"; fi
  done
  echo "$vm $(state_of "$vm")$mark"
done
ib_bench=${IB_BENCH:-$here/../../.venv/bin/ib_bench}
do_or_print "$ib_bench" status --workdir="$WORKDIR"
