#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Turns canary.cu into frozen.hpp: machine code for the architectures below and PTX for later ones, as one fat binary.
# Run once for a revision of the canaries; the result is committed and never made again by a build.
set -euo pipefail
cd "$(dirname "$0")"
fatbin=$(mktemp)
trap 'rm -f "$fatbin"' EXIT
targets=()
for arch in 80 90 100 120; do targets+=(-gencode "arch=compute_$arch,code=sm_$arch"); done
# "speed" is the compression that every driver for CUDA 12 and later can read.
nvcc -O3 -std=c++17 "${targets[@]}" -gencode arch=compute_80,code=compute_80 -fatbin --compress-mode=speed \
  -Xfatbin -compress-all canary.cu -o "$fatbin"
text=$(base64 -w0 "$fatbin")
{
  cat <<EOF
// SPDX-License-Identifier: Apache-2.0
// Made by freeze.sh from canary.cu with $(nvcc --version | grep -o 'release [0-9.]*, V[0-9.]*'); do not edit.
#ifndef PLUMBLINE_CUDA_CANARY_FROZEN_HPP
#define PLUMBLINE_CUDA_CANARY_FROZEN_HPP

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::canary {

/// SHA-256 of frozen_code.
inline constexpr char frozen_sha256[] = "$(printf %s "$text" | sha256sum | cut -d' ' -f1)";

/// A fat binary in base64: machine code for sm_80, sm_90, sm_100 and sm_120, and PTX for compute_80.
inline constexpr char frozen_code[] =
EOF
  fold -w 112 <<<"$text" | sed 's/.*/    "&"/; $s/$/;/'
  cat <<'EOF'

} // namespace cuda::canary

PLUMBLINE_NAMESPACE_END

#endif
EOF
} >frozen.hpp
