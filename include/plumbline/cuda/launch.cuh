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

/// Stores 16 bytes at a 16-byte boundary of global memory, in one piece: an assignment can become four stores.
__device__ inline void store_vector(void* global, uint4 value) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(global)), "r"(value.x),
                 "r"(value.y), "r"(value.z), "r"(value.w)
                 : "memory");
}

/// Starts copying `bytes`, at most 16, to 16 bytes of shared memory; the rest of those becomes zeros. Both addresses
/// are multiples of 16. Before compute capability 8.0 the copy is made at once.
__device__ inline void copy_async(void* shared, const void* global, unsigned bytes) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes) : "memory");
#else
    for (unsigned i = 0; i < 16; ++i) {
        static_cast<char*>(shared)[i] = i < bytes ? static_cast<const char*>(global)[i] : char{0};
    }
#endif
}

/// Closes the group of copies that this thread started since the last one.
__device__ inline void commit_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most `pending` (0 to 7) of this thread's groups are on their way. What they copied can then be read
/// by this thread; by others after a barrier.
__device__ inline void wait_for_copies(unsigned pending) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    switch (pending) { // the instruction takes a constant
    case 0:
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        break;
    case 1:
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        break;
    case 2:
        asm volatile("cp.async.wait_group 2;" ::: "memory");
        break;
    case 3:
        asm volatile("cp.async.wait_group 3;" ::: "memory");
        break;
    case 4:
        asm volatile("cp.async.wait_group 4;" ::: "memory");
        break;
    case 5:
        asm volatile("cp.async.wait_group 5;" ::: "memory");
        break;
    case 6:
        asm volatile("cp.async.wait_group 6;" ::: "memory");
        break;
    default:
        asm volatile("cp.async.wait_group 7;" ::: "memory");
        break;
    }
#endif
}

/// Enqueues `kernel` on `on`; throws cuda_error if the launch fails. `name` is for messages.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const launch_shape& shape, cudaStream_t on,
            Arguments... arguments) {
    // Every device offers 48 KiB, the kernel's static memory included; more is given to those who ask.
    constexpr std::size_t always_granted = 32 * 1024;
    if (shape.shared_bytes > always_granted) {
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
