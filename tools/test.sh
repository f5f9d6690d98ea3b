#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything in Release and runs every test that this machine can run. Arguments go
# to ctest: ./tools/test.sh -R compare. Tests that need a GPU are skipped where there is none, and listed as such.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

plumbline_set_up test -DPLUMBLINE_BUILD_BENCH=ON -DPLUMBLINE_BUILD_TOOLS=ON -DPLUMBLINE_BUILD_TESTS=ON
exec ctest --test-dir "$plumbline_build" --output-on-failure --no-tests=error --parallel "$(nproc)" "$@"
