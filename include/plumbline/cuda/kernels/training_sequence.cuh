// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_TRAINING_SEQUENCE_CUH
#define PLUMBLINE_CUDA_KERNELS_TRAINING_SEQUENCE_CUH

#include "plumbline/core/error.hpp"
#include "plumbline/cuda/kernels/training_common.cuh"

PLUMBLINE_NAMESPACE_BEGIN

// Embedding, GELU, softmax and loss.
namespace cuda::kernels {

namespace device {

/// body(values as float) for each group of values of y, or of one value each where `wide` is false.
template <class Value, class Body>
__device__ inline void transform(Value* y, std::int64_t count, bool wide, Body body) {
    constexpr int n = pack_size<Value>;
    if (wide) {
        for (std::int64_t i = global_thread(); i < count / n; i += global_threads()) {
            pack<Value, n> out;
#pragma unroll
            for (int j = 0; j < n; ++j) out.at[j] = rounded<Value>(0);
            body(std::integral_constant<int, n>{}, i, out);
            reinterpret_cast<pack<Value, n>*>(y)[i] = out;
        }
    } else {
        for (std::int64_t i = global_thread(); i < count; i += global_threads()) {
            pack<Value, 1> out;
            body(std::integral_constant<int, 1>{}, i, out);
            y[i] = out.at[0];
        }
    }
}

/// Group `i` of N values.
template <int N, class Value>
__device__ inline pack<Value, N> group(const Value* from, std::int64_t i) {
    return reinterpret_cast<const pack<Value, N>*>(from)[i];
}

template <class Value>
__global__ void __launch_bounds__(256) add(const Value* x, Value* y, std::int64_t count, bool wide) {
    transform(y, count, wide, [=](auto size, std::int64_t i, auto& out) {
        constexpr int n = decltype(size)::value;
        const auto a = group<n>(x, i), b = group<n>(y, i);
#pragma unroll
        for (int j = 0; j < n; ++j) out.at[j] = rounded<Value>(widened(a.at[j]) + widened(b.at[j]));
    });
}

template <class Value>
__global__ void __launch_bounds__(256)
    embed(const std::int32_t* tokens, const Value* table, Value* x, std::int64_t width, std::int64_t count, bool wide) {
    transform(x, count, wide, [=](auto size, std::int64_t i, auto& out) {
        constexpr int n = decltype(size)::value;
        const std::int64_t groups = width / n;
        out = group<n>(table + tokens[i / groups] * width, i % groups);
    });
}

template <class Value>
__global__ void __launch_bounds__(256) embed_backward(const std::int32_t* tokens, const Value* d_x, float* d_table,
                                                      std::int64_t width, std::int64_t count) {
    for (std::int64_t i = global_thread(); i < count; i += global_threads()) {
        atomicAdd(d_table + tokens[i / width] * width + i % width, widened(d_x[i]));
    }
}

/// tanh through one exponential; the error is a few 1e-7, absolute, which is what GELU needs.
__device__ inline float fast_tanh(float x) {
    return 1 - __fdividef(2, 1 + __expf(2 * x));
}
__device__ inline float gelu_argument(float x) {
    return 0.7978845608028654f * (x + 0.044715f * x * x * x);
}

template <class Value>
__global__ void __launch_bounds__(256) gelu(const Value* x, Value* y, std::int64_t count, bool wide) {
    transform(y, count, wide, [=](auto size, std::int64_t i, auto& out) {
        constexpr int n = decltype(size)::value;
        const auto in = group<n>(x, i);
#pragma unroll
        for (int j = 0; j < n; ++j) {
            const float v = widened(in.at[j]);
            out.at[j] = rounded<Value>(0.5f * v * (1 + fast_tanh(gelu_argument(v))));
        }
    });
}

template <class Value>
__global__ void __launch_bounds__(256) gelu_backward(Value* gradient, const Value* x, std::int64_t count, bool wide) {
    transform(gradient, count, wide, [=](auto size, std::int64_t i, auto& out) {
        constexpr int n = decltype(size)::value;
        const auto in = group<n>(x, i);
        const auto g = group<n>(gradient, i);
#pragma unroll
        for (int j = 0; j < n; ++j) {
            const float v = widened(in.at[j]);
            const float t = fast_tanh(gelu_argument(v));
            const float inner = 0.7978845608028654f * (1 + 3 * 0.044715f * v * v);
            const float slope = 0.5f * (1 + t) + 0.5f * v * (1 - t * t) * inner;
            out.at[j] = rounded<Value>(widened(g.at[j]) * slope);
        }
    });
}

/// One block for each row: the largest logit and the sum of exponentials in one pass, the gradient in a second.
template <class Value, int N>
__global__ void __launch_bounds__(512) cross_entropy(Value* logits, const std::int32_t* targets, std::int64_t classes,
                                                     float share, float* losses, const step_control* control) {
    __shared__ float warps[16];
    Value* row = logits + blockIdx.x * classes;
    const int target = targets[blockIdx.x];
    float most = -INFINITY;
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < classes / N; i += blockDim.x) {
        const auto in = group<N>(row, i);
        float here = widened(in.at[0]);
#pragma unroll
        for (int j = 1; j < N; ++j) here = fmaxf(here, widened(in.at[j]));
        if (here > most) {
            sum *= __expf(most - here);
            most = here;
        }
#pragma unroll
        for (int j = 0; j < N; ++j) sum += __expf(widened(in.at[j]) - most);
    }
    const float largest = block_max(most, warps);
    // A thread without a logit has the sum 0 and -infinity as its largest; exp(-infinity) is 0.
    const float whole = block_sum(sum * __expf(most - largest), warps);
    const float log_sum = largest + logf(whole);
    if (threadIdx.x == 0) losses[blockIdx.x] = log_sum - widened(row[target]);
    __syncthreads(); // the target's logit is read before it is overwritten
    const float factor = share * control->scaler.scale;
    for (std::int64_t i = threadIdx.x; i < classes / N; i += blockDim.x) {
        auto in = group<N>(row, i);
#pragma unroll
        for (int j = 0; j < N; ++j) {
            const float hit = i * N + j == target ? 1.0f : 0.0f;
            in.at[j] = rounded<Value>((__expf(widened(in.at[j]) - log_sum) - hit) * factor);
        }
        reinterpret_cast<pack<Value, N>*>(row)[i] = in;
    }
}

/// One block; sums in a fixed order.
__global__ void __launch_bounds__(256)
    add_loss(const float* losses, std::int64_t rows, double share, step_control* control) {
    __shared__ double warps[8];
    double sum = 0;
    for (std::int64_t i = threadIdx.x; i < rows; i += blockDim.x) sum += static_cast<double>(losses[i]);
    const double whole = block_sum(sum, warps);
    if (threadIdx.x == 0) control->loss += static_cast<float>(whole * share);
}

/// One block for each row of the scores.
template <class Value>
__global__ void __launch_bounds__(128)
    causal_softmax(const float* scores, Value* weights, float* log_sums, std::int64_t tokens, float scale) {
    __shared__ float warps[4];
    const std::int64_t row = blockIdx.x;
    const std::int64_t seen = row % tokens + 1;
    const float* score = scores + row * tokens;
    Value* weight = weights + row * tokens;
    float most = -INFINITY;
    for (std::int64_t i = threadIdx.x; i < seen; i += blockDim.x) most = fmaxf(most, score[i] * scale);
    most = block_max(most, warps);
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < seen; i += blockDim.x) sum += __expf(score[i] * scale - most);
    const float log_sum = most + logf(block_sum(sum, warps));
    if (threadIdx.x == 0) log_sums[row] = log_sum;
    for (std::int64_t i = threadIdx.x; i < tokens; i += blockDim.x) {
        weight[i] = rounded<Value>(i < seen ? __expf(score[i] * scale - log_sum) : 0.0f);
    }
}

template <class Value>
__global__ void __launch_bounds__(128)
    causal_softmax_backward(const float* scores, const float* d_weights, const float* log_sums, const Value* d_y,
                            const Value* y, Value* weights, Value* d_scores, std::int64_t heads, std::int64_t tokens,
                            std::int64_t head_width, float scale) {
    __shared__ float warps[4];
    const std::int64_t row = blockIdx.x;
    const std::int64_t seen = row % tokens + 1;
    const std::int64_t out = (row % tokens * heads + row / tokens) * head_width;
    float product = 0;
    for (std::int64_t i = threadIdx.x; i < head_width; i += blockDim.x) {
        product += widened(d_y[out + i]) * widened(y[out + i]);
    }
    const float mean = block_sum(product, warps);
    const float log_sum = log_sums[row];
    for (std::int64_t i = threadIdx.x; i < tokens; i += blockDim.x) {
        const std::int64_t at = row * tokens + i;
        const float p = i < seen ? __expf(scores[at] * scale - log_sum) : 0.0f;
        weights[at] = rounded<Value>(p);
        d_scores[at] = rounded<Value>(i < seen ? p * (d_weights[at] - mean) * scale : 0.0f);
    }
}

} // namespace device

namespace detail {

/// Blocks for the groups that `transform` makes.
template <class Value>
launch_shape transform_shape(std::int64_t count, bool wide) {
    return shape_for(wide ? count / device::pack_size<Value> : count);
}

} // namespace detail

template <class Value>
void add(cudaStream_t on, const Value* x, Value* y, std::int64_t count) {
    const bool wide = detail::whole_packs<Value>(count, x, y);
    launch("add", device::add<Value>, detail::transform_shape<Value>(count, wide), on, x, y, count, wide);
}

template <class Value>
void embed(cudaStream_t on, const std::int32_t* tokens, const Value* table, Value* x, std::int64_t rows,
           std::int64_t width) {
    const bool wide = detail::whole_packs<Value>(width, table, x);
    launch("embed", device::embed<Value>, detail::transform_shape<Value>(rows * width, wide), on, tokens, table, x,
           width, rows * width, wide);
}

template <class Value>
void embed_backward(cudaStream_t on, const std::int32_t* tokens, const Value* d_x, float* d_table, std::int64_t rows,
                    std::int64_t width) {
    launch("embed_backward", device::embed_backward<Value>, detail::shape_for(rows * width), on, tokens, d_x, d_table,
           width, rows * width);
}

template <class Value>
void gelu(cudaStream_t on, const Value* x, Value* y, std::int64_t count) {
    const bool wide = detail::whole_packs<Value>(count, x, y);
    launch("gelu", device::gelu<Value>, detail::transform_shape<Value>(count, wide), on, x, y, count, wide);
}

template <class Value>
void gelu_backward(cudaStream_t on, Value* gradient, const Value* x, std::int64_t count) {
    const bool wide = detail::whole_packs<Value>(count, gradient, x);
    launch("gelu_backward", device::gelu_backward<Value>, detail::transform_shape<Value>(count, wide), on, gradient, x,
           count, wide);
}

template <class Value>
void cross_entropy(cudaStream_t on, Value* logits, const std::int32_t* targets, std::int64_t rows, std::int64_t classes,
                   std::int64_t effective_rows, float* losses, step_control* control) {
    const double share = 1 / static_cast<double>(effective_rows);
    const launch_shape shape{static_cast<unsigned>(rows), 512};
    constexpr int n = device::pack_size<Value>;
    const bool wide = detail::whole_packs<Value>(classes, logits);
    launch("cross_entropy", wide ? device::cross_entropy<Value, n> : device::cross_entropy<Value, 1>, shape, on, logits,
           targets, classes, static_cast<float>(share), losses, static_cast<const step_control*>(control));
    launch("add_loss", device::add_loss, {1, 256}, on, losses, rows, share, control);
}

template <class Value>
void causal_softmax(cudaStream_t on, const float* scores, Value* weights, float* log_sums, std::int64_t heads,
                    std::int64_t tokens, float scale) {
    launch("causal_softmax", device::causal_softmax<Value>, {static_cast<unsigned>(heads * tokens), 128}, on, scores,
           weights, log_sums, tokens, scale);
}

template <class Value>
void causal_softmax_backward(cudaStream_t on, const float* scores, const float* d_weights, const float* log_sums,
                             const Value* d_y, const Value* y, Value* weights, Value* d_scores, std::int64_t heads,
                             std::int64_t tokens, std::int64_t head_width, float scale) {
    launch("causal_softmax_backward", device::causal_softmax_backward<Value>,
           {static_cast<unsigned>(heads * tokens), 128}, on, scores, d_weights, log_sums, d_y, y, weights, d_scores,
           heads, tokens, head_width, scale);
}

#define PLUMBLINE_INSTANTIATE(Value)                                                                                   \
    template void add(cudaStream_t, const Value*, Value*, std::int64_t);                                               \
    template void embed(cudaStream_t, const std::int32_t*, const Value*, Value*, std::int64_t, std::int64_t);          \
    template void embed_backward(cudaStream_t, const std::int32_t*, const Value*, float*, std::int64_t, std::int64_t); \
    template void gelu(cudaStream_t, const Value*, Value*, std::int64_t);                                              \
    template void gelu_backward(cudaStream_t, Value*, const Value*, std::int64_t);                                     \
    template void cross_entropy(cudaStream_t, Value*, const std::int32_t*, std::int64_t, std::int64_t, std::int64_t,   \
                                float*, step_control*);                                                                \
    template void causal_softmax(cudaStream_t, const float*, Value*, float*, std::int64_t, std::int64_t, float);       \
    template void causal_softmax_backward(cudaStream_t, const float*, const float*, const float*, const Value*,        \
                                          const Value*, Value*, Value*, std::int64_t, std::int64_t, std::int64_t,      \
                                          float);
PLUMBLINE_INSTANTIATE(float)
PLUMBLINE_INSTANTIATE(training::bfloat16)
PLUMBLINE_INSTANTIATE(training::float16)
#undef PLUMBLINE_INSTANTIATE

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
