#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds `bench` and `bench-compare` in Release and runs `bench` with the arguments given:
#   ./tools/bench.sh --baseline
# Exit codes are those of bench; 6 when the set-up itself fails. See setup.sh for the environment variables.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

# Tests need packages of their own. Where test.sh has configured them they stay, so that the two scripts used in turns
# do not configure anew each time.
tests=OFF
if grep -qs '^PLUMBLINE_BUILD_TESTS:BOOL=ON$' "$plumbline_build/CMakeCache.txt"; then tests=ON; fi
plumbline_set_up bench -DPLUMBLINE_BUILD_BENCH=ON -DPLUMBLINE_BUILD_TOOLS=ON -DPLUMBLINE_BUILD_TESTS=$tests
# Baselines lie in this tree whatever folder the call comes from.
export PLUMBLINE_BASELINE_DIR="${PLUMBLINE_BASELINE_DIR:-$plumbline_root/baselines/local}"
exec "$plumbline_build/bench/bench" "$@"
