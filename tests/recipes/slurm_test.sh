#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# slurm_test.sh BENCH TREE: a Slurm of this machine alone (slurmctld, slurmd and munged of our own, nothing of the system's is
# touched), with the recipes as a batch job and as the prolog. Needs root and Debian's slurm-wlm.
# Switched off by cmake -DPLUMBLINE_TEST_SLURM=OFF.
set -uo pipefail
for tool in slurmctld slurmd sbatch munged; do
    PATH=$PATH:/usr/sbin command -v $tool >/dev/null || {
        echo "SKIPPED: the Slurm recipes were not run: no $tool (apt-get install slurm-wlm)"
        exit 77
    }
done
[ "$(id -u)" = 0 ] || { echo 'SKIPPED: the Slurm recipes were not run: slurmd needs root'; exit 77; }
bench=$1 tree=$2
work=$(mktemp -d)
chmod 755 "$work"
pids=()
stop() {
    [ ${#pids[@]} -gt 0 ] && kill "${pids[@]}" 2>/dev/null
    wait
    rm -rf "$work"
}
trap stop EXIT
faults=0
fault() {
    echo "FAULT: $*"
    faults=$((faults + 1))
}
export PATH=$PATH:/usr/sbin SLURM_CONF="$work/slurm.conf" OMP_NUM_THREADS=1
host=$(hostname -s)
# Two free ports.
read -r port1 port2 < <(/usr/bin/python3 -c '
import socket
s = [socket.socket() for _ in "ab"]
for x in s: x.bind(("", 0))
print(*[x.getsockname()[1] for x in s])')

mkdir -p "$work"/{state,spool,munge,home/bin,home/share/plumbline/recipes,baselines}
ln -s "$bench" "$work/home/bin/bench"
cp "$tree"/tools/recipes/* "$work/home/share/plumbline/recipes/"
cat >"$work/prolog" <<END
#!/bin/sh
export PLUMBLINE_BENCH="$bench" PLUMBLINE_PROLOG_DIR="$work/prolog_baselines" OMP_NUM_THREADS=1
if [ -e "$work/slow" ]; then export ONEDNN_MAX_CPU_ISA=SSE41; fi
date +%s >"$work/prolog_began"
"$work/home/share/plumbline/recipes/prolog.sh" --backend=cpu --policy="$work/policy.json" 2>"$work/prolog_said"
code=\$?
echo "\$(date +%s) \$code" >"$work/prolog_ended"
exit \$code
END
chmod +x "$work/prolog"
cat >"$SLURM_CONF" <<END
ClusterName=plumbline
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port1
SlurmdPort=$port2
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CryptoType=crypto/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
PrologFlags=Alloc
Prolog=$work/prolog
BatchStartTimeout=30
MessageTimeout=30
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=gpu Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
dd if=/dev/urandom of="$work/munge/key" bs=128 count=1 2>/dev/null
chmod 600 "$work/munge/key"
munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
    --log-file="$work/munge/log" --seed-file="$work/munge/seed" >"$work/munged.log" 2>&1 &
pids+=($!)
slurmctld -D >"$work/slurmctld.log" 2>&1 &
pids+=($!)
sleep 1
slurmd -D -N "$host" >"$work/slurmd.log" 2>&1 &
pids+=($!)
for ((i = 0; i < 60; ++i)); do
    [ "$(sinfo -h -o %T 2>/dev/null)" = idle ] && break
    sleep 0.5
done
[ "$(sinfo -h -o %T)" = idle ] || { sinfo; tail -n 20 "$work"/*.log; echo 'FAULT: this Slurm does not come up'; exit 1; }

# Baselines for both recipes: what a person does once for each node.
echo '{"name": "night", "cpu": ["gemm/fp32/tn/m256n256k256/hot"]}' >"$work/suite.json"
echo '{"rules": [{"match": "*", "margin": 1.0}]}' >"$work/policy.json"
export PLUMBLINE_BENCH="$bench" PLUMBLINE_HOME="$work/home" PLUMBLINE_BASELINE_DIR="$work/baselines"
"$bench" --baseline --backend=cpu --sessions=3 --force "--suite=$work/suite.json" --quiet >"$work/out" 2>&1 ||
    fault "the baseline ended with $?: $(cat "$work/out")"
PLUMBLINE_PROLOG_DIR="$work/prolog_baselines" "$tree/tools/recipes/prolog.sh" --baseline --backend=cpu --sessions=3 --force \
    --filter=gemm/fp32/tn/m512 >"$work/out" 2>&1 || fault "the prolog's baseline ended with $?: $(cat "$work/out")"

# job VARIABLE=VALUE: runs the batch recipe to its end; sets job, state and code.
submit() {
    sbatch --parsable --output="$work/job-%j.out" --export="ALL,$1" "$work/home/share/plumbline/recipes/plumbline.sbatch" \
        --backend=cpu --sessions=3 "--policy=$work/policy.json"
}
job() {
    job=$(submit "$1") || { fault "sbatch ended with $?"; return; }
    local shown
    for ((i = 0; i < 240; ++i)); do
        shown=$(scontrol show job "$job")
        [[ $shown =~ JobState=(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL) ]] && break
        sleep 0.5
    done
    [[ $shown =~ JobState=([A-Z]+) ]] && state=${BASH_REMATCH[1]}
    [[ $shown =~ ExitCode=([0-9]+) ]] && code=${BASH_REMATCH[1]}
}
ended=""
for isa in DEFAULT SSE41 DEFAULT; do
    state="" code=""
    job ONEDNN_MAX_CPU_ISA=$isa
    ended+="$state $code, "
    read -r at prolog_code <"$work/prolog_ended"
    [ "$prolog_code" = 0 ] || fault "the prolog of job $job ended with $prolog_code: $(cat "$work/prolog_said")"
    took=$((at - $(cat "$work/prolog_began")))
    echo "prolog of job $job: $took s"
    [ "$took" -le 60 ] || fault "the prolog took $took s"
    if [ "$isa" = SSE41 ]; then
        grep -q 'REGRESSED.*gemm/fp32/tn/m256n256k256/hot' "$work/job-$job.out" || fault "the job says: $(cat "$work/job-$job.out")"
    fi
done
[ "$ended" = 'COMPLETED 0, FAILED 1, COMPLETED 0, ' ] || { fault "the jobs ended: $ended"; cat "$work"/job-*.out; }

# A node that got slow: its prolog drains it before the job starts, and the job waits for another node.
touch "$work/slow"
job=$(submit ONEDNN_MAX_CPU_ISA=DEFAULT)
for ((i = 0; i < 200; ++i)); do
    [[ $(sinfo -h -o %T) == drain* ]] && break
    sleep 0.5
done
[[ $(sinfo -h -o %T) == drain* ]] || fault "the slow node is $(sinfo -h -o %T); the prolog said: $(cat "$work/prolog_said")"
grep -q 'exit code 1' "$work/prolog_said" || fault "the prolog said: $(cat "$work/prolog_said")"
[ -s "$work/job-$job.out" ] && fault 'the job ran on the slow node'
scancel "$job"

echo "$faults faults"
[ "$faults" = 0 ]
