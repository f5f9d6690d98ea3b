#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# plumbline's operators and PyTorch's in turns (ours, PyTorch, ours, ...) on one GPU, and the ratio for each shape.
#
#   tools/peers/side_by_side.sh [ROUNDS] [ID...]       default: 3 rounds of the ids in pytorch_gemm.py
#
# Environment: BENCH (the bench program; default: the one that tools/bench.sh builds), PYTHON (one with PyTorch; default
# python3), KEEP (folder for the files of every round; default: a temporary one that is removed), SEARCH=1 (also the best
# of 16 plans, against the same peer; takes about three times as long), PEER (gemm, conv, norm or training_step: which
# pytorch_*.py is the other side), PEER_FLAGS (for it, as --compile).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bench=${BENCH:-$here/../../build/release/bench/bench}
python=${PYTHON:-python3}
peer_name=pytorch_${PEER:-gemm}
read -ra peer_flags <<<"${PEER_FLAGS:-}"
[ -f "$here/$peer_name.py" ] || { echo "side_by_side.sh: PEER=$PEER: there is no $peer_name.py" >&2; exit 2; }

rounds=${1:-3}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "side_by_side.sh: '$rounds' is not a number of rounds" >&2; exit 2; }
[ $# -gt 0 ] && shift
ids=("$@")
if [ ${#ids[@]} -eq 0 ]; then
    mapfile -t ids < <("$python" -c "import sys; sys.path.insert(0, sys.argv[1]); import $peer_name
print('\n'.join($peer_name.DEFAULT_IDS))" "$here")
fi
[ -x "$bench" ] || { echo "side_by_side.sh: no program $bench; run tools/bench.sh --list first, or set BENCH" >&2; exit 6; }

folder=${KEEP:-}
if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"

# A suite of exactly these ids, whatever the shipped suites have.
suite="$folder/suite.json"
{
    printf '{"name": "side_by_side", "cuda": ['
    printf '"%s"' "${ids[0]}"
    [ ${#ids[@]} -gt 1 ] && printf ', "%s"' "${ids[@]:1}"
    printf ']}\n'
} >"$suite"

search=()
[ "${SEARCH:-0}" = 0 ] || search=(--search)
ours=()
peer=()
for ((round = 1; round <= rounds; ++round)); do
    echo "round $round of $rounds" >&2
    "$bench" --backend=cuda --suite="$suite" --sessions=1 --quiet --force "${search[@]}" --save="$folder/ours-$round.json" \
        --output="$folder/ours-$round.txt" >&2
    ours+=("$folder/ours-$round.json")
    "$python" "$here/$peer_name.py" --rounds 1 "${peer_flags[@]}" --output "$folder/pytorch-$round.json" "${ids[@]}"
    peer+=("$folder/pytorch-$round.json")
done
"$python" "$here/ratios.py" "${ours[@]}" -- "${peer[@]}"
