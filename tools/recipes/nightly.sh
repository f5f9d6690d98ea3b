#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nightly.sh [OPTIONS OF BENCH]: measures every device again, compares each with its accepted baseline, keeps the last runs
# and reports. What cron, systemd, Slurm and GitHub Actions start; they need no more than its exit code:
#   0 nothing regressed and nothing is said; otherwise the whole report goes to standard error and the code is that of bench
#   (1 regressed, 2 input, among it that there is no baseline yet, 3 not comparable, 4 incomplete or wrong, 6 no device).
#
# Environment:
#   PLUMBLINE_BENCH          the bench program; default: that of this archive or tree, else the one in PATH
#   PLUMBLINE_BASELINE_DIR   baselines, runs/ and reports/; default /var/lib/plumbline
#   PLUMBLINE_KEEP           runs of each device, and reports, that are kept; default 30
#   PLUMBLINE_ALERT          command for bad news: gets the report on standard input and the exit code as its last argument
#
# The first baseline, and a new one after a wanted change, are a person's decision: bench --baseline --device=all, and
# bench-compare --accept.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

bench=$(plumbline_find_bench) || exit 6
keep=${PLUMBLINE_KEEP:-30}
if ! [[ $keep =~ ^[1-9][0-9]*$ ]]; then
    echo "plumbline: PLUMBLINE_KEEP=$keep is not a number from 1 on" >&2
    exit 2
fi
reports="$PLUMBLINE_BASELINE_DIR/reports"
if ! mkdir -p "$reports" 2>/dev/null || ! [ -w "$reports" ]; then
    echo "plumbline: $reports cannot be written: set PLUMBLINE_BASELINE_DIR to a folder of this user" >&2
    exit 2
fi

# keep_newest GLOB: of the files of that name, whose order is that of their times, the last $keep stay.
keep_newest() {
    local files=()
    mapfile -t files < <(compgen -G "$1" | sort)
    if [ ${#files[@]} -gt "$keep" ]; then rm -f -- "${files[@]:0:${#files[@]}-keep}"; fi
}

export PLUMBLINE_KEEP=$keep # bench itself keeps the runs within it
report="$reports/$(date -u +%Y%m%dT%H%M%SZ).txt"
"$bench" --compare --device=all "$@" >"$report" 2>"$report.log"
code=$?
{
    echo "plumbline on $(uname -n), $(date -u +%Y-%m-%dT%H:%M:%SZ): exit code $code"
    cat "$report" "$report.log"
} >"$report.tmp"
mv "$report.tmp" "$report"
rm -f "$report.log"

keep_newest "$reports/*.txt"

if [ "$code" != 0 ]; then
    cat "$report" >&2
    if [ -n "${PLUMBLINE_ALERT:-}" ]; then
        # shellcheck disable=SC2086 # a command with its arguments
        $PLUMBLINE_ALERT "$code" <"$report" || echo "plumbline: '$PLUMBLINE_ALERT' ended with $?" >&2
    fi
fi
exit "$code"
