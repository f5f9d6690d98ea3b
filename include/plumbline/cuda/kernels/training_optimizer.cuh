// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_TRAINING_OPTIMIZER_CUH
#define PLUMBLINE_CUDA_KERNELS_TRAINING_OPTIMIZER_CUH

#include "plumbline/core/error.hpp"
#include "plumbline/cuda/kernels/training_common.cuh"
#include "plumbline/workload/random.hpp"

PLUMBLINE_NAMESPACE_BEGIN

// Scalars of a step, the gradients' norm, the optimizers. The optimizer unscales and clips while it reads, so that a
// gradient is read twice and never written.
namespace cuda::kernels {

namespace device {

__global__ void begin_step(step_control* control) {
    training::begin_step(*control);
}
__global__ void unscale(step_control* control) {
    training::unscale(*control);
}
__global__ void clip(step_control* control, float limit) {
    training::clip(*control, limit);
}
__global__ void update_scale(step_control* control, loss_scale_rules rules) {
    training::update(control->scaler, rules);
}

__global__ void __launch_bounds__(256) unscale_gradients(float* gradients, std::int64_t count, step_control* control) {
    const float factor = training::inverse_of(control->scaler.scale);
    bool finite = true;
    for (std::int64_t i = global_thread(); i < count; i += global_threads()) {
        finite = finite && training::is_finite(gradients[i]);
        gradients[i] *= factor;
    }
    if (!finite) atomicOr(&control->scaler.found_inf, 1);
}

/// Each block's sum of squares in partial[block], and the number of its threads that saw a value that is not finite in
/// partial[gridDim + block].
__global__ void __launch_bounds__(256)
    squares(const float* gradients, std::int64_t packs, double* partial, const step_control* control) {
    __shared__ float warps[8];
    const float factor = control->factor;
    float sum = 0;
    bool finite = true;
    for (std::int64_t i = global_thread(); i < packs; i += global_threads()) {
        const auto four = reinterpret_cast<const pack<float, 4>*>(gradients)[i];
#pragma unroll
        for (float g : four.at) {
            finite = finite && training::is_finite(g);
            sum += (g * factor) * (g * factor);
        }
    }
    const float whole = block_sum(sum, warps);
    const int bad = __syncthreads_count(finite ? 0 : 1);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = static_cast<double>(whole);
        partial[gridDim.x + blockIdx.x] = bad;
    }
}

/// One block; sums in a fixed order.
__global__ void __launch_bounds__(256) finish_squares(const double* partial, unsigned count, step_control* control) {
    __shared__ double warps[8];
    double sum = 0;
    double bad = 0;
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
        sum += partial[i];
        bad += partial[count + i];
    }
    const double squares = block_sum(sum, warps);
    const double all_bad = block_sum(bad, warps);
    if (threadIdx.x != 0) return;
    control->norm = static_cast<float>(sqrt(squares));
    if (all_bad > 0) control->scaler.found_inf = 1;
}

struct adamw_constants {
    double learning_rate, beta1, beta2;
    float decay, epsilon;
};

template <class Value>
__global__ void __launch_bounds__(256)
    adamw(float* weights, const float* gradients, float* first, float* second, Value* copy, std::int64_t packs,
          adamw_constants how, const step_control* control) {
    if (control->scaler.found_inf != 0) return;
    __shared__ float corrections[2];
    if (threadIdx.x == 0) {
        const double step = control->scaler.taken + 1;
        corrections[0] = static_cast<float>(how.learning_rate / (1 - pow(how.beta1, step)));
        corrections[1] = static_cast<float>(1 / sqrt(1 - pow(how.beta2, step)));
    }
    __syncthreads();
    const float rate = corrections[0], root_factor = corrections[1];
    const float b1 = static_cast<float>(how.beta1), b2 = static_cast<float>(how.beta2);
    const float factor = control->factor, clip = control->clip;
    for (std::int64_t i = global_thread(); i < packs; i += global_threads()) {
        auto w = reinterpret_cast<pack<float, 4>*>(weights)[i];
        const auto g4 = reinterpret_cast<const pack<float, 4>*>(gradients)[i];
        auto m = reinterpret_cast<pack<float, 4>*>(first)[i];
        auto v = reinterpret_cast<pack<float, 4>*>(second)[i];
        pack<Value, 4> narrow;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float g = g4.at[j] * factor * clip;
            m.at[j] = b1 * m.at[j] + (1 - b1) * g;
            v.at[j] = b2 * v.at[j] + (1 - b2) * g * g;
            w.at[j] = w.at[j] * how.decay - rate * m.at[j] / (sqrtf(v.at[j]) * root_factor + how.epsilon);
            narrow.at[j] = rounded<Value>(w.at[j]);
        }
        reinterpret_cast<pack<float, 4>*>(weights)[i] = w;
        reinterpret_cast<pack<float, 4>*>(first)[i] = m;
        reinterpret_cast<pack<float, 4>*>(second)[i] = v;
        if (copy != nullptr) reinterpret_cast<pack<Value, 4>*>(copy)[i] = narrow;
    }
}

template <class Value>
__global__ void __launch_bounds__(256)
    sgd(float* weights, const float* gradients, float* velocity, Value* copy, std::int64_t packs, float rate,
        float momentum, float decay, const step_control* control) {
    if (control->scaler.found_inf != 0) return;
    const float factor = control->factor, clip = control->clip;
    for (std::int64_t i = global_thread(); i < packs; i += global_threads()) {
        auto w = reinterpret_cast<pack<float, 4>*>(weights)[i];
        const auto g4 = reinterpret_cast<const pack<float, 4>*>(gradients)[i];
        auto v = reinterpret_cast<pack<float, 4>*>(velocity)[i];
        pack<Value, 4> narrow;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            v.at[j] = momentum * v.at[j] + (g4.at[j] * factor * clip + decay * w.at[j]);
            w.at[j] -= rate * v.at[j];
            narrow.at[j] = rounded<Value>(w.at[j]);
        }
        reinterpret_cast<pack<float, 4>*>(weights)[i] = w;
        reinterpret_cast<pack<float, 4>*>(velocity)[i] = v;
        if (copy != nullptr) reinterpret_cast<pack<Value, 4>*>(copy)[i] = narrow;
    }
}

template <class Value>
__global__ void draw(Value* data, std::int64_t count, std::uint64_t seed, float deviation, float mean) {
    for (std::int64_t i = global_thread(); i < count; i += global_threads()) {
        data[i] = rounded<Value>(workload::random::normal(seed, static_cast<std::uint64_t>(i)) * deviation + mean);
    }
}

template <class Value>
__global__ void convert(const float* from, Value* to, std::int64_t packs) {
    for (std::int64_t i = global_thread(); i < packs; i += global_threads()) {
        const auto wide = reinterpret_cast<const pack<float, 4>*>(from)[i];
        pack<Value, 4> narrow;
#pragma unroll
        for (int j = 0; j < 4; ++j) narrow.at[j] = rounded<Value>(wide.at[j]);
        reinterpret_cast<pack<Value, 4>*>(to)[i] = narrow;
    }
}

template <class Value>
__global__ void add_widened(const Value* from, float* to, std::int64_t count, bool accumulate) {
    for (std::int64_t i = global_thread(); i < count; i += global_threads()) {
        to[i] = (accumulate ? to[i] : 0) + widened(from[i]);
    }
}

} // namespace device

namespace detail {

/// Flat buffers have gaps that make their size a multiple of 128; whoever comes with others is told.
inline std::int64_t fours(std::int64_t count, const char* kernel) {
    if (count % 4 != 0) throw error(std::string(kernel) + ": the number of elements must be a multiple of 4");
    return count / 4;
}

} // namespace detail

void begin_step(cudaStream_t on, step_control* control) {
    launch("begin_step", device::begin_step, {1, 1}, on, control);
}
void unscale(cudaStream_t on, step_control* control) {
    launch("unscale", device::unscale, {1, 1}, on, control);
}
void clip(cudaStream_t on, step_control* control, float limit) {
    launch("clip", device::clip, {1, 1}, on, control, limit);
}
void update_scale(cudaStream_t on, step_control* control, const loss_scale_rules& rules) {
    launch("update_scale", device::update_scale, {1, 1}, on, control, rules);
}

void unscale_gradients(cudaStream_t on, float* gradients, std::int64_t count, step_control* control) {
    launch("unscale_gradients", device::unscale_gradients, detail::shape_for(count), on, gradients, count, control);
}

void measure_gradients(cudaStream_t on, const float* gradients, std::int64_t count, double* partial,
                       step_control* control) {
    const std::int64_t packs = detail::fours(count, "measure_gradients");
    launch_shape shape = detail::shape_for(packs);
    shape.grid.x = std::min(shape.grid.x, sum_blocks);
    launch("squares", device::squares, shape, on, gradients, packs, partial, control);
    launch("finish_squares", device::finish_squares, {1, 256}, on, partial, shape.grid.x, control);
}

template <class Value>
void adamw(cudaStream_t on, float* weights, const float* gradients, float* first, float* second, Value* copy,
           std::int64_t count, const recipe& how, const step_control* control) {
    const std::int64_t packs = detail::fours(count, "adamw");
    const device::adamw_constants constants{how.learning_rate, how.beta1, how.beta2,
                                            static_cast<float>(1 - how.learning_rate * how.weight_decay),
                                            static_cast<float>(how.epsilon)};
    launch("adamw", device::adamw<Value>, detail::shape_for(packs), on, weights, gradients, first, second, copy, packs,
           constants, control);
}

template <class Value>
void sgd(cudaStream_t on, float* weights, const float* gradients, float* velocity, Value* copy, std::int64_t count,
         const recipe& how, const step_control* control) {
    const std::int64_t packs = detail::fours(count, "sgd");
    launch("sgd", device::sgd<Value>, detail::shape_for(packs), on, weights, gradients, velocity, copy, packs,
           static_cast<float>(how.learning_rate), static_cast<float>(how.beta1), static_cast<float>(how.weight_decay),
           control);
}

template <class Value>
void draw(cudaStream_t on, Value* data, std::int64_t count, std::uint64_t seed, float deviation, float mean) {
    launch("draw", device::draw<Value>, detail::shape_for(count), on, data, count, seed, deviation, mean);
}

template <class Value>
void convert(cudaStream_t on, const float* from, Value* to, std::int64_t count) {
    const std::int64_t packs = detail::fours(count, "convert");
    launch("convert", device::convert<Value>, detail::shape_for(packs), on, from, to, packs);
}

template <class Value>
void widen(cudaStream_t on, const Value* from, float* to, std::int64_t count, bool accumulate) {
    launch("widen", device::add_widened<Value>, detail::shape_for(count), on, from, to, count, accumulate);
}

#define PLUMBLINE_INSTANTIATE(Value)                                                                                   \
    template void adamw(cudaStream_t, float*, const float*, float*, float*, Value*, std::int64_t, const recipe&,       \
                        const step_control*);                                                                          \
    template void sgd(cudaStream_t, float*, const float*, float*, Value*, std::int64_t, const recipe&,                 \
                      const step_control*);                                                                            \
    template void draw(cudaStream_t, Value*, std::int64_t, std::uint64_t, float, float);                               \
    template void convert(cudaStream_t, const float*, Value*, std::int64_t);                                           \
    template void widen(cudaStream_t, const Value*, float*, std::int64_t, bool);
PLUMBLINE_INSTANTIATE(float)
PLUMBLINE_INSTANTIATE(training::bfloat16)
PLUMBLINE_INSTANTIATE(training::float16)
#undef PLUMBLINE_INSTANTIATE

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
