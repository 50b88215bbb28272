# shellcheck shell=bash
# Sourced: a cluster that only those may use who know its token, and that reports to nobody.
: "${RAY_AUTH_TOKEN:?set RAY_AUTH_TOKEN to the same secret everywhere: openssl rand -hex 32}"
export RAY_AUTH_TOKEN RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0
PORT=${PORT:-6379}
RAY=${RAY:-$(dirname "${BASH_SOURCE[0]}")/../../.venv/bin/ray}
# shellcheck source=launch/dry_run.sh
source "$(dirname "${BASH_SOURCE[0]}")/../dry_run.sh"
