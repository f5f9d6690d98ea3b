// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_TRAINING_IMAGES_CUH
#define PLUMBLINE_CUDA_KERNELS_TRAINING_IMAGES_CUH

#include "plumbline/core/error.hpp"
#include "plumbline/cuda/kernels/training_common.cuh"

PLUMBLINE_NAMESPACE_BEGIN

// BatchNorm with what follows it, and pooling. Images are pixels x channels; a thread owns the same group of N channels
// in every pixel that it reads, so that the sums of a channel stay in its registers.
namespace cuda::kernels {

namespace device {

/// Where a thread of a channel kernel stands: `threads` threads a block, a multiple of channels / N.
template <int N>
struct channel_loop {
    std::int64_t groups; ///< channels / N
    std::int64_t first;
    std::int64_t step;
    int channel; ///< the first of the thread's N channels

    __device__ explicit channel_loop(std::int64_t channels)
        : groups(channels / N), first(global_thread()), step(global_threads()),
          channel(static_cast<int>(first % groups) * N) {}
};

/// Adds up a[N] and b[N] of all threads of the block that own the same channels, and stores them in partial[block][0
/// and 1][channels]. `shared` has 2 N floats for each thread.
template <int N>
__device__ inline void store_partial(const float (&a)[N], const float (&b)[N], const channel_loop<N>& at,
                                     float* partial, float* shared) {
    float* mine = shared + threadIdx.x * 2 * N;
#pragma unroll
    for (int j = 0; j < N; ++j) {
        mine[j] = a[j];
        mine[N + j] = b[j];
    }
    __syncthreads();
    if (threadIdx.x < at.groups) {
        float sums[2 * N] = {};
        for (unsigned t = threadIdx.x; t < blockDim.x; t += static_cast<unsigned>(at.groups)) {
#pragma unroll
            for (int j = 0; j < 2 * N; ++j) sums[j] += shared[t * 2 * N + j];
        }
        const std::int64_t channels = at.groups * N;
        float* out = partial + blockIdx.x * 2 * channels + at.channel;
#pragma unroll
        for (int j = 0; j < N; ++j) {
            out[j] = sums[j];
            out[channels + j] = sums[N + j];
        }
    }
}

template <class Value, int N>
__device__ inline pack<Value, N> load_group(const Value* from, std::int64_t i) {
    return reinterpret_cast<const pack<Value, N>*>(from)[i];
}

/// Sums of x - x[first pixel] and of its square: the shift keeps a large mean from swallowing the variance.
template <class Value, int N>
__global__ void __launch_bounds__(256)
    channel_moments(const Value* x, std::int64_t pixels, std::int64_t channels, float* partial) {
    auto* shared = reinterpret_cast<float*>(dynamic_shared());
    const channel_loop<N> at(channels);
    const auto shift = load_group<Value, N>(x, at.channel / N);
    float sum[N] = {}, squares[N] = {};
    for (std::int64_t i = at.first; i < pixels * at.groups; i += at.step) {
        const auto in = load_group<Value, N>(x, i);
#pragma unroll
        for (int j = 0; j < N; ++j) {
            const float d = widened(in.at[j]) - widened(shift.at[j]);
            sum[j] += d;
            squares[j] += d * d;
        }
    }
    store_partial<N>(sum, squares, at, partial, shared);
}

/// Statistics of the batch, and the running ones.
template <class Value>
__global__ void __launch_bounds__(512)
    finish_moments(const Value* x, const float* partial, unsigned blocks, std::int64_t pixels, std::int64_t channels,
                   float epsilon, float momentum, float* mean, float* inverse_deviation, float* running_mean,
                   float* running_variance) {
    double sum, squares;
    const std::int64_t c = column_sums(partial, blocks, channels, sum, squares);
    if (c < 0) return;
    const double n = static_cast<double>(pixels);
    const double from_shift = sum / n;
    const double around_mean = fmax(squares - sum * from_shift, 0.0);
    const float here = static_cast<float>(static_cast<double>(widened(x[c])) + from_shift);
    mean[c] = here;
    inverse_deviation[c] = static_cast<float>(1 / sqrt(around_mean / n + static_cast<double>(epsilon)));
    running_mean[c] += momentum * (here - running_mean[c]);
    running_variance[c] += momentum * (static_cast<float>(around_mean / fmax(n - 1, 1.0)) - running_variance[c]);
}

template <class Value, int N>
__global__ void __launch_bounds__(256)
    normalise_channels(const Value* x, const float* scale, const float* shift, const float* mean,
                       const float* inverse_deviation, const Value* shortcut, Value* y, std::int64_t pixels,
                       std::int64_t channels, bool relu) {
    const channel_loop<N> at(channels);
    float factor[N], offset[N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
        factor[j] = inverse_deviation[at.channel + j] * scale[at.channel + j];
        offset[j] = shift[at.channel + j];
    }
    float centre[N];
#pragma unroll
    for (int j = 0; j < N; ++j) centre[j] = mean[at.channel + j];
    for (std::int64_t i = at.first; i < pixels * at.groups; i += at.step) {
        const auto in = load_group<Value, N>(x, i);
        pack<Value, N> out, other{};
        if (shortcut != nullptr) other = load_group<Value, N>(shortcut, i);
#pragma unroll
        for (int j = 0; j < N; ++j) {
            float v = (widened(in.at[j]) - centre[j]) * factor[j] + offset[j];
            if (shortcut != nullptr) v += widened(other.at[j]);
            out.at[j] = rounded<Value>(relu && v < 0 ? 0 : v); // a NaN stays one
        }
        reinterpret_cast<pack<Value, N>*>(y)[i] = out;
    }
}

/// The gradient behind the relu, where there is one: zero where its output `y` is.
template <class Value, int N>
__device__ inline void behind_relu(const Value* d_y, const Value* y, std::int64_t i, float (&gradient)[N]) {
    const auto in = load_group<Value, N>(d_y, i);
    pack<Value, N> out{};
    if (y != nullptr) out = load_group<Value, N>(y, i);
#pragma unroll
    for (int j = 0; j < N; ++j) gradient[j] = y != nullptr && !(widened(out.at[j]) > 0) ? 0 : widened(in.at[j]);
}

/// Sums of the gradient and of gradient x normed x.
template <class Value, int N>
__global__ void __launch_bounds__(256)
    channel_gradients(const Value* d_y, const Value* x, const Value* y, const float* mean,
                      const float* inverse_deviation, std::int64_t pixels, std::int64_t channels, float* partial) {
    auto* shared = reinterpret_cast<float*>(dynamic_shared());
    const channel_loop<N> at(channels);
    float centre[N], inverse[N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
        centre[j] = mean[at.channel + j];
        inverse[j] = inverse_deviation[at.channel + j];
    }
    float sum[N] = {}, product[N] = {};
    for (std::int64_t i = at.first; i < pixels * at.groups; i += at.step) {
        float g[N];
        behind_relu<Value, N>(d_y, y, i, g);
        const auto in = load_group<Value, N>(x, i);
#pragma unroll
        for (int j = 0; j < N; ++j) {
            sum[j] += g[j];
            product[j] += g[j] * (widened(in.at[j]) - centre[j]) * inverse[j];
        }
    }
    store_partial<N>(sum, product, at, partial, shared);
}

template <class Value, int N>
__global__ void __launch_bounds__(256)
    normalise_backward(const Value* d_y, const Value* x, const Value* y, const float* scale, const float* mean,
                       const float* inverse_deviation, const float* sums, Value* d_x, Value* d_shortcut,
                       std::int64_t pixels, std::int64_t channels) {
    const channel_loop<N> at(channels);
    float factor[N], centre[N], inverse[N], mean_gradient[N], mean_product[N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
        const int c = at.channel + j;
        centre[j] = mean[c];
        inverse[j] = inverse_deviation[c];
        factor[j] = scale[c] * inverse[j];
        mean_gradient[j] = sums[c] / static_cast<float>(pixels);
        mean_product[j] = sums[channels + c] / static_cast<float>(pixels);
    }
    for (std::int64_t i = at.first; i < pixels * at.groups; i += at.step) {
        float g[N];
        behind_relu<Value, N>(d_y, y, i, g);
        const auto in = load_group<Value, N>(x, i);
        pack<Value, N> out, past;
#pragma unroll
        for (int j = 0; j < N; ++j) {
            const float normed = (widened(in.at[j]) - centre[j]) * inverse[j];
            out.at[j] = rounded<Value>(factor[j] * (g[j] - (mean_gradient[j] + normed * mean_product[j])));
            past.at[j] = rounded<Value>(g[j]);
        }
        reinterpret_cast<pack<Value, N>*>(d_x)[i] = out;
        if (d_shortcut != nullptr) reinterpret_cast<pack<Value, N>*>(d_shortcut)[i] = past;
    }
}

/// A block goes from position to position, its threads over the channels. Where a channel lies in the window is worked
/// out once a block: `places` has for each channel its row, its column (bytes 0 and 1) and its colour (byte 2), and
/// ~0 where there is none.
template <class From, class Value>
__global__ void __launch_bounds__(256) patches(const From* images, Value* x, training::patch_shape s) {
    auto* places = reinterpret_cast<unsigned*>(dynamic_shared());
    const int channels = static_cast<int>(s.channels), wide = static_cast<int>(s.window());
    for (int c = static_cast<int>(threadIdx.x); c < channels; c += static_cast<int>(blockDim.x)) {
        const int tap = c / 3;
        const int place = tap / wide | tap % wide << 8 | c % 3 << 16;
        places[c] = tap < wide * wide ? static_cast<unsigned>(place) : ~0u;
    }
    __syncthreads();
    const int side = static_cast<int>(s.side), size = static_cast<int>(s.size), cell = size / side;
    const int first = (cell - wide) / 2;
    const int row_step = s.interleaved ? 3 * size : size, column_step = s.interleaved ? 3 : 1;
    const int colour_step = s.interleaved ? 1 : size * size;
    const auto all = static_cast<unsigned>(s.batch * side * side), pixels = static_cast<unsigned>(side * side);
    for (unsigned at = blockIdx.x; at < all; at += gridDim.x) {
        const int within = static_cast<int>(at % pixels);
        const int top = within / side * cell + first, left = within % side * cell + first;
        const From* const image = images + std::int64_t{at / pixels} * 3 * size * size;
        for (int c = static_cast<int>(threadIdx.x); c < channels; c += static_cast<int>(blockDim.x)) {
            const unsigned place = places[c];
            const int row = top + static_cast<int>(place & 255), column = left + static_cast<int>(place >> 8 & 255);
            const bool inside = place != ~0u && row >= 0 && row < size && column >= 0 && column < size;
            const int colour = static_cast<int>(place >> 16);
            x[std::int64_t{at} * channels + c] =
                inside ? rounded<Value>(widened(image[row * row_step + column * column_step + colour * colour_step]))
                       : Value{};
        }
    }
}

/// One thread for each image and channel.
template <class Value>
__global__ void __launch_bounds__(128)
    average(const Value* x, Value* y, std::int64_t count, std::int64_t pixels, std::int64_t channels) {
    const std::int64_t at = global_thread();
    if (at >= count) return;
    const Value* from = x + at / channels * pixels * channels + at % channels;
    float sum = 0;
    for (std::int64_t i = 0; i < pixels; ++i) sum += widened(from[i * channels]);
    y[at] = rounded<Value>(sum / static_cast<float>(pixels));
}

template <class Value>
__global__ void __launch_bounds__(256)
    average_backward(const Value* d_y, Value* d_x, std::int64_t count, std::int64_t pixels, std::int64_t channels) {
    for (std::int64_t i = global_thread(); i < count; i += global_threads()) {
        const Value g = d_y[i / (pixels * channels) * channels + i % channels];
        d_x[i] = rounded<Value>(widened(g) / static_cast<float>(pixels));
    }
}

} // namespace device

namespace detail {

/// Threads of a channel kernel: a multiple of the groups, so that a thread keeps its channels from step to step.
template <int N>
launch_shape channel_shape(std::int64_t pixels, std::int64_t channels, const char* kernel) {
    const std::int64_t groups = channels / N;
    if (groups > 256) {
        throw error(std::string(kernel) + ": " + std::to_string(channels) + " channels, at most " +
                    std::to_string(256 * N) + " of this type");
    }
    const std::int64_t threads = 256 / groups * groups;
    const std::int64_t blocks = std::clamp<std::int64_t>(pixels * groups / (threads * 4), 1, partial_blocks);
    return {static_cast<unsigned>(blocks), static_cast<unsigned>(threads)};
}

template <class Value, int N>
void batchnorm(cudaStream_t on, const Value* x, const float* scale, const float* shift, const Value* shortcut, Value* y,
               float* mean, float* inverse_deviation, float* running_mean, float* running_variance, std::int64_t pixels,
               std::int64_t channels, float epsilon, float momentum, bool relu, float* partial) {
    launch_shape shape = channel_shape<N>(pixels, channels, "batchnorm");
    launch_shape summing = shape;
    summing.shared_bytes = shape.block.x * 2 * N * sizeof(float);
    launch("channel_moments", device::channel_moments<Value, N>, summing, on, x, pixels, channels, partial);
    launch("finish_moments", device::finish_moments<Value>, column_shape(channels), on, x,
           static_cast<const float*>(partial), shape.grid.x, pixels, channels, epsilon, momentum, mean,
           inverse_deviation, running_mean, running_variance);
    launch("normalise_channels", device::normalise_channels<Value, N>, shape, on, x, scale, shift,
           static_cast<const float*>(mean), static_cast<const float*>(inverse_deviation), shortcut, y, pixels, channels,
           relu);
}

template <class Value, int N>
void batchnorm_backward(cudaStream_t on, const Value* d_y, const Value* x, const Value* y, const float* scale,
                        const float* mean, const float* inverse_deviation, Value* d_x, Value* d_shortcut,
                        float* d_scale, float* d_shift, std::int64_t pixels, std::int64_t channels, bool accumulate,
                        float* partial) {
    launch_shape shape = channel_shape<N>(pixels, channels, "batchnorm_backward");
    launch_shape summing = shape;
    summing.shared_bytes = shape.block.x * 2 * N * sizeof(float);
    launch("channel_gradients", device::channel_gradients<Value, N>, summing, on, d_y, x, y, mean, inverse_deviation,
           pixels, channels, partial);
    float* sums = partial + std::size_t{2} * partial_blocks * static_cast<std::size_t>(channels);
    launch("finish_gradients", device::finish_gradients, column_shape(channels), on, static_cast<const float*>(partial),
           shape.grid.x, channels, accumulate, sums, d_scale, d_shift);
    launch("normalise_backward", device::normalise_backward<Value, N>, shape, on, d_y, x, y, scale, mean,
           inverse_deviation, static_cast<const float*>(sums), d_x, d_shortcut, pixels, channels);
}

} // namespace detail

template <class Value>
void batchnorm(cudaStream_t on, const Value* x, const float* scale, const float* shift, const Value* shortcut, Value* y,
               float* mean, float* inverse_deviation, float* running_mean, float* running_variance, std::int64_t pixels,
               std::int64_t channels, float epsilon, float momentum, bool relu, float* partial) {
    constexpr int n = device::pack_size<Value>;
    const auto with = detail::whole_packs<Value>(channels, x, shortcut, y) ? detail::batchnorm<Value, n>
                                                                           : detail::batchnorm<Value, 1>;
    with(on, x, scale, shift, shortcut, y, mean, inverse_deviation, running_mean, running_variance, pixels, channels,
         epsilon, momentum, relu, partial);
}

template <class Value>
void batchnorm_backward(cudaStream_t on, const Value* d_y, const Value* x, const Value* y, const float* scale,
                        const float* mean, const float* inverse_deviation, Value* d_x, Value* d_shortcut,
                        float* d_scale, float* d_shift, std::int64_t pixels, std::int64_t channels, bool accumulate,
                        float* partial) {
    constexpr int n = device::pack_size<Value>;
    const auto with = detail::whole_packs<Value>(channels, d_y, x, y, d_x, d_shortcut)
                          ? detail::batchnorm_backward<Value, n>
                          : detail::batchnorm_backward<Value, 1>;
    with(on, d_y, x, y, scale, mean, inverse_deviation, d_x, d_shortcut, d_scale, d_shift, pixels, channels, accumulate,
         partial);
}

template <class From, class Value>
void patches(cudaStream_t on, const From* images, Value* x, const training::patch_shape& s) {
    const std::int64_t positions = s.batch * s.side * s.side;
    constexpr std::int64_t most = std::int64_t{1} << 30; // they are counted in 32 bits, as are an image's values
    if (s.channels > 8192 || s.size > 16384 || positions > most) {
        throw error("patches: " + std::to_string(positions) + " positions of " + std::to_string(s.channels) +
                    " channels in images of " + std::to_string(s.size) + " rows, at most 2^30, 8192 and 16384");
    }
    if (positions == 0) return;
    const auto blocks = std::min<std::int64_t>(positions, 4096);
    const auto threads = static_cast<unsigned>(std::min<std::int64_t>((s.channels + 31) / 32 * 32, 256));
    launch_shape shape{static_cast<unsigned>(blocks), threads};
    shape.shared_bytes = static_cast<std::size_t>(s.channels) * sizeof(unsigned);
    launch("patches", device::patches<From, Value>, shape, on, images, x, s);
}

template <class Value>
void average(cudaStream_t on, const Value* x, Value* y, std::int64_t batch, std::int64_t pixels,
             std::int64_t channels) {
    const std::int64_t count = batch * channels;
    launch("average", device::average<Value>, {static_cast<unsigned>((count + 127) / 128), 128}, on, x, y, count,
           pixels, channels);
}

template <class Value>
void average_backward(cudaStream_t on, const Value* d_y, Value* d_x, std::int64_t batch, std::int64_t pixels,
                      std::int64_t channels) {
    const std::int64_t count = batch * pixels * channels;
    launch("average_backward", device::average_backward<Value>, detail::shape_for(count), on, d_y, d_x, count, pixels,
           channels);
}

#define PLUMBLINE_INSTANTIATE(Value)                                                                                   \
    template void batchnorm(cudaStream_t, const Value*, const float*, const float*, const Value*, Value*, float*,      \
                            float*, float*, float*, std::int64_t, std::int64_t, float, float, bool, float*);           \
    template void batchnorm_backward(cudaStream_t, const Value*, const Value*, const Value*, const float*,             \
                                     const float*, const float*, Value*, Value*, float*, float*, std::int64_t,         \
                                     std::int64_t, bool, float*);                                                      \
    template void patches(cudaStream_t, const float*, Value*, const training::patch_shape&);                           \
    template void patches(cudaStream_t, const training::float16*, Value*, const training::patch_shape&);               \
    template void average(cudaStream_t, const Value*, Value*, std::int64_t, std::int64_t, std::int64_t);               \
    template void average_backward(cudaStream_t, const Value*, Value*, std::int64_t, std::int64_t, std::int64_t);
PLUMBLINE_INSTANTIATE(float)
PLUMBLINE_INSTANTIATE(training::bfloat16)
PLUMBLINE_INSTANTIATE(training::float16)
#undef PLUMBLINE_INSTANTIATE

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
