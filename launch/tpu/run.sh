#!/usr/bin/env bash
# Puts the committed code into the bucket, requests COUNT spot TPU VMs and watches over them.
#   PROJECT=... ZONE=... BUCKET=gs://... SERVICE_ACCOUNT=... CONFIG=configs/paper/table3.py \
#       bash launch/tpu/run.sh
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=launch/tpu/settings.sh
source "$here/settings.sh"
cd "$here/../.."

[[ -z $(git status --porcelain) ]] || {
  echo "there are changes that are not committed; records name a commit: commit them first" >&2
  exit 2
}
archive=$(mktemp -d)/code.tar.gz
git archive --format=tar.gz -o "$archive" HEAD
do_or_print gcloud storage cp "$archive" "$CODE"
for ((index = 0; index < COUNT; index++)); do
  bash launch/tpu/create.sh "$index"
done
[[ ${DRY_RUN:-0} == 1 ]] || exec bash launch/tpu/babysit.sh
