#!/usr/bin/env bash
# Requests one spot TPU VM, which answers its shard of the study as soon as it exists.
#   bash launch/tpu/create.sh INDEX        VM NAME-INDEX, shard INDEX/COUNT
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=launch/tpu/settings.sh
source "$here/settings.sh"
index=${1:?name the index of the VM, 0 to COUNT - 1}

# One request a VM: a preempted one can be deleted and made again without the others. What is to be
# done travels as metadata, so that nothing hangs on a connection of hours.
do_or_print gcloud compute tpus queued-resources create "$NAME-$index" \
  --project="$PROJECT" --zone="$ZONE" \
  --node-id="$NAME-$index" \
  --accelerator-type="$ACCELERATOR" --runtime-version="$RUNTIME" \
  --service-account="$SERVICE_ACCOUNT" \
  --scopes=https://www.googleapis.com/auth/cloud-platform \
  --spot --async \
  --metadata="^|^ib-code=$CODE|ib-config=$CONFIG|ib-workdir=$WORKDIR|ib-shard=$index/$COUNT|ib-name=$NAME-$index|ib-zone=$ZONE|ib-flags=$FLAGS" \
  --metadata-from-file="startup-script=$here/startup.sh"
