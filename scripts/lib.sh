# shellcheck shell=bash
# What several of the scripts beside this file need. It is sourced, never run.

# Nothing compiled is left beside what Python reads.
export PYTHONDONTWRITEBYTECODE=1

# The checkout, wherever the script was called from.
# shellcheck disable=SC2034 # used by the scripts
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Progress goes to standard error, so that a script's standard output is its result alone.
say() { printf '==> %s\n' "$*" >&2; }

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# For a wrong command line, as opposed to a failure: exit code 2.
usage_error() {
    printf '%s: %s (see --help)\n' "${0##*/}" "$*" >&2
    exit 2
}

# A moment to hand to `elapsed` later. LC_ALL, because EPOCHREALTIME is written with the locale's decimal sign.
moment() { (LC_ALL=C; printf '%s' "${EPOCHREALTIME/./}"); }

# elapsed MOMENT: the seconds since then, with one decimal.
elapsed() {
    local tenths=$((($(moment) - $1) / 100000))
    printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}

# Where scripts/servers puts test servers, and where the tests look for them.
servers_dir() { printf '%s' "${REDIS_RL_SERVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/redis-rl/servers}"; }

# part NAME COMMAND...: runs a part of long work, says so, and keeps how long it took for `report_parts`.
parts_begun=$(moment)
parts_report=''
part() {
    local name=$1 started status=0
    started=$(moment)
    say "$name: ${*:2}"
    "${@:2}" || status=$?
    parts_report+=$(printf '%-8s %6s s' "$name" "$(elapsed "$started")")$'\n'
    return "$status"
}

# The seconds that each part took, and all since the script began.
report_parts() { printf '\n%s%-8s %6s s\n' "$parts_report" total "$(elapsed "$parts_begun")"; }
