#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# files_test.sh TREE: the files that other programs read, by those programs: systemd's units, cron's line, Slurm's job, the
# workflow.
set -uo pipefail
recipes=$1/tools/recipes
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
faults=0
fault() {
    echo "FAULT: $*"
    faults=$((faults + 1))
}
# What the recipes call /opt/plumbline, for this test.
home="$work/plumbline"
mkdir -p "$home/share/plumbline/recipes" "$home/bin" "$work/units"
cp "$recipes"/* "$home/share/plumbline/recipes/"
cat >"$home/bin/bench" <<END
#!/bin/sh
echo "bench \$*" >>"$work/calls"
exit "\${ENDS:-0}"
END
chmod +x "$home/bin/bench"
grep -rhoE '/opt/plumbline/[a-z/._-]*[a-z]' "$recipes" | sort -u | while read -r path; do
    [ -e "$home/${path#/opt/plumbline/}" ] || echo "$path"
done >"$work/absent"
[ -s "$work/absent" ] && fault "the recipes name files that the archive does not have: $(cat "$work/absent")"

# cron: five fields, a user, and a command, which runs.
export PLUMBLINE_BASELINE_DIR="$work/baselines"
read -r -a line < <(grep -E '^[0-9*]' "$recipes/plumbline.cron")
for field in "${line[@]:0:5}"; do
    [[ $field =~ ^([0-9]+|\*)$ ]] || fault "cron: the field $field"
done
[ "${line[5]}" = plumbline ] || fault "cron: the user ${line[5]}"
command=${line[*]:6}
ENDS=1 bash -c "${command//\/opt\/plumbline/$home}" 2>"$work/err"
[ $? = 1 ] || fault 'cron: the exit code of bench does not come through'
grep -q 'bench --compare --device=all' "$work/calls" || fault "cron: it called $(cat "$work/calls")"
grep -q 'exit code 1' "$work/err" || fault "cron: it would mail $(cat "$work/err")"

# Slurm's job file: its options stand before the first command, and it runs.
awk '/^#SBATCH/ {if (seen) exit 1} !/^(#|$)/ {seen = 1}' "$recipes/plumbline.sbatch" || fault 'sbatch: an option after a command'
PLUMBLINE_HOME="$home" ENDS=4 bash "$recipes/plumbline.sbatch" --strict 2>/dev/null
[ $? = 4 ] || fault 'sbatch: the exit code of bench does not come through'
grep -q 'bench --compare --device=all --strict' "$work/calls" || fault 'sbatch: arguments get lost'

# The archive's scripts find the program of their own archive.
env -u PLUMBLINE_BENCH "$home/share/plumbline/recipes/nightly.sh" || fault "nightly.sh of the archive ended with $?"

if command -v systemd-analyze >/dev/null; then
    for unit in plumbline-nightly.service plumbline-nightly.timer plumbline-baseline.service; do
        sed "s|/opt/plumbline|$home|" "$recipes/$unit" >"$work/units/$unit"
    done
    said=$(systemd-analyze verify --man=no "$work"/units/* 2>&1)
    code=$?
    # It also reads the machine's own units: only what it says of ours counts.
    said=$(grep -E "plumbline|$work" <<<"$said")
    if [ "$code" != 0 ] || [ -n "$said" ]; then fault "systemd-analyze verify ended with $code: $said"; fi
    systemd-analyze calendar "$(sed -n 's/^OnCalendar=//p' "$recipes/plumbline-nightly.timer")" >/dev/null || fault 'OnCalendar'
    # The check finds a fault that is planted.
    sed 's/^ExecStart=/ExecStart=relative/; s/Type=oneshot/Type=onceshot/' "$work/units/plumbline-nightly.service" \
        >"$work/units/plumbline-broken.service"
    systemd-analyze verify --man=no "$work/units/plumbline-broken.service" >"$work/said" 2>&1 &&
        fault 'systemd-analyze accepts a broken unit'
    grep -q 'relative/.*nightly.sh' "$work/said" || fault "of a broken unit it says: $(cat "$work/said")"
else
    echo 'LEFT OUT: systemd units, for want of systemd-analyze'
fi

if command -v yamllint >/dev/null; then
    yamllint -d '{extends: default, rules: {line-length: {max: 120}}}' "$recipes/github-actions.yml" || fault 'yamllint'
else
    echo 'LEFT OUT: the style of the workflow, for want of yamllint'
fi
if /usr/bin/python3 -c 'import yaml' 2>/dev/null; then
    # Its steps are shell scripts; the first is what makes the job red.
    /usr/bin/python3 - "$recipes/github-actions.yml" "$work/step" <<'END' || fault 'the workflow has not the form of one'
import sys, yaml
flow = yaml.safe_load(open(sys.argv[1]))
assert set(flow["on"]) == {"schedule", "workflow_dispatch"}, flow["on"]
job = flow["jobs"]["compare"]
assert job["runs-on"] == ["self-hosted", "gpu"] and job["timeout-minutes"] <= 120
for number, step in enumerate(job["steps"]):
    assert set(step) <= {"name", "if", "run", "uses", "with"}, step
    open(f"{sys.argv[2]}{number}.sh", "w").write("#!/usr/bin/env bash\n" + step["run"])
END
    if command -v shellcheck >/dev/null; then shellcheck -e SC2016 "$work"/step*.sh || fault 'a step of the workflow'; fi
    PLUMBLINE_HOME="$home" ENDS=3 bash -e "$work/step0.sh" 2>/dev/null
    [ $? = 3 ] || fault 'workflow: the exit code of bench does not come through'
    PLUMBLINE_HOME="$home" GITHUB_STEP_SUMMARY="$work/summary" bash -e "$work/step1.sh" || fault 'workflow: the report'
    grep -q 'exit code 3' "$work/summary" || fault 'workflow: the summary is not the last report'
else
    echo 'LEFT OUT: the steps of the workflow, for want of python3-yaml'
fi

echo "$faults faults"
[ "$faults" = 0 ]
