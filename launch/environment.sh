# shellcheck shell=bash
# Sourced: make_environment REQUIREMENT makes .venv and installs the project once per change of it.

make_environment() {
  local python=${PYTHON:-python3} stamp=.venv/installed state
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "ib_bench needs Python 3.11 or newer; name one, for example PYTHON=python3.12 bash $0" >&2
    exit 2
  }
  [[ -x .venv/bin/python ]] || "$python" -m venv .venv
  state="$1 $(cat setup.cfg pyproject.toml | cksum)"
  [[ -f $stamp && $(cat "$stamp") == *"$state"* ]] && return
  echo "installing ib_bench into .venv (a few minutes the first time)" >&2
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable "$1"
  echo "$state" >> "$stamp"
}
