#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs shellcheck over every script of the tree.
set -euo pipefail
command -v shellcheck >/dev/null || { echo 'skipped: shellcheck is not installed'; exit 77; }
cd "$1"
mapfile -t scripts < <(grep -rlE --exclude-dir=build --exclude-dir=.git '^#!.*\b(ba)?sh$|^# shellcheck shell=' .)
[ ${#scripts[@]} -gt 5 ] || { echo "only ${#scripts[@]} scripts found: the search is broken"; exit 1; }
shellcheck -x "${scripts[@]}"
echo "${#scripts[@]} scripts"
