# shellcheck shell=bash
# Sourced: how the scripts run a command.

# Prints a command where DRY_RUN=1, and runs it otherwise.
do_or_print() {
  if [[ ${DRY_RUN:-0} == 1 ]]; then
    printf '+'
    printf ' %q' "$@"
    printf '\n'
  else
    "$@"
  fi
}
