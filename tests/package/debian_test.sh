#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# debian_test.sh BUILD WORK CPACK: the two Debian packages, what they depend on and what is in them.
set -uo pipefail
for tool in dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
build=$1 work=$2 cpack=$3
rm -rf "$work"
mkdir -p "$work"
"$cpack" -G DEB -B "$work" --config "$build/CPackConfig.cmake" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
faults=0
is() { # is WHAT SEEN PATTERN
    [[ $2 =~ $3 ]] && return
    echo "FAULT: $1: \"$2\", expected $3"
    faults=$((faults + 1))
}
dev=("$work"/plumbline-dev_*_all.deb)
tools=("$work"/plumbline-tools_*.deb)
is 'architecture of -dev' "$(dpkg-deb -f "${dev[0]}" Architecture)" '^all$'
is 'dependencies of -dev' "$(dpkg-deb -f "${dev[0]}" Depends)" 'nlohmann-json3-dev'
is 'dependencies of -tools' "$(dpkg-deb -f "${tools[0]}" Depends)" 'libc6 .*libstdc'
contents=$(dpkg-deb -c "${dev[0]}")
is 'the umbrella header' "$contents" '/usr/include/plumbline/plumbline.hpp'
is 'the package configuration' "$contents" '/usr/share/cmake/plumbline/plumbline-config.cmake'
if [[ $contents == *bin/bench* || $contents == *libdnnl* ]]; then
    echo 'FAULT: -dev has programs or libraries'
    faults=$((faults + 1))
fi
contents=$(dpkg-deb -c "${tools[0]}")
is 'the programs' "$contents" '/usr/bin/bench-compare'
if [[ $contents == *.so* ]]; then
    echo 'FAULT: -tools carries libraries instead of depending on their packages'
    faults=$((faults + 1))
fi
# The same file in two packages could not be installed together.
both=$(comm -12 <(dpkg-deb -c "${dev[0]}" | awk '!/\/$/ {print $6}' | sort) \
    <(dpkg-deb -c "${tools[0]}" | awk '!/\/$/ {print $6}' | sort))
[ -z "$both" ] || { echo "FAULT: in both packages: $both"; faults=$((faults + 1)); }
[ "$faults" = 0 ]
