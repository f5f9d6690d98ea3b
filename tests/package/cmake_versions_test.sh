#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cmake_versions_test.sh TREE PREFIX WORK LAUNCHER: the oldest CMake that is supported and the newest there is, both from PyPI,
# configure plumbline itself and projects that use it, and build one of them. Without a network this is left out, loudly.
# Switched off by cmake -DPLUMBLINE_TEST_CMAKE_VERSIONS=OFF.
set -uo pipefail
tree=$1 prefix=$2 work=$3 launcher=$4
oldest=$(sed -n 's/^cmake_minimum_required(VERSION \([0-9.]*\))/\1/p' "$tree/CMakeLists.txt")
left_out() {
    echo "SKIPPED: no other CMake than $(cmake --version | head -n 1) was tried: $*"
    exit 77
}
[ "${PLUMBLINE_NO_INSTALL:-0}" != 1 ] || left_out 'PLUMBLINE_NO_INSTALL=1'
/usr/bin/python3 -c 'import ensurepip' 2>/dev/null || left_out 'no python3-venv'
faults=0
try() { # try WHAT COMMAND...: its output is shown where it fails
    local what=$1
    shift
    "$@" >"$work/log" 2>&1 && return
    echo "FAULT: $version: $what:"
    tail -n 30 "$work/log"
    faults=$((faults + 1))
}
mkdir -p "$work"
for wanted in "cmake==$oldest.*" cmake; do
    venv="$work/venv-${wanted//[^a-z0-9.]/}"
    if [ ! -x "$venv/bin/cmake" ]; then
        rm -rf "$venv"
        /usr/bin/python3 -m venv "$venv" || left_out 'no virtual environment could be made'
        timeout 120 "$venv/bin/pip" --disable-pip-version-check -q install --retries 1 --timeout 15 "$wanted" ninja \
            >"$work/log" 2>&1 || left_out "pip install $wanted: $(tail -n 1 "$work/log")"
    fi
    cmake="$venv/bin/cmake"
    version=$("$cmake" --version | head -n 1)
    options=(-G Ninja "-DCMAKE_MAKE_PROGRAM=$venv/bin/ninja" "-DCMAKE_PREFIX_PATH=$prefix" -DCMAKE_BUILD_TYPE=Release)
    if [ -n "$launcher" ]; then options+=("-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher"); fi
    rm -rf "$work"/build-*
    # Developer warnings are errors: what a CMake deprecates it will remove. PLUMBLINE_CUDA=AUTO as on any machine.
    try 'plumbline itself' "$cmake" -S "$tree" -B "$work/build-tree" "${options[@]}" -DPLUMBLINE_BUILD_TESTS=OFF -Werror=dev
    parts=cpu
    if grep -q 'plumbline: CUDA backend with' "$work/log"; then parts='cpu;cuda'; fi
    try 'find_package with components' "$cmake" -S "$tree/tests/package/examples" -B "$work/build-examples" "${options[@]}" \
        "-DPARTS=$parts" -DPLUMBLINE_CUDA_ARCHITECTURES=90
    try 'as a subdirectory' "$cmake" -S "$tree/tests/package/subdirectory" -B "$work/build-folder" \
        -G Ninja "-DCMAKE_MAKE_PROGRAM=$venv/bin/ninja" "-DPLUMBLINE_SOURCE=$tree" -DPLUMBLINE_CUDA=OFF
    try 'find_package of core' "$cmake" -S "$tree/tests/package/core_only" -B "$work/build-core" "${options[@]}"
    try 'building it' "$cmake" --build "$work/build-core"
    try 'running it' "$work/build-core/program"
    echo "$version: $faults faults"
done
[ "$faults" = 0 ]
