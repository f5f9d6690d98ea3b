#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/setup.sh on made-up machines: a copy of the tree's tools, a compiler that sees only the headers we let it see, and
# an apt-get that installs them into a folder of ours, or cannot.
set -uo pipefail
tree=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
faults=0
mkdir -p "$work/tree/tools" "$work/bin" "$work/headers" "$work/tree/bench"
cp "$tree"/tools/*.sh "$work/tree/tools/"

# The compiler: its only headers are those in $work/headers. Builds are not reached: cmake below is made up as well.
cat >"$work/bin/c++" <<END
#!/bin/sh
exec $(command -v "${CXX:-c++}") -nostdinc -nostdinc++ -isystem "$work/headers" "\$@"
END
# apt-get: "install" puts a package's header in place; APT_FAILS names a package that cannot be had.
cat >"$work/bin/apt-get" <<'END'
#!/bin/bash
echo "$*" >>"$APT_LOG"
echo "noise of apt-get"
[ "${APT_OFFLINE:-0}" = 1 ] && exit 100
put() { mkdir -p "$HEADERS/$(dirname "$1")" && touch "$HEADERS/$1"; }
for word; do
    [ "$word" = "${APT_FAILS:-}" ] && exit 100
    case $word in
    nlohmann-json3-dev) put nlohmann/json.hpp ;;
    libcli11-dev) put CLI/CLI.hpp ;;
    libdnnl-dev) put oneapi/dnnl/dnnl_version.h ;;
    libjpeg-dev) put jpeglib.h ;;
    esac
done
END
# cmake: version as told; configuring and building write down that they were called and leave what they would leave.
cat >"$work/bin/cmake" <<'END'
#!/bin/bash
[ "$1" = --version ] || echo "noise of cmake"
case $1 in
--version) echo "cmake version ${CMAKE_SAYS:-3.25.1}" ;;
-S)
    echo "configure $*" >>"$CMAKE_LOG"
    [ "${CMAKE_FAILS:-}" = configure ] && { echo "no such thing"; exit 1; }
    echo "CMAKE_HOME_DIRECTORY:INTERNAL=$2" >"$4/CMakeCache.txt"
    ;;
--build)
    echo "build $*" >>"$CMAKE_LOG"
    [ "${CMAKE_FAILS:-}" = build ] && exit 1
    mkdir -p "$2/bench"
    printf '#!/bin/sh\nprintf "<%%s>" "$@"\nexit ${BENCH_ENDS:-0}\n' >"$2/bench/bench"
    chmod +x "$2/bench/bench"
    ;;
esac
END
chmod +x "$work"/bin/*
# Not root and no sudo, where a test says so.
mkdir "$work/user"
printf '#!/bin/sh\necho 1000\n' >"$work/user/id"
printf '#!/bin/sh\nexit 1\n' >"$work/user/sudo"
chmod +x "$work"/user/*

export APT_LOG="$work/apt.log" CMAKE_LOG="$work/cmake.log" HEADERS="$work/headers"
unset CXX CMAKE_PREFIX_PATH CLI11_ROOT oneDNN_ROOT PLUMBLINE_NO_INSTALL PLUMBLINE_CMAKE_ARGS PLUMBLINE_BASELINE_DIR

fresh() {
    rm -rf "$work/tree/build" "$work/headers"/* "$APT_LOG" "$CMAKE_LOG"
    touch "$APT_LOG" "$CMAKE_LOG"
}
# call [NAME=VALUE...]: runs bench.sh --list with these variables; sets status, out, err.
call() {
    env PATH="$work/bin:$PATH" "$@" "$work/tree/tools/bench.sh" --list 'a b' >"$work/out" 2>"$work/err" </dev/null
    status=$?
    out=$(cat "$work/out")
    err=$(cat "$work/err")
}
is() { # is WHAT SEEN EXPECTED
    [ "$2" = "$3" ] && return
    printf 'FAULT: %s: "%s", expected "%s"\n%s\n' "$1" "$2" "$3" "$err"
    faults=$((faults + 1))
}
has() { # has WHAT TEXT PART
    [[ $2 == *"$3"* ]] && return
    printf 'FAULT: %s: "%s" is not in:\n%s\n' "$1" "$3" "$2"
    faults=$((faults + 1))
}
lacks() {
    [[ $2 != *"$3"* ]] && return
    printf 'FAULT: %s: "%s" is in:\n%s\n' "$1" "$3" "$2"
    faults=$((faults + 1))
}

# Everything missing, root: installed, configured, built, run with every argument; standard output is the program's.
fresh
call
is 'a bare machine ends with' "$status" 0
is 'standard output is that of bench, with its arguments as they were' "$out" '<--list><a b>'
has 'apt-get' "$(cat "$APT_LOG")" 'install --no-install-recommends nlohmann-json3-dev libcli11-dev'
has 'apt-get' "$(cat "$APT_LOG")" 'libdnnl-dev'
has 'configuring' "$(cat "$CMAKE_LOG")" '-DCMAKE_BUILD_TYPE=Release'
has 'configuring' "$(cat "$CMAKE_LOG")" '-DPLUMBLINE_BUILD_TESTS=OFF' # doctest is not among bench's packages
has 'building' "$(cat "$CMAKE_LOG")" '--target bench bench-compare'

# A second call: no apt-get, no configure step.
: >"$APT_LOG"
: >"$CMAKE_LOG"
call
is 'the second call ends with' "$status" 0
is 'apt-get of the second call' "$(cat "$APT_LOG")" ''
lacks 'the second call' "$(cat "$CMAKE_LOG")" 'configure'
# Another option, or a package that has come: configured again.
call PLUMBLINE_CMAKE_ARGS=-DPLUMBLINE_CUDA=OFF
has 'another option' "$(cat "$CMAKE_LOG")" '-DPLUMBLINE_CUDA=OFF'

# Tests that test.sh has configured stay.
call
echo 'PLUMBLINE_BUILD_TESTS:BOOL=ON' >>"$work/tree/build/release/CMakeCache.txt"
: >"$CMAKE_LOG"
call
has 'after test.sh' "$(cat "$CMAKE_LOG")" '-DPLUMBLINE_BUILD_TESTS=ON'

# The exit code of bench comes through.
call BENCH_ENDS=4
is 'exit code of bench' "$status" 4

# Forbidden, or not allowed, to install: the exact command and exit code 6, and nothing was built.
for how in PLUMBLINE_NO_INSTALL=1 "PATH=$work/user:$work/bin:$PATH"; do
    fresh
    call "$how"
    is "$how ends with" "$status" 6
    has "$how" "$err" 'sudo apt-get update && sudo apt-get install --no-install-recommends nlohmann-json3-dev libcli11-dev'
    is "apt-get of $how" "$(cat "$APT_LOG")" ''
    is "cmake of $how" "$(cat "$CMAKE_LOG")" ''
    is "standard output of $how" "$out" ''
done

# A package that cannot be had: required is the end, optional is said, left out and not asked for again.
fresh
call APT_FAILS=libcli11-dev
is 'a required package that cannot be had' "$status" 6
has 'a required package that cannot be had' "$err" 'libcli11-dev'
fresh
call APT_FAILS=libdnnl-dev
is 'an optional package that cannot be had' "$status" 0
has 'an optional package that cannot be had' "$err" 'CPU backend is left out'
: >"$APT_LOG"
call APT_FAILS=libdnnl-dev
is 'asked for once' "$(cat "$APT_LOG")" ''
# Once it is there it is used.
mkdir -p "$work/headers/oneapi/dnnl" && touch "$work/headers/oneapi/dnnl/dnnl_version.h"
: >"$CMAKE_LOG"
call
has 'a package that came later' "$(cat "$CMAKE_LOG")" 'configure'
lacks 'a package that came later' "$err" 'left out'

# Offline with everything there: no apt-get at all.
: >"$APT_LOG"
call APT_OFFLINE=1
is 'offline ends with' "$status" 0
is 'apt-get offline' "$(cat "$APT_LOG")" ''

# A carried copy of CLI11 counts, in a folder with and without include/.
for place in include/CLI CLI; do
    fresh
    mkdir -p "$work/headers/nlohmann" "$work/carried" && touch "$work/headers/nlohmann/json.hpp"
    mkdir -p "$work/carried/$place" && touch "$work/carried/$place/CLI.hpp"
    call PLUMBLINE_NO_INSTALL=1 "CLI11_ROOT=$work/carried"
    is "CLI11_ROOT with $place" "$status" 0
    rm -rf "$work/carried"
done

# An old CMake, a failing configure step and a failing build end with 6, never with 1 (which means a regression).
fresh
call PLUMBLINE_NO_INSTALL=1 CMAKE_SAYS=3.22.1
is 'an old CMake' "$status" 6
has 'an old CMake' "$err" '3.25 is needed'
call CMAKE_SAYS=4.1.0
is 'a new CMake' "$status" 0
fresh
call CMAKE_FAILS=configure
is 'a failing configure step' "$status" 6
has 'a failing configure step' "$err" 'no such thing'
fresh
call CMAKE_FAILS=build
is 'a failing build' "$status" 6

# A tree that cannot be written to.
fresh
touch "$work/tree/build"
call
is 'a tree that cannot be written to' "$status" 6
has 'a tree that cannot be written to' "$err" 'copy the tree'
rm "$work/tree/build"

# A build folder of a moved tree is made anew.
fresh
call
echo 'CMAKE_HOME_DIRECTORY:INTERNAL=/somewhere/else' >"$work/tree/build/release/CMakeCache.txt"
call
is 'a moved tree' "$status" 0
has 'a moved tree' "$err" 'starting it anew'

echo "$faults faults"
[ "$faults" = 0 ]
