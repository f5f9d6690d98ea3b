#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Exit codes, messages and files of a program whose main function is plumbline::gbench::main.
set -uo pipefail
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset PLUMBLINE_OUT NO_COLOR
faults=0

# expect CODE TEXT ARGUMENTS...: runs the program; TEXT must be in what it says.
expect() {
    local code=$1 text=$2 said status
    shift 2
    said=$("$program" "$@" 2>&1)
    status=$?
    if [ "$status" != "$code" ] || [[ $said != *"$text"* ]]; then
        printf 'FAULT: %s\n  ended with %s, expected %s and "%s"\n%s\n' "$*" "$status" "$code" "$text" "$said"
        faults=$((faults + 1))
    fi
}
# holds WHAT COMMAND...: the command must succeed.
holds() {
    local what=$1
    shift
    "$@" || {
        echo "FAULT: $what"
        faults=$((faults + 1))
    }
}

expect 0 'user/steady' --benchmark_filter='user/steady|own/'
expect 4 'the planted failure of user/bad' --benchmark_filter='user/bad'
expect 0 'this device has no user/absent' --benchmark_filter='user/absent'
expect 4 'the planted error of own_error' --benchmark_filter='own_error'
expect 4 'nothing was measured' --benchmark_filter='no_such_benchmark'
expect 2 'not a regular expression' --benchmark_filter='user/('
expect 2 'no_such_flag' --no_such_flag
expect 2 'needs a file' --plumbline_out
expect 2 'needs a file' --plumbline_append
touch "$folder/no-folder"
expect 2 "$folder/no-folder: cannot create the folder" --plumbline_out="$folder/no-folder/x.json" --benchmark_filter=user/steady
expect 0 'plumbline_out' --help
expect 0 'user/other' --benchmark_list_tests --plumbline_out="$folder/list.json"
holds 'a list writes no file' test ! -e "$folder/list.json"

expect 0 "wrote $folder/a.json" --plumbline_out="$folder/a.json" --benchmark_filter='user/(steady|other)|own/'
holds 'the file is written' test -s "$folder/a.json"
holds 'no partial file is left' test ! -e "$folder/a.json.partial"
holds 'both kernels and the own benchmark are in it' \
    test "$(grep -c -E '"id": *"(user/steady|user/other|gbench/own)"' "$folder/a.json")" = 4
expect 2 'exists' --plumbline_out="$folder/a.json" --benchmark_filter=user/steady
cp "$folder/a.json" "$folder/before.json"
expect 0 'wrote' --plumbline_out="$folder/a.json" --plumbline_append --benchmark_filter='user/(steady|other)|own/'
holds 'an appended session is in the file' test "$(grep -c '"started"' "$folder/a.json")" = 2
echo '{}' >"$folder/broken.json"
expect 2 'broken.json' --plumbline_out="$folder/broken.json" --plumbline_append
# A failing benchmark does not cost the others their file.
expect 4 'wrote' --plumbline_out="$folder/b.json" --benchmark_filter='user/(steady|bad)'
holds 'the failure is in the file' grep -q 'planted failure' "$folder/b.json"

export PLUMBLINE_OUT="$folder/from-environment.json"
expect 0 'wrote' --benchmark_filter='user/steady'
holds 'PLUMBLINE_OUT names the file' test -s "$PLUMBLINE_OUT"
unset PLUMBLINE_OUT

# NO_COLOR: colour only where somebody asks for it.
escape=$(printf '\033')
NO_COLOR=1 "$program" --benchmark_filter=user/steady --benchmark_color=true | grep -q "$escape" ||
    { echo 'FAULT: a flag must override NO_COLOR'; faults=$((faults + 1)); }
# The terminal decides otherwise, so this needs one.
if command -v script >/dev/null; then
    NO_COLOR=1 TERM=xterm script -qec "$program --benchmark_filter=user/steady" /dev/null | grep -q "$escape" &&
        { echo 'FAULT: colour in spite of NO_COLOR'; faults=$((faults + 1)); }
fi
# JSON alone on standard output.
"$program" --benchmark_filter=user/steady --benchmark_format=json --plumbline_out="$folder/c.json" \
    >"$folder/screen.json" 2>/dev/null
holds 'standard output begins as JSON' test "$(head -n 1 "$folder/screen.json")" = '{'
holds 'standard output ends as JSON' test "$(tail -n 1 "$folder/screen.json")" = '}'

echo "$faults faults"
[ "$faults" = 0 ]
