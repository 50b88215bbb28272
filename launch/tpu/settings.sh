# shellcheck shell=bash
# Sourced by the scripts of this folder: what they need to know.
# Set these in the environment, or in a file that SETTINGS names.

# shellcheck disable=SC1090
[[ -z ${SETTINGS:-} ]] || source "$SETTINGS"

: "${PROJECT:?set PROJECT to the Google Cloud project}"
: "${ZONE:?set ZONE, for example us-east5-b}"
: "${BUCKET:?set BUCKET to a bucket of the same region, for example gs://my-bucket}"
: "${SERVICE_ACCOUNT:?set SERVICE_ACCOUNT to one that may write to BUCKET and delete TPUs}"
: "${CONFIG:?set CONFIG to a preset of the repository, for example configs/paper/table3.py}"
NAME=${NAME:-ib-bench}                    # VMs are called NAME-0, NAME-1, ...
COUNT=${COUNT:-4}                         # how many VMs, each of one host
ACCELERATOR=${ACCELERATOR:-v6e-1}         # a type of a single host
RUNTIME=${RUNTIME:-v2-alpha-tpuv6e}       # the runtime version of that type
WORKDIR=${WORKDIR:-$BUCKET/$NAME}         # where the records go
FLAGS=${FLAGS:-}                          # more flags of ib_bench run
# shellcheck disable=SC2034
CODE=$WORKDIR/launch/code.tar.gz          # the repository, as run.sh packed it

[[ $ACCELERATOR =~ -(1|4|8)$ ]] || {
  echo "ACCELERATOR: $ACCELERATOR has more than one host; use a type that ends in -1, -4 or -8" >&2
  exit 2
}

# shellcheck source=launch/dry_run.sh
source "$(dirname "${BASH_SOURCE[0]}")/../dry_run.sh"

tpus() { gcloud compute tpus queued-resources "$@" --project="$PROJECT" --zone="$ZONE"; }

# The state of a queued resource: WAITING_FOR_RESOURCES, ACTIVE, SUSPENDED, FAILED, ...; NONE.
state_of() { tpus describe "$1" --format='value(state.state)' 2>/dev/null || echo NONE; }

# Whether a VM left this mark: done (its cells are answered), failed (it gave up).
has_mark() { gcloud storage ls "$WORKDIR/launch/$1.$2" >/dev/null 2>&1; }
