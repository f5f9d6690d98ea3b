#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds `bench` in Release and runs it with the arguments given:
#   ./tools/bench.sh --baseline
# Exit codes are those of bench; 6 when the set-up itself fails. See setup.sh for the environment variables.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

plumbline_set_up bench -DPLUMBLINE_BUILD_BENCH=ON
# Baselines lie in this tree whatever folder the call comes from.
export PLUMBLINE_BASELINE_DIR="${PLUMBLINE_BASELINE_DIR:-$plumbline_root/baselines/local}"
exec "$plumbline_build/bench/bench" "$@"
