#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pkg_config.sh COMPILER PREFIX SOURCE WORK: builds one translation unit with what pkg-config says and another with the include
# path alone, links and runs them.
set -euo pipefail
command -v pkg-config >/dev/null || { echo 'skipped: pkg-config is not installed'; exit 77; }
export PKG_CONFIG_PATH="$2/share/pkgconfig"
read -r -a flags <<<"$(pkg-config --cflags --libs plumbline)"
[ "$(pkg-config --modversion plumbline)" = "$(sed -n 's/.*PLUMBLINE_VERSION "\(.*\)"/\1/p' "$2/include/plumbline/version.hpp")" ] ||
    { echo 'plumbline.pc and version.hpp say different versions'; exit 1; }
"$1" -std=c++20 "-I$2/include" -c "$3/second.cpp" -o "$4/plain_second.o"
"$1" "$3/program.cpp" "$4/plain_second.o" -o "$4/plain_program" "${flags[@]}"
"$4/plain_program" | grep -x ok
