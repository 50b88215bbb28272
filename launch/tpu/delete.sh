#!/usr/bin/env bash
# Deletes all VMs of a study and their requests. Records stay where they are.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=launch/tpu/settings.sh
source "$here/settings.sh"

for ((index = 0; index < COUNT; index++)); do
  vm=$NAME-$index
  [[ $(state_of "$vm") == NONE ]] || do_or_print gcloud compute tpus queued-resources delete "$vm" \
    --project="$PROJECT" --zone="$ZONE" --force --quiet --async
done
