# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the recipes: finds the bench program and says where baselines lie.

# plumbline_find_bench: prints $PLUMBLINE_BENCH, else bench of the archive or source tree this file lies in, else of PATH.
plumbline_find_bench() {
    local here candidate
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    for candidate in "${PLUMBLINE_BENCH:-}" "$here/../../../bin/bench" "$here/../bench.sh" "$(command -v bench || true)"; do
        if [ -n "$candidate" ] && [ -x "$candidate" ]; then
            echo "$candidate"
            return
        fi
        if [ -n "${PLUMBLINE_BENCH:-}" ]; then break; fi # a wrong name is an error, not a reason to take another program
    done
    echo "plumbline: no bench program${PLUMBLINE_BENCH:+ at $PLUMBLINE_BENCH}: set PLUMBLINE_BENCH to it" >&2
    return 6
}

export PLUMBLINE_BASELINE_DIR="${PLUMBLINE_BASELINE_DIR:-/var/lib/plumbline}"
