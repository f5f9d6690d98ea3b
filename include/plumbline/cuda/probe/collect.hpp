// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_PROBE_COLLECT_HPP
#define PLUMBLINE_CUDA_PROBE_COLLECT_HPP

#include "plumbline/cuda/probe/code.hpp"
#include "plumbline/cuda/probe/cublas.hpp"
#include "plumbline/cuda/probe/cudnn.hpp"
#include "plumbline/cuda/probe/runtime.hpp"
#include "plumbline/cuda/probe/tf32.hpp"
#include "plumbline/environment/libraries.hpp"
#include "plumbline/result/fingerprint.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::probe {

/// Everything the CUDA libraries say without a context: versions, devices, agreement of cuDNN's parts. For a process
/// that must leave the GPU alone, and for a machine without a GPU, where it says why nothing more is known.
inline void collect_without_context(result::fingerprint& into, int ordinal) {
    read_runtime(into);
    read_cublas(into);
    read_cudnn(into);
    read_device(into, ordinal);
}

/// The CUDA backend's part of the fingerprint, for the process that measured on device `ordinal`; called after
/// environment::collect(), whose readings of the same thing win. `kernel` is a __global__ function of the program
/// (null: where its code came from is not recorded). Reads the mapped libraries anew at the end, because asking a
/// library loads the parts of it that were not needed before.
inline void collect(result::fingerprint& into, const environment::host& machine, int ordinal, const void* kernel) {
    collect_without_context(into, ordinal);
    if (kernel != nullptr) read_code(into, kernel, ordinal);
    read_tf32(into);
    read_context(into);
    environment::read_libraries(into, machine);
}

} // namespace cuda::probe

PLUMBLINE_NAMESPACE_END

#endif
