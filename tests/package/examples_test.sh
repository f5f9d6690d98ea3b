#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples_test.sh BUILT SOURCES SCHEMA: runs the built examples and looks at what they say, write and end with.
set -uo pipefail
built=$1 sources=$2 schema=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1
faults=0
fault() {
    echo "FAULT: $*"
    faults=$((faults + 1))
}
expect() { # expect CODE TEXT PROGRAM ARGUMENTS...
    local code=$1 text=$2 program=$3 seen
    shift 3
    "$built/$program" "$@" >"$work/out" 2>&1
    seen=$?
    [ "$seen" = "$code" ] || fault "$program $*: ended with $seen, expected $code: $(cat "$work/out")"
    grep -q -- "$text" "$work/out" || fault "$program $*: does not say \"$text\": $(cat "$work/out")"
}
python=$(command -v /usr/bin/python3) || python=""

expect 0 user/gelu/n32768 own_kernel "--plumbline_out=$work/own.json"
if [ -n "$python" ]; then "$python" -B "$sources/check_baseline.py" "$work/own.json" "$schema" || fault 'the baseline of own_kernel'; fi

# An existing program's own benchmarks come into a baseline, three repetitions each.
expect 0 sort_descending google_benchmark "--plumbline_out=$work/existing.json"
if [ -n "$python" ]; then
    "$python" - "$work/existing.json" <<'END' || fault 'the baseline of google_benchmark'
import json, sys
document = json.load(open(sys.argv[1]))
timed = [r for r in document["results"] if r["id"].startswith("gbench/sort_descending") and r["metric"] == "time"]
assert len(timed) == 1 and len(timed[0]["sessions"][0]["samples"]) == 3, document["results"]
assert len(document["fingerprint"]["provenance"]["fields"]) > 20
END
fi

expect 0 'test/dot_product/n4096: ' unit_test
expect 1 'test/dot_product/n4096: regressed' unit_test slow

# A bench of one's own: lists, measures, compares, refuses.
export PLUMBLINE_BASELINE_DIR="$work/baselines"
expect 0 softmax/fp32/c1024 own_bench --list --backend=cpu
expect 0 softmax/fp32/c32768 own_bench --baseline --backend=cpu --sessions=2 --force --filter=softmax
echo '{"rules": [{"match": "*", "margin": 1.0}]}' >"$work/policy.json"
expect 0 'softmax/fp32/c32768' own_bench --compare --backend=cpu --sessions=2 "--policy=$work/policy.json"
echo '{"name": "wrong", "cpu": ["softmax/fp32/c7"]}' >"$work/wrong.json"
expect 2 'c1024 and c32768 exist' own_bench --backend=cpu "--suite=$work/wrong.json"

echo "$faults faults"
[ "$faults" = 0 ]
