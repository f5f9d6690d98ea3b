#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# prolog_test.sh BENCH TREE: the prolog on the CPU backend, and with a made-up bench for what must drain a node and what must
# not.
set -uo pipefail
bench=$1 recipes=$2/tools/recipes
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
faults=0
fault() {
    echo "FAULT: $*"
    faults=$((faults + 1))
}
mkdir "$work/bin"
printf '#!/bin/sh\n' >"$work/bin/logger" # nothing into the system's log
chmod +x "$work/bin/logger"
export PATH="$work/bin:$PATH" PLUMBLINE_PROLOG_DIR="$work/prolog"
export OMP_NUM_THREADS=1
unset SLURM_JOB_GPUS SLURM_JOB_ID PLUMBLINE_PROLOG_SECONDS ONEDNN_MAX_CPU_ISA DNNL_MAX_CPU_ISA

# The real program: no baseline is no fault of the machine; then a baseline and a job.
export PLUMBLINE_BENCH="$bench"
"$recipes/prolog.sh" --backend=cpu 2>"$work/err" || fault "without a baseline it ended with $?"
grep -q 'not checked: .*there is no baseline' "$work/err" || fault "without a baseline it said: $(cat "$work/err")"
"$recipes/prolog.sh" --baseline --backend=cpu --sessions=2 --filter=gemm/fp32/tn/m512 --force >/dev/null 2>"$work/err" ||
    fault "--baseline ended with $?: $(cat "$work/err")"
echo '{"rules": [{"match": "*", "margin": 1.0}]}' >"$work/policy.json"
begin=$SECONDS
"$recipes/prolog.sh" --backend=cpu "--policy=$work/policy.json" 2>"$work/err" || fault "it ended with $?: $(cat "$work/err")"
[ $((SECONDS - begin)) -le 60 ] || fault "it took $((SECONDS - begin)) s"
[ -s "$work/err" ] && fault "on a good machine it said: $(cat "$work/err")"
ONEDNN_MAX_CPU_ISA=SSE41 "$recipes/prolog.sh" --backend=cpu "--policy=$work/policy.json" 2>"$work/err" &&
    fault "a slow machine was not found: $(cat "$work/err")"

# A made-up bench: writes down which GPU it was asked for, ends as told, takes as long as told.
cat >"$work/bench" <<'END'
#!/bin/sh
echo "${CUDA_VISIBLE_DEVICES:-none}" >>"$LOG"
sleep "${TAKES:-0}"
echo "what bench said" >&2
exit "${ENDS:-0}"
END
chmod +x "$work/bench"
export PLUMBLINE_BENCH="$work/bench" LOG="$work/log"
for pair in '0 0' '1 1' '2 0' '3 0' '4 1' '6 1' '143 1'; do
    read -r code expected <<<"$pair"
    ENDS=$code "$recipes/prolog.sh" 2>"$work/err"
    seen=$?
    [ "$seen" = "$expected" ] || fault "bench ended with $code and the prolog with $seen, expected $expected"
    [ "$code" = 0 ] || grep -q 'what bench said' "$work/err" || fault "after $code it said: $(cat "$work/err")"
done

# A bench that hangs: out of time is a fault of the machine, and the limit is kept.
begin=$SECONDS
TAKES=100 PLUMBLINE_PROLOG_SECONDS=4 "$recipes/prolog.sh" 2>"$work/err" && fault 'a bench that hangs must drain the node'
[ $((SECONDS - begin)) -le 6 ] || fault "a limit of 4 s took $((SECONDS - begin)) s"
grep -q 'out of time' "$work/err" || fault "out of time, it said: $(cat "$work/err")"

# The job's GPUs, each by itself, beginning with another one for each job.
: >"$LOG"
SLURM_JOB_GPUS=2,3,5 SLURM_JOB_ID=100 "$recipes/prolog.sh" || fault 'three GPUs'
[ "$(tr '\n' ' ' <"$LOG")" = '3 5 2 ' ] || fault "three GPUs in the order $(tr '\n' ' ' <"$LOG")"
# As many as fit in: 18 seconds are enough for the first alone.
: >"$LOG"
TAKES=8 PLUMBLINE_PROLOG_SECONDS=18 SLURM_JOB_GPUS=0,1,2,3 SLURM_JOB_ID=4 "$recipes/prolog.sh" || fault 'four GPUs'
[ "$(cat "$LOG")" = 0 ] || fault "in 18 s it took the GPUs $(tr '\n' ' ' <"$LOG")"
PLUMBLINE_BENCH=$work/nothing "$recipes/prolog.sh" 2>/dev/null || fault 'a node without bench must not be drained'

echo "$faults faults"
[ "$faults" = 0 ]
