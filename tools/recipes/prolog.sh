#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Slurm prolog (Prolog=/opt/plumbline/share/plumbline/recipes/prolog.sh in slurm.conf): compares the job's GPUs with a
# baseline of the suite "quick" before the job starts. Ends within 60 seconds whatever happens. A fault of the machine
# (1 regressed, 4 wrong or incomplete, 6 no device, out of time) ends with 1: Slurm drains the node and requeues the job.
# What is no fault of the machine (no baseline yet, wrong flags, other hardware) is logged and lets the job start.
#
# Once for each node, while it is idle:   prolog.sh --baseline
#
# Environment: PLUMBLINE_BENCH; PLUMBLINE_PROLOG_DIR (default /var/lib/plumbline/prolog); PLUMBLINE_PROLOG_SECONDS (55);
# PLUMBLINE_KEEP (100): runs of each GPU that are kept there.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

export PLUMBLINE_BASELINE_DIR="${PLUMBLINE_PROLOG_DIR:-/var/lib/plumbline/prolog}"
limit=${PLUMBLINE_PROLOG_SECONDS:-55}
say() {
    echo "plumbline prolog: $*" >&2
    if command -v logger >/dev/null; then logger -t plumbline-prolog -- "$*" 2>/dev/null || true; fi
}

bench=$(plumbline_find_bench) || { say 'no bench program; the job starts unchecked'; exit 0; }
if [ "${1:-}" = --baseline ]; then
    shift
    mkdir -p "$PLUMBLINE_BASELINE_DIR" || exit 2
    exec "$bench" --baseline --suite=quick --device=all "$@"
fi

# The job's GPUs alone: others may be at work. With many of them each call takes as many as fit in, beginning with another
# one for each job.
devices=("")
if [ -n "${SLURM_JOB_GPUS:-}" ]; then IFS=, read -r -a devices <<<"$SLURM_JOB_GPUS"; fi
each=$(((limit - 5) / ${#devices[@]}))
if [ "$each" -lt 12 ]; then each=12; fi
begin=$SECONDS
for ((i = 0; i < ${#devices[@]}; ++i)); do
    left=$((limit - (SECONDS - begin)))
    if [ "$i" -gt 0 ] && [ "$left" -lt "$each" ]; then break; fi
    gpu=${devices[(i + ${SLURM_JOB_ID:-0}) % ${#devices[@]}]}
    if [ -n "$gpu" ]; then export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="$gpu"; fi
    said=$(timeout --kill-after=2 "$((left - 2))" "$bench" --compare --sessions=3 --time-budget="$((each - 4))" --quiet \
        "$@" 2>&1)
    code=$?
    case $code in
    0) ;;
    2 | 3) say "GPU ${gpu:-all}: not checked: $(tail -n 1 <<<"$said")" ;;
    *)
        if [ "$code" = 124 ] || [ "$code" = 137 ] || [ "$code" = 143 ]; then said+=$'\nout of time'; fi
        say "GPU ${gpu:-all}: exit code $code: $(tail -n 3 <<<"$said" | tr '\n' ' ')"
        exit 1
        ;;
    esac
done
exit 0
