// SPDX-License-Identifier: Apache-2.0
// Stands in for the header of the same name where kernels are compiled by a host compiler.
#ifndef PLUMBLINE_CUDA_LAUNCH_CUH
#define PLUMBLINE_CUDA_LAUNCH_CUH

#include <tuple>

#include "emulation.hpp"
#include "plumbline/cuda/error.hpp"
#include "plumbline/cuda/launch_shape.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

inline unsigned char* dynamic_shared() {
    return emulation::dynamic_shared();
}

inline void store_vector(void* global, uint4 value) {
    *static_cast<uint4*>(global) = value;
}

inline void copy_async(void* shared, const void* global, unsigned bytes) {
    emulation::copy_async(shared, global, 16, 16 - bytes);
}
inline void commit_copies() {
    emulation::commit_copies();
}
inline void wait_for_copies(unsigned pending) {
    emulation::wait_for_copies(pending);
}

/// Runs the whole grid before it returns; throws emulation::fault.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const launch_shape& shape, cudaStream_t,
            Arguments... arguments) {
    const std::tuple<Parameters...> values(arguments...);
    emulation::run(name, shape.grid, shape.block, shape.shared_bytes, [&] { std::apply(kernel, values); });
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
