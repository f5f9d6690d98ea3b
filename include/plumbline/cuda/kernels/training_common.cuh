// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_TRAINING_COMMON_CUH
#define PLUMBLINE_CUDA_KERNELS_TRAINING_COMMON_CUH

#include <algorithm>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "plumbline/cuda/launch.cuh"
#include "plumbline/cuda/training_kernels.hpp"

PLUMBLINE_NAMESPACE_BEGIN

// What the kernels of a training step share: values as float, 16 bytes at a time, sums over a block.
namespace cuda::kernels {

namespace device {

using training::bfloat16;
using training::float16;

__device__ inline float widened(float value) {
    return value;
}
__device__ inline float widened(bfloat16 value) {
    return __uint_as_float(unsigned{value.bits} << 16);
}
__device__ inline float widened(float16 value) {
    return __half2float(__ushort_as_half(value.bits));
}

template <class Value>
__device__ inline Value rounded(float value) {
    Value made{};
    if constexpr (std::is_same_v<Value, float>)
        made = value;
    else if constexpr (std::is_same_v<Value, bfloat16>)
        made.bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));
    else
        made.bits = __half_as_ushort(__float2half_rn(value));
    return made;
}

/// N values that are loaded and stored at once.
template <class Value, int N>
struct alignas(sizeof(Value) * N) pack {
    Value at[N];
};

/// Values in 16 bytes.
template <class Value>
inline constexpr int pack_size = 16 / static_cast<int>(sizeof(Value));

__device__ inline std::int64_t global_thread() {
    return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t global_threads() {
    return std::int64_t{gridDim.x} * blockDim.x;
}

/// The sum of `value` over the block, in every thread. `shared` has a place for each warp; all threads call it, and the
/// block is at a barrier when it returns.
template <class Real>
__device__ inline Real block_sum(Real value, Real* shared) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    Real sum = 0;
    for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum += shared[warp];
    __syncthreads();
    return sum;
}

__device__ inline float block_max(float value, float* shared) {
    for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    float most = shared[0];
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) most = fmaxf(most, shared[warp]);
    __syncthreads();
    return most;
}

/// Sums of a column over the blocks of partial[block][0 and 1][columns], in a fixed order, by blocks of 32 columns x 16
/// threads. Returns the column in the first 32 threads of a block, which have the sums, and -1 in the others.
__device__ inline std::int64_t column_sums(const float* partial, unsigned blocks, std::int64_t columns, double& first,
                                           double& second) {
    __shared__ double sums[2][16][32];
    const unsigned lane = threadIdx.x % 32, part = threadIdx.x / 32;
    const std::int64_t column = std::int64_t{blockIdx.x} * 32 + lane;
    double a = 0, b = 0;
    if (column < columns) {
#pragma unroll 4
        for (unsigned i = part; i < blocks; i += 16) {
            a += static_cast<double>(partial[2 * i * columns + column]);
            b += static_cast<double>(partial[(2 * i + 1) * columns + column]);
        }
    }
    sums[0][part][lane] = a;
    sums[1][part][lane] = b;
    __syncthreads();
    if (part != 0 || column >= columns) return -1;
    first = 0;
    second = 0;
    for (int i = 0; i < 16; ++i) {
        first += sums[0][i][lane];
        second += sums[1][i][lane];
    }
    return column;
}

/// Gradients of a norm's scale and shift from the partial sums of gradient, and of gradient x normed input; the sums
/// also into sums[0 and 1][columns] where that is wanted.
__global__ void __launch_bounds__(512) finish_gradients(const float* partial, unsigned blocks, std::int64_t columns,
                                                        bool accumulate, float* sums, float* d_scale, float* d_shift) {
    double sum, product;
    const std::int64_t c = column_sums(partial, blocks, columns, sum, product);
    if (c < 0) return;
    if (sums != nullptr) {
        sums[c] = static_cast<float>(sum);
        sums[columns + c] = static_cast<float>(product);
    }
    d_shift[c] = (accumulate ? d_shift[c] : 0) + static_cast<float>(sum);
    d_scale[c] = (accumulate ? d_scale[c] : 0) + static_cast<float>(product);
}

} // namespace device

namespace detail {

/// For column_sums.
inline launch_shape column_shape(std::int64_t columns) {
    return {static_cast<unsigned>((columns + 31) / 32), 512};
}

/// Blocks of 256 threads for a loop over `packs`: enough to fill any device, the kernels loop over the rest.
inline launch_shape shape_for(std::int64_t packs) {
    return {static_cast<unsigned>(std::clamp<std::int64_t>((packs + 255) / 256, 1, 2048)), 256};
}

/// Whether `count` values, and all of these pointers, allow accesses of 16 bytes.
template <class Value, class... Pointers>
bool whole_packs(std::int64_t count, const Pointers*... pointers) {
    return count % device::pack_size<Value> == 0 && ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

} // namespace detail

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
