#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/peers: the driver calls both sides in turns and the ratios are those of the medians. The programs it calls are made up.
set -uo pipefail
peers=$1/tools/peers
python=$(command -v python3) || { echo 'skipped: python3 is not installed'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LOG="$work/log" ROUND_FILE="$work/round"
faults=0
fault() {
    echo "FAULT: $*"
    faults=$((faults + 1))
}

# bench: every id of the suite took 200 us in the first round, 210 and 220 us in the next; one sample is disturbed.
cat >"$work/bench" <<END
#!$python
import json, os, sys
flags = dict(word[2:].split("=", 1) for word in sys.argv[1:] if "=" in word)
open(os.environ["LOG"], "a").write("ours\n")
count = open(os.environ["LOG"]).read().count("ours")
ids = json.load(open(flags["suite"]))["cuda"]
json.dump({"results": [{"id": name, "metric": "time", "status": "ok", "sessions": [
    {"samples": [190e3 + 10e3 * count, 190e3 + 10e3 * count, 900e3], "clean": [True, True, False]}]} for name in ids]},
    open(flags["save"], "w"))
END
# python3: pytorch_gemm.py and pytorch_conv.py took 420 us for each id; everything else is the real one.
cat >"$work/python" <<END
#!/bin/bash
if [[ \$1 != */pytorch_@(gemm|conv).py ]]; then exec "$python" "\$@"; fi
echo peer >>"\$LOG"
shift
while [ "\$1" != --output ]; do shift; done
out=\$2
shift 2
"$python" - "\$out" "\$@" <<'CODE'
import json, sys
ids = sys.argv[2:]
if ids[-1] == "--drop": ids = ids[:-2]
json.dump({"results": [{"id": name, "rounds": [420e3]} for name in ids]}, open(sys.argv[1], "w"))
CODE
END
chmod +x "$work/bench" "$work/python"

said=$(BENCH="$work/bench" PYTHON="$work/python" "$peers/side_by_side.sh" 3 gemm/bf16/tn/m64n64k64 gemm/fp32/tn/m8n8k8 2>&1) ||
    fault "ended with $?: $said"
[ "$(tr '\n' ' ' <"$LOG")" = 'ours peer ours peer ours peer ' ] || fault "not in turns: $(cat "$LOG")"
# 420 / 210, and the spread (220 - 200) / 210.
[[ $said == *'gemm/bf16/tn/m64n64k64'*'210.00 us'*'420.00 us'*'2.0000'*'9.52 %'* ]] || fault "the table says: $said"
[[ $said == *'gemm/fp32/tn/m8n8k8'* ]] || fault "an id is missing: $said"
[[ $said == *'own choice: geometric mean 2.0000 of 2, below 0.98: 0'* ]] || fault "the mean: $said"

# Without ids: those of the script, which must be ids that both sides understand.
said=$(BENCH="$work/bench" PYTHON="$work/python" "$peers/side_by_side.sh" 1 2>&1) || fault "default ids: $said"
[[ $said == *'gemm/bf16/tn/m8192n8192k8192'* ]] || fault "default ids: $said"

[[ $said == *'of 12, below'* ]] || fault "not the twelve products of the standard suite: $said"

said=$(PEER=conv BENCH="$work/bench" PYTHON="$work/python" "$peers/side_by_side.sh" 1 2>&1) || fault "default ids: $said"
for id in conv/wgrad/bf16/nhwc/n256c512h7w7k512r3s3u1p1 conv/fprop/fp16/nhwc/n64c256h56w56k256r3s3u1p1; do
    [[ $said == *"$id"* ]] || fault "default ids: $said"
done
[[ $said == *'of 15, below'* ]] || fault "not the convolutions of the standard suite and one more: $said"
for id in conv/fprop/int8/nhwc/n1c1h1w1k1r1s1u1p0 conv/fprop/bf16/nhwc/n1c8h8w8d4k8r3s3t3u1p1; do
    "$python" "$peers/pytorch_conv.py" "$id" 2>"$work/err"
    [ $? = 2 ] || fault "an id that PyTorch cannot do must end with 2: $id"
    grep -q "pytorch_conv.py: $id" "$work/err" || fault "the message must name the program and the id: $id"
done

"$python" "$peers/pytorch_gemm.py" gemm/fp8/tn/m1n1k1 2>"$work/err"
[ $? = 2 ] || fault 'an id that PyTorch cannot do must end with 2'
grep -q 'gemm/fp8/tn/m1n1k1' "$work/err" || fault 'the message must name the id'
BENCH="$work/none" "$peers/side_by_side.sh" 1 gemm/bf16/tn/m64n64k64 2>/dev/null
[ $? = 6 ] || fault 'without the program it must end with 6'
"$peers/side_by_side.sh" many 2>/dev/null
[ $? = 2 ] || fault 'a bad number of rounds must end with 2'

# An id that one side lacks is said and not passed over.
cat >"$work/a.json" <<'END'
{"results": [{"id": "x", "metric": "time", "status": "ok", "sessions": [{"samples": [1]}]},
             {"id": "y", "metric": "time", "status": "failed", "sessions": [{"samples": []}]}]}
END
echo '{"results": [{"id": "x", "rounds": [1]}, {"id": "y", "rounds": [1]}]}' >"$work/b.json"
said=$("$python" "$peers/ratios.py" "$work/a.json" -- "$work/b.json")
[ $? = 4 ] || fault 'a missing id must end with 4'
[[ $said == *'y  missing here'* || $said == *'y'*'missing here'* ]] || fault "missing id: $said"

# The best plan of a search stands beside the same peer, in a mean of its own.
cat >"$work/a.json" <<'END'
{"results": [{"id": "x", "metric": "time", "status": "ok", "sessions": [{"samples": [4]}]},
             {"id": "x/best", "metric": "time", "status": "ok", "sessions": [{"samples": [2]}]},
             {"id": "x/best", "metric": "heuristic_regret", "status": "ok", "sessions": [{"samples": [2]}]}]}
END
echo '{"results": [{"id": "x", "rounds": [3]}]}' >"$work/b.json"
said=$("$python" "$peers/ratios.py" "$work/a.json" -- "$work/b.json") || fault "ratios of a search ended with $?"
[[ $said == *'own choice: geometric mean 0.7500 of 1, below 0.98: 1'* ]] || fault "own choice: $said"
[[ $said == *'best of a search: geometric mean 1.5000 of 1, below 0.98: 0'* ]] || fault "best of a search: $said"

echo "$faults faults"
[ "$faults" = 0 ]
