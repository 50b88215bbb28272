#!/usr/bin/env bash
# Runs on a TPU VM at every boot, as root: installs ib_bench, answers a shard, deletes the VM.
# Nobody logs in; `gcloud compute tpus tpu-vm ssh NAME -- tail -f /var/log/ib_bench.log` watches it.
set -uo pipefail

FAST=300        # a run that fails within so many seconds failed fast
MOST_FAST=3     # after so many in a row the VM gives up

metadata() {
  curl -sf -H 'Metadata-Flavor: Google' \
    "http://metadata.google.internal/computeMetadata/v1/instance/attributes/$1"
}

mark() { echo "$(hostname) $(date -u +%FT%TZ) $2" | gcloud storage cp - "$workdir/launch/$name.$1"; }

delete_this_vm() {
  gcloud compute tpus queued-resources delete "$name" --zone="$zone" --force --quiet --async
}

install() {
  mkdir -p "$folder" && cd "$folder" || return 1
  gcloud storage cp "$(metadata ib-code)" code.tar.gz && tar -xzf code.tar.gz || return 1
  command -v python3.11 >/dev/null || {
    apt-get update -q && apt-get install -qy python3.11 python3.11-venv || return 1
  }
  [[ -x .venv/bin/python ]] || python3.11 -m venv .venv || return 1
  .venv/bin/python -m pip install --quiet --editable '.[gcs,tpu]'
}

work() {
  # shellcheck disable=SC2046
  .venv/bin/ib_bench run --platform=tpu --config="$(metadata ib-config)" --workdir="$workdir" \
    --shard="$(metadata ib-shard)" $(metadata ib-flags)
}

main() {
  name=$(metadata ib-name) zone=$(metadata ib-zone) workdir=$(metadata ib-workdir)
  folder=${IB_FOLDER:-/opt/ib_bench}
  local fast=0 started code
  while ((fast < MOST_FAST)); do
    started=$SECONDS
    install && work
    code=$?
    case $code in
      0) mark 'done' "all cells answered"; delete_this_vm; return 0 ;;
      75) continue ;;  # asked to stop, not by a failure: go on from the checkpoint
      2) break ;;  # a flag or a key that no further try makes right
    esac
    echo "ib_bench ended with $code after $((SECONDS - started)) s"
    # 1: the same cells would raise again.
    if ((code == 1 || SECONDS - started < FAST)); then fast=$((fast + 1)); else fast=0; fi
    sleep "${IB_PAUSE:-20}"
  done
  mark failed "gave up, the last try ended with exit code $code"
  delete_this_vm
  return 1
}

main >>"${IB_LOG:-/var/log/ib_bench.log}" 2>&1
