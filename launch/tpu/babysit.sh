#!/usr/bin/env bash
# Makes preempted VMs again until every shard is answered; may be stopped and started at any time.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=launch/tpu/settings.sh
source "$here/settings.sh"

delete() { do_or_print gcloud compute tpus queued-resources delete "$1" \
  --project="$PROJECT" --zone="$ZONE" --force --quiet; }

while true; do
  open=0 failed=0
  for ((index = 0; index < COUNT; index++)); do
    vm=$NAME-$index
    state=$(state_of "$vm")
    if has_mark "$vm" 'done'; then
      [[ $state == NONE ]] || delete "$vm"  # it deletes itself; twice does no harm
      continue
    fi
    if has_mark "$vm" failed; then
      failed=$((failed + 1))
      [[ $state == NONE ]] || delete "$vm"
      continue
    fi
    open=$((open + 1))
    case $state in
      SUSPENDED | FAILED)
        echo "$(date +%T) $vm is $state: deleted and requested again"
        delete "$vm"
        bash "$here/create.sh" "$index"
        ;;
      NONE)
        echo "$(date +%T) $vm is gone: requested again"
        bash "$here/create.sh" "$index"
        ;;
    esac
  done
  if ((open == 0)); then
    echo "all VMs are gone; $failed of $COUNT shards gave up, see $WORKDIR/launch/"
    exit $((failed > 0))
  fi
  [[ ${DRY_RUN:-0} == 1 ]] && exit 0
  sleep "${PAUSE:-60}"
done
