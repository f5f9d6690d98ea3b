#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nightly_test.sh BENCH TREE: three nights in a row on the CPU backend, one of them with an environment variable that makes
# oneDNN take the instructions of 2008: they end with 0, 1 and 0. And what the recipe keeps, says, and does on bad input.
set -uo pipefail
bench=$1 recipes=$2/tools/recipes
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
faults=0
fault() {
    echo "FAULT: $*"
    faults=$((faults + 1))
}
export PLUMBLINE_BENCH="$bench" PLUMBLINE_BASELINE_DIR="$work/baselines" PLUMBLINE_KEEP=2 OMP_NUM_THREADS=1
unset ONEDNN_MAX_CPU_ISA DNNL_MAX_CPU_ISA
nightly() {
    "$recipes/nightly.sh" --backend=cpu --sessions=3 "--policy=$work/policy.json" "$@" >"$work/out" 2>"$work/err"
    code=$?
}

# A product whose implementation the variable makes several times slower, and a margin that no busy machine reaches.
echo '{"name": "night", "cpu": ["gemm/fp32/tn/m256n256k256/hot"]}' >"$work/suite.json"
echo '{"rules": [{"match": "*", "margin": 1.0}]}' >"$work/policy.json"
nightly
[ "$code" = 2 ] || fault "without a baseline it ended with $code"
grep -q 'make one with --baseline' "$work/err" || fault "without a baseline it said: $(cat "$work/err")"

"$bench" --baseline --backend=cpu --sessions=3 --force "--suite=$work/suite.json" --quiet >"$work/out" 2>&1 ||
    fault "the baseline ended with $?: $(cat "$work/out")"
baseline=$(sha256sum "$work"/baselines/*.json)

ended=""
for isa in "" SSE41 ""; do
    PLUMBLINE_ALERT="$work/alert" ONEDNN_MAX_CPU_ISA=${isa:-DEFAULT} nightly
    ended+="$code "
    if [ "$code" = 0 ]; then
        [ -z "$(cat "$work/out" "$work/err")" ] || fault "a night when all is well said: $(cat "$work/out" "$work/err")"
    elif [ "$code" = 1 ]; then
        # The whole story is in what cron would mail and the journal would keep.
        for part in 'exit code 1' REGRESSED 'gemm/fp32/tn/m256n256k256/hot' 'ONEDNN_MAX_CPU_ISA'; do
            grep -q -- "$part" "$work/err" || fault "the bad night does not say $part: $(cat "$work/err")"
        done
    else
        cat "$work/err"
    fi
done
[ "$ended" = '0 1 0 ' ] || fault "the nights ended with $ended"
[ "$baseline" = "$(sha256sum "$work"/baselines/*.json)" ] || fault 'a night changed the baseline'

# PLUMBLINE_KEEP=2 of what is now three runs and four reports.
count() { find "$work/baselines/$1" -type f | wc -l; }
[ "$(count runs)" = 2 ] || fault "runs: $(ls "$work/baselines/runs")"
[ "$(count reports)" = 2 ] || fault "reports: $(ls "$work/baselines/reports")"

# The alert gets the code and the report; its own failure is said and changes no exit code.
cat >"$work/alert" <<END
#!/bin/sh
{ echo "code \$1 of \$2"; cat; } >"$work/alerted"
exit 7
END
chmod +x "$work/alert"
PLUMBLINE_ALERT="$work/alert exit" nightly --filter=nothing-like-it
[ "$code" = 4 ] || fault "a night that measured nothing ended with $code"
grep -qs 'code exit of 4' "$work/alerted" || fault "the alert was called with: $(cat "$work/alerted" 2>&1)"
grep -q 'exit code 4' "$work/alerted" || fault 'the alert did not get the report'
grep -q 'ended with 7' "$work/err" || fault 'a failing alert was not said'

PLUMBLINE_KEEP=some nightly
[ "$code" = 2 ] || fault "PLUMBLINE_KEEP=some ended with $code"
PLUMBLINE_BENCH=$work/nothing nightly
[ "$code" = 6 ] || fault "without the program it ended with $code"
PLUMBLINE_BASELINE_DIR=/proc/plumbline nightly
[ "$code" = 2 ] || fault "with a folder that cannot be written it ended with $code"

echo "$faults faults"
[ "$faults" = 0 ]
