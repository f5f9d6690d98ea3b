// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_LAUNCH_SHAPE_HPP
#define PLUMBLINE_CUDA_LAUNCH_SHAPE_HPP

#include <cstddef>

#include <cuda_runtime_api.h>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// How many threads a kernel is launched with, and its dynamic shared memory.
struct launch_shape {
    dim3 grid;
    dim3 block;
    std::size_t shared_bytes = 0;
};

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
