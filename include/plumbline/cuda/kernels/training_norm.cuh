// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_TRAINING_NORM_CUH
#define PLUMBLINE_CUDA_KERNELS_TRAINING_NORM_CUH

#include "plumbline/core/error.hpp"
#include "plumbline/cuda/kernels/training_common.cuh"

PLUMBLINE_NAMESPACE_BEGIN

// LayerNorm as a training step needs it, which the benchmark's kernels are not for: fp32 scale and shift beside 16-bit
// rows, the residual added where the gradient is written, gradients added to over micro-batches.
namespace cuda::kernels {

namespace device {

/// One block for each row. The row is read three times, but from memory only once: it stays in the first-level cache.
template <class Value, int N>
__global__ void __launch_bounds__(128)
    layernorm(const Value* x, const float* scale, const float* shift, Value* y, float* mean, float* inverse_deviation,
              std::int64_t width, float epsilon) {
    __shared__ float warps[4];
    const Value* row = x + blockIdx.x * width;
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < width / N; i += blockDim.x) {
        const auto in = reinterpret_cast<const pack<Value, N>*>(row)[i];
#pragma unroll
        for (int j = 0; j < N; ++j) sum += widened(in.at[j]);
    }
    const float centre = block_sum(sum, warps) / static_cast<float>(width);
    float squares = 0;
    for (std::int64_t i = threadIdx.x; i < width / N; i += blockDim.x) {
        const auto in = reinterpret_cast<const pack<Value, N>*>(row)[i];
#pragma unroll
        for (int j = 0; j < N; ++j) squares += (widened(in.at[j]) - centre) * (widened(in.at[j]) - centre);
    }
    const float inverse = rsqrtf(block_sum(squares, warps) / static_cast<float>(width) + epsilon);
    if (threadIdx.x == 0) {
        mean[blockIdx.x] = centre;
        inverse_deviation[blockIdx.x] = inverse;
    }
    for (std::int64_t i = threadIdx.x; i < width / N; i += blockDim.x) {
        auto in = reinterpret_cast<const pack<Value, N>*>(row)[i];
#pragma unroll
        for (int j = 0; j < N; ++j) {
            const float normed = (widened(in.at[j]) - centre) * inverse;
            in.at[j] = rounded<Value>(normed * scale[i * N + j] + shift[i * N + j]);
        }
        reinterpret_cast<pack<Value, N>*>(y + blockIdx.x * width)[i] = in;
    }
}

/// Blocks step through the rows; a thread owns the same K groups of N columns in every row, so that their sums for
/// scale and shift stay in its registers.
template <class Value, int N, int K>
__global__ void __launch_bounds__(128)
    layernorm_backward(const Value* d_y, const Value* x, const float* scale, const float* mean,
                       const float* inverse_deviation, Value* d_x, std::int64_t rows, std::int64_t width, bool residual,
                       float* partial) {
    __shared__ float warps[2][2][4]; // of this row and the last one, so that one barrier a row is enough
    const std::int64_t groups = width / N;
    int turn = 0;
    float of_shift[K][N] = {}, of_scale[K][N] = {};
    for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
        const float centre = mean[row], inverse = inverse_deviation[row];
        float gradient[K][N], normed[K][N];
        pack<Value, N> out[K]; // what is added to, asked for before it is needed
        float sum = 0, product = 0;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const std::int64_t i = threadIdx.x + k * std::int64_t{128};
            if (i >= groups) continue;
            const auto g = reinterpret_cast<const pack<Value, N>*>(d_y + row * width)[i];
            const auto in = reinterpret_cast<const pack<Value, N>*>(x + row * width)[i];
            if (residual) out[k] = reinterpret_cast<const pack<Value, N>*>(d_x + row * width)[i];
#pragma unroll
            for (int j = 0; j < N; ++j) {
                const float d = widened(g.at[j]);
                normed[k][j] = (widened(in.at[j]) - centre) * inverse;
                gradient[k][j] = d * scale[i * N + j];
                of_shift[k][j] += d;
                of_scale[k][j] += d * normed[k][j];
                sum += gradient[k][j];
                product += gradient[k][j] * normed[k][j];
            }
        }
        for (int step = 16; step > 0; step /= 2) {
            sum += __shfl_xor_sync(0xffffffffu, sum, step);
            product += __shfl_xor_sync(0xffffffffu, product, step);
        }
        if (threadIdx.x % 32 == 0) {
            warps[turn][0][threadIdx.x / 32] = sum;
            warps[turn][1][threadIdx.x / 32] = product;
        }
        __syncthreads();
        float mean_gradient = 0, mean_product = 0;
#pragma unroll
        for (int warp = 0; warp < 4; ++warp) {
            mean_gradient += warps[turn][0][warp];
            mean_product += warps[turn][1][warp];
        }
        mean_gradient /= static_cast<float>(width);
        mean_product /= static_cast<float>(width);
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const std::int64_t i = threadIdx.x + k * std::int64_t{128};
            if (i >= groups) continue;
#pragma unroll
            for (int j = 0; j < N; ++j) {
                const float d = inverse * (gradient[k][j] - (mean_gradient + normed[k][j] * mean_product));
                out[k].at[j] = rounded<Value>(residual ? widened(out[k].at[j]) + d : d);
            }
            reinterpret_cast<pack<Value, N>*>(d_x + row * width)[i] = out[k];
        }
    }
    float* mine = partial + blockIdx.x * 2 * width;
#pragma unroll
    for (int k = 0; k < K; ++k) {
        const std::int64_t i = threadIdx.x + k * std::int64_t{128};
        if (i >= groups) continue;
#pragma unroll
        for (int j = 0; j < N; ++j) {
            mine[i * N + j] = of_shift[k][j];
            mine[width + i * N + j] = of_scale[k][j];
        }
    }
}

} // namespace device

template <class Value>
void layernorm(cudaStream_t on, const Value* x, const float* scale, const float* shift, Value* y, float* mean,
               float* inverse_deviation, std::int64_t rows, std::int64_t width, float epsilon) {
    constexpr int n = device::pack_size<Value>;
    const bool wide = detail::whole_packs<Value>(width, x, y);
    launch("layernorm", wide ? device::layernorm<Value, n> : device::layernorm<Value, 1>,
           {static_cast<unsigned>(rows), 128}, on, x, scale, shift, y, mean, inverse_deviation, width, epsilon);
}

template <class Value>
void layernorm_backward(cudaStream_t on, const Value* d_y, const Value* x, const float* scale, const float* mean,
                        const float* inverse_deviation, Value* d_x, float* d_scale, float* d_shift, std::int64_t rows,
                        std::int64_t width, bool residual, bool accumulate, float* partial) {
    constexpr int n = device::pack_size<Value>;
    const bool wide = detail::whole_packs<Value>(width, d_y, x, d_x);
    const std::int64_t groups = wide ? width / n : width;
    // Eight groups of eight would not fit the registers.
    constexpr int most = n == 8 ? 4 : 8;
    if (groups > 128 * (wide ? most : 8)) {
        throw error("layernorm_backward: " + std::to_string(width) + " columns, at most " +
                    std::to_string(128 * (wide ? most * n : 8)));
    }
    const auto pick = [&](auto one, auto two, auto four, auto eight) {
        return groups <= 128 ? one : groups <= 256 ? two : groups <= 512 ? four : eight;
    };
    const auto kernel = wide ? pick(device::layernorm_backward<Value, n, 1>, device::layernorm_backward<Value, n, 2>,
                                    device::layernorm_backward<Value, n, 4>, device::layernorm_backward<Value, n, most>)
                             : pick(device::layernorm_backward<Value, 1, 1>, device::layernorm_backward<Value, 1, 2>,
                                    device::layernorm_backward<Value, 1, 4>, device::layernorm_backward<Value, 1, 8>);
    const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(rows, partial_blocks));
    launch("layernorm_backward", kernel, {blocks, 128}, on, d_y, x, scale, mean, inverse_deviation, d_x, rows, width,
           residual, partial);
    launch("finish_gradients", device::finish_gradients, detail::column_shape(width), on,
           static_cast<const float*>(partial), blocks, width, accumulate, static_cast<float*>(nullptr), d_scale,
           d_shift);
}

#define PLUMBLINE_INSTANTIATE(Value)                                                                                   \
    template void layernorm(cudaStream_t, const Value*, const float*, const float*, Value*, float*, float*,            \
                            std::int64_t, std::int64_t, float);                                                        \
    template void layernorm_backward(cudaStream_t, const Value*, const Value*, const float*, const float*,             \
                                     const float*, Value*, float*, float*, std::int64_t, std::int64_t, bool, bool,     \
                                     float*);
PLUMBLINE_INSTANTIATE(float)
PLUMBLINE_INSTANTIATE(training::bfloat16)
PLUMBLINE_INSTANTIATE(training::float16)
#undef PLUMBLINE_INSTANTIATE

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
