#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks for inputs that break the readers or the comparator, with libFuzzer and the address and undefined-behaviour
# sanitizers:
#   tests/fuzz/run.sh [SECONDS] [TARGET...]     default: 60 seconds for each of baseline, policy, compare
# New inputs are kept in build/fuzz/found/TARGET; one that breaks something in build/fuzz/TARGET-*. Such an input
# belongs into tests/fuzz/corpus/TARGET, where an ordinary test replays it, once the fault is repaired.
# Needs clang++ with libFuzzer (CXX names another one). Exit code 1: something broke.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
seconds=${1:-60}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- baseline policy compare
work=$root/build/fuzz
mkdir -p "$work"
cd "$work"

status=0
for target in "$@"; do
    mkdir -p "found/$target"
    "${CXX:-clang++}" -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
        -I "$root/include" "$root/tests/fuzz/$target.cpp" -o "$target" -pthread
    dictionary=()
    [ "$target" = compare ] || dictionary=("-dict=$root/tests/fuzz/json.dict")
    "./$target" "-max_total_time=$seconds" -timeout=10 -rss_limit_mb=1500 -max_len=16384 -print_final_stats=1 \
        "-artifact_prefix=$work/$target-" "${dictionary[@]}" "found/$target" "$root/tests/fuzz/corpus/$target" ||
        status=1
done
exit "$status"
