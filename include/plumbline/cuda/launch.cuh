// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_LAUNCH_CUH
#define PLUMBLINE_CUDA_LAUNCH_CUH

#include "plumbline/cuda/error.hpp"
#include "plumbline/cuda/launch_shape.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// The two things of a kernel file that only nvcc understands: launching, and asking for dynamic shared memory. A
/// kernel file that uses these, and no <<<>>>, also runs without a GPU: tests/emulation has its own version of this
/// header.
namespace cuda {

/// The dynamic shared memory of the launch, at a 16-byte boundary; of undefined content.
__device__ inline unsigned char* dynamic_shared() {
    extern __shared__ __align__(16) unsigned char plumbline_dynamic_shared[];
    return plumbline_dynamic_shared;
}

/// Enqueues `kernel` on `on`; throws cuda_error if the launch fails. `name` is for messages.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const launch_shape& shape, cudaStream_t on,
            Arguments... arguments) {
    // What every device offers; more is given to those who ask.
    constexpr std::size_t granted = 48 * 1024;
    if (shape.shared_bytes > granted) {
        check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shape.shared_bytes)),
              "cudaFuncSetAttribute", name);
    }
    kernel<<<shape.grid, shape.block, shape.shared_bytes, on>>>(arguments...);
    check_launch(name);
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
