# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The common part of bench.sh and test.sh: sourced by them, not run. Finds out what is missing, installs it where it
# may, configures a Release build in build/release and builds targets. All output goes to stderr: stdout belongs to
# the program that is started afterwards.
#
# Environment:
#   PLUMBLINE_NO_INSTALL=1    never install anything
#   PLUMBLINE_CMAKE_ARGS      more arguments for cmake, separated by spaces (-DPLUMBLINE_CPU=OFF ...)
#   PLUMBLINE_JOBS            parallel compiler processes; default: cores, at most one for each 2 GiB of free memory
#   CXX, CMAKE_PREFIX_PATH, CLI11_ROOT, oneDNN_ROOT, CUDNN_ROOT, CUDACXX: as CMake understands them

plumbline_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
plumbline_build="$plumbline_root/build/release"
plumbline_precondition=6 # exit code: not able to measure; 1 would mean a regression

plumbline_say() { printf 'plumbline: %s\n' "$*" >&2; }
plumbline_fail() {
    plumbline_say "$@"
    exit "$plumbline_precondition"
}

# The compiler: $CXX, else the first of the usual names that knows enough C++20 (g++ >= 12, clang >= 14).
plumbline_find_compiler() {
    local name major
    for name in ${CXX:-c++ g++ g++-14 g++-13 g++-12 clang++ clang++-18 clang++-16 clang++-15 clang++-14}; do
        command -v "$name" >/dev/null || continue
        major=$(printf '#ifdef __clang__\n__clang_major__ - 2\n#else\n__GNUC__\n#endif\n' |
            "$name" -x c++ -E -P - 2>/dev/null | tail -n 1)
        # $((14 - 2)): clang 14 is to pass the same limit as g++ 12.
        if [ "$((${major:-0}))" -ge 12 ]; then
            plumbline_cxx=$name
            return 0
        fi
    done
    return 1
}

# Which headers the compiler can see, asked in one run of the preprocessor: a word for each that is there.
plumbline_headers() {
    local folder folders=() name
    IFS=: read -r -a folders <<<"${CMAKE_PREFIX_PATH:-}:${CLI11_ROOT:-}:${oneDNN_ROOT:-}"
    local include=()
    for folder in "${folders[@]}"; do
        [ -n "$folder" ] && include+=(-isystem "$folder/include" -isystem "$folder")
    done
    for name in nlohmann/json.hpp CLI/CLI.hpp oneapi/dnnl/dnnl_version.h jpeglib.h doctest/doctest.h \
        benchmark/benchmark.h valijson/schema.hpp boost/context/fiber.hpp; do
        printf '#if __has_include(<%s>)\nhave <%s>\n#endif\n' "$name" "$name"
    done | "$plumbline_cxx" "${include[@]}" -std=c++20 -x c++ -E -P - 2>/dev/null
}

plumbline_has_nvidia_gpu() {
    local vendor
    [ -e /dev/nvidiactl ] && return 0
    for vendor in /sys/bus/pci/devices/*/vendor; do
        # Class 03xx: display controllers; NVIDIA makes network cards as well.
        [ -r "$vendor" ] && [ "$(cat "$vendor")" = 0x10de ] && grep -q '^0x03' "${vendor%vendor}class" && return 0
    done
    return 1
}

plumbline_nvcc() {
    command -v "${CUDACXX:-nvcc}" || { [ -x /usr/local/cuda/bin/nvcc ] && echo /usr/local/cuda/bin/nvcc; } || true
}

# Sets plumbline_required and plumbline_optional: Debian packages of what is missing. $1: bench or test.
plumbline_missing() {
    local headers
    plumbline_required=()
    plumbline_optional=()
    plumbline_find_compiler || plumbline_required+=("$(plumbline_compiler_package)")
    plumbline_cmake_good || plumbline_required+=(cmake)
    command -v ninja >/dev/null || command -v make >/dev/null || plumbline_required+=(ninja-build)
    headers=""
    [ -n "${plumbline_cxx:-}" ] && headers=$(plumbline_headers)
    plumbline_facts=$headers
    [[ $headers == *nlohmann* ]] || plumbline_required+=(nlohmann-json3-dev)
    [[ $headers == *CLI* ]] || plumbline_required+=(libcli11-dev)
    [[ $headers == *dnnl* || " ${PLUMBLINE_CMAKE_ARGS:-} " == *PLUMBLINE_CPU=OFF* ]] || plumbline_optional+=(libdnnl-dev)
    [[ $headers == *jpeglib* ]] || plumbline_optional+=(libjpeg-dev)
    [ "$1" = test ] || return 0
    [[ $headers == *doctest* ]] || plumbline_required+=(doctest-dev)
    [[ $headers == *benchmark* ]] || plumbline_optional+=(libbenchmark-dev)
    [[ $headers == *valijson* ]] || plumbline_optional+=(libvalijson-dev)
    # Fibers for the emulation of CUDA kernels, which also needs the toolkit's headers.
    [[ $headers == *boost* || -z "$(plumbline_nvcc)" ]] || plumbline_optional+=(libboost-context-dev)
    [ -x /usr/bin/python3 ] || plumbline_optional+=(python3)
    /usr/bin/python3 -c 'import jsonschema' 2>/dev/null || plumbline_optional+=(python3-jsonschema)
    /usr/bin/python3 -c 'import PIL' 2>/dev/null || plumbline_optional+=(python3-pil)
    command -v xmllint >/dev/null || plumbline_optional+=(libxml2-utils)
    command -v patchelf >/dev/null || plumbline_optional+=(patchelf)
    command -v shellcheck >/dev/null || plumbline_optional+=(shellcheck)
    command -v yamllint >/dev/null || plumbline_optional+=(yamllint)
}

plumbline_compiler_package() {
    # Ubuntu 22.04's g++ is 11; its g++-12 is a package of its own.
    if [ -r /etc/os-release ] && grep -q '^VERSION_ID="22.04"' /etc/os-release; then echo g++-12; else echo g++; fi
}

plumbline_cmake_good() {
    local version
    version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
    # shellcheck disable=SC2086 # two words on purpose
    set -- ${version:-0 0}
    [ "$1" -gt 3 ] || { [ "$1" -eq 3 ] && [ "$2" -ge 25 ]; }
}

# Words that put a command under the rights needed to install; fails where there are none.
plumbline_privilege() {
    if [ "$(id -u)" = 0 ]; then
        return 0
    elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        printf 'sudo' # asks for the password where there is somebody to ask
    else
        return 1
    fi
}

plumbline_apt() {
    local sudo
    sudo=$(plumbline_privilege) || return 1
    # Short timeouts: on a machine without a network this must fail in seconds.
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::http::Timeout=10 -o Acquire::https::Timeout=10 \
        -o Acquire::Retries=0 -o DPkg::Lock::Timeout=120 "$@" >&2
}

# Installs the packages given, refreshing the package lists once if the first try fails.
plumbline_install() {
    plumbline_say "installing: $*"
    plumbline_apt install --no-install-recommends "$@" || { plumbline_apt update && plumbline_apt install \
        --no-install-recommends "$@"; }
}

plumbline_may_install() {
    [ "${PLUMBLINE_NO_INSTALL:-0}" != 1 ] && command -v apt-get >/dev/null && plumbline_privilege >/dev/null
}

# Brings in what is missing for $1 (bench or test), or says what a person must do and ends with exit code 6.
plumbline_ensure_packages() {
    local package noted="$plumbline_build/packages-not-available"
    plumbline_missing "$1"
    if [ ${#plumbline_required[@]} -gt 0 ]; then
        if plumbline_may_install; then plumbline_install "${plumbline_required[@]}" || true; fi
        plumbline_missing "$1"
    fi
    if [ ${#plumbline_required[@]} -gt 0 ]; then
        [[ " ${plumbline_required[*]} " == *" cmake "* ]] && command -v cmake >/dev/null &&
            plumbline_say "$(cmake --version | head -n 1) is too old, 3.25 is needed (pip install cmake has it)"
        plumbline_fail "missing: ${plumbline_required[*]}. Install with:
    sudo apt-get update && sudo apt-get install --no-install-recommends ${plumbline_required[*]}"
    fi
    for package in "${plumbline_optional[@]}"; do
        # Asked for once: a package that this machine cannot get is noted, so that the next start is quick.
        grep -qsx "$package" "$noted" && continue
        if plumbline_may_install && plumbline_install "$package"; then continue; fi
        mkdir -p "$plumbline_build"
        if plumbline_may_install; then echo "$package" >>"$noted"; fi
        plumbline_say "going on without $package (sudo apt-get install $package)"
    done
    plumbline_missing "$1"
    [[ $plumbline_facts == *dnnl* ]] || plumbline_say "no oneDNN: the CPU backend is left out"
    if plumbline_has_nvidia_gpu && [ -z "$(plumbline_nvcc)" ]; then
        plumbline_say "an NVIDIA GPU is here but no CUDA toolkit: the CUDA backend is left out. Install NVIDIA's packages
    of the toolkit and cuDNN (for example apt-get install cuda-toolkit-13-0 cudnn9-cuda-13, from NVIDIA's repository
    for this distribution), or set CUDACXX to nvcc"
    fi
}

plumbline_jobs() {
    local cores free_gib
    cores=$(nproc)
    free_gib=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1048576))
    # The largest file of bench takes 1.9 GiB.
    local most=$((free_gib < 4 ? 1 : free_gib / 2))
    echo "${PLUMBLINE_JOBS:-$((cores < most ? cores : most))}"
}

# Configures build/release with the options given, unless that was done already with the same options, compiler and
# packages. CMake itself looks after changed CMakeLists.txt files.
plumbline_configure() {
    local cache="$plumbline_build/CMakeCache.txt" stamp="$plumbline_build/configured-with" options state
    # shellcheck disable=SC2206 # split on purpose
    options=(-DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_COMPILER=$(command -v "$plumbline_cxx")" "$@"
        ${PLUMBLINE_CMAKE_ARGS:-})
    if command -v ccache >/dev/null; then
        # Paths relative to this tree in the cache's keys: a fresh clone in another folder finds what this one compiled.
        export CCACHE_BASEDIR="$plumbline_root" CCACHE_NOHASHDIR=1
        options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
    fi
    state="${options[*]} | $plumbline_facts | $(plumbline_nvcc) | ${CMAKE_PREFIX_PATH:-} ${CLI11_ROOT:-}"
    state+=" ${oneDNN_ROOT:-} ${CUDNN_ROOT:-}"
    if [ -f "$cache" ] && ! grep -qx "CMAKE_HOME_DIRECTORY:INTERNAL=$plumbline_root" "$cache"; then
        plumbline_say "build/release belongs to another folder, probably a moved copy: starting it anew"
        rm -rf "$plumbline_build"
    fi
    [ -f "$cache" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$state" ] && return 0
    if [ ! -f "$cache" ] && command -v ninja >/dev/null; then options=(-G Ninja "${options[@]}"); fi
    mkdir -p "$plumbline_build"
    rm -f "$stamp"
    plumbline_say "configuring build/release"
    cmake -S "$plumbline_root" -B "$plumbline_build" "${options[@]}" >"$plumbline_build/configure.log" 2>&1 || {
        cat "$plumbline_build/configure.log" >&2
        plumbline_fail "configuring failed; the whole log is $plumbline_build/configure.log"
    }
    grep '^-- plumbline:' "$plumbline_build/configure.log" >&2 || true
    printf '%s' "$state" >"$stamp"
}

# Builds the targets given (none: all). Silent when there is nothing to do.
plumbline_make() {
    local targets=()
    [ $# -gt 0 ] && targets=(--target "$@")
    cmake --build "$plumbline_build" --parallel "$(plumbline_jobs)" "${targets[@]}" 2>&1 |
        sed -u -e '/no work to do/d' -e '/Re-checking globbed/d' -e '/Built target/d' >&2 ||
        plumbline_fail "building failed"
}

# Set-up for $1 (bench or test), under a lock so that two calls at once do not disturb each other.
plumbline_set_up() {
    local kind=$1
    shift
    if ! { mkdir -p "$plumbline_build" && : >>"$plumbline_build.lock"; } 2>/dev/null || [ ! -w "$plumbline_build" ]; then
        plumbline_fail "$plumbline_build cannot be written: copy the tree to a folder of your own and call it there"
    fi
    exec 9>"$plumbline_build.lock"
    if command -v flock >/dev/null && ! flock -n 9; then
        plumbline_say "waiting for another call that is building"
        flock 9
    fi
    plumbline_ensure_packages "$kind"
    plumbline_configure "$@"
    if [ "$kind" = bench ]; then plumbline_make bench bench-compare; else plumbline_make; fi
    exec 9>&-
}
