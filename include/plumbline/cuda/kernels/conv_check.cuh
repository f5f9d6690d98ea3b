// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_CONV_CHECK_CUH
#define PLUMBLINE_CUDA_KERNELS_CONV_CHECK_CUH

#include <algorithm>

#include "plumbline/cuda/kernels.hpp"
#include "plumbline/cuda/kernels/tensor.cuh"
#include "plumbline/cuda/launch.cuh"
#include "plumbline/workload/conv_sums.hpp"

PLUMBLINE_NAMESPACE_BEGIN

// What a convolution's channels must add up to at every place: untimed work, so simple rather than fast.
namespace cuda::kernels {

namespace device {

/// For each group and step of the depth, the factors of the group's channels added up with their signs.
__global__ void add_conv_channels(workload::conv::sums of, const void* factors, storage as, const double* signs,
                                  double* out) {
    const std::int64_t depth = of.depth();
    const std::int64_t channels = of.channels() / of.groups();
    const auto count = static_cast<std::uint64_t>(of.groups() * depth);
    for (std::uint64_t i = first_element(); i < count; i += element_step()) {
        const std::int64_t group = static_cast<std::int64_t>(i) / depth;
        const std::int64_t at = static_cast<std::int64_t>(i) % depth;
        double sum = 0;
        for (std::int64_t channel = group * channels; channel < (group + 1) * channels; ++channel) {
            sum += signs[channel] * load(factors, as, static_cast<std::uint64_t>(of.channel_factor(channel, at)));
        }
        out[i] = sum;
    }
}

/// Adds to out[place] the products of what add_conv_channels made with the factors of the place, a warp for each place
/// and chunk of the depth.
__global__ void multiply_conv_places(workload::conv::sums of, const void* factors, storage as,
                                     const double* channel_sums, std::int64_t chunk, double* out) {
    const std::int64_t depth = of.depth();
    const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * chunk;
    const std::int64_t all = of.groups() * depth;
    const std::int64_t end = begin + chunk < all ? begin + chunk : all;
    const auto places = static_cast<std::uint64_t>(of.places());
    for (std::uint64_t place = first_element() / 32; place < places; place += element_step() / 32) {
        double sum = 0;
        for (std::int64_t i = begin + threadIdx.x % 32; i < end; i += 32) {
            const std::int64_t from = of.place_factor(static_cast<std::int64_t>(place), i / depth, i % depth);
            if (from >= 0) sum += channel_sums[i] * load(factors, as, static_cast<std::uint64_t>(from));
        }
        // All lanes of a warp are at the same place, so none has left the loop.
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (threadIdx.x % 32 == 0) atomicAdd(out + place, sum);
    }
}

/// For each place, the output's channels added up with their signs.
__global__ void add_conv_outputs(workload::conv::sums of, const void* output, storage as, const double* signs,
                                 double* out) {
    const auto places = static_cast<std::uint64_t>(of.places());
    for (std::uint64_t place = first_element(); place < places; place += element_step()) {
        double sum = 0;
        for (std::int64_t channel = 0; channel < of.channels(); ++channel) {
            const std::int64_t from = of.index(channel, static_cast<std::int64_t>(place));
            sum += signs[channel] * load(output, as, static_cast<std::uint64_t>(from));
        }
        out[place] = sum;
    }
}

} // namespace device

void add_conv_channels(cudaStream_t on, const workload::conv::sums& of, const void* factors, storage as,
                       const double* signs, double* out) {
    launch("add_conv_channels", device::add_conv_channels,
           detail::shape_for(static_cast<std::uint64_t>(of.groups() * of.depth())), on, of, factors, as, signs, out);
}

void multiply_conv_places(cudaStream_t on, const workload::conv::sums& of, const void* factors, storage as,
                          const double* channel_sums, double* out) {
    launch_shape shape = detail::shape_for(static_cast<std::uint64_t>(of.places()) * 32);
    // Few places with long sums are cut into chunks of at least 1024 steps, until there are about 2^18 threads.
    const std::int64_t all = of.groups() * of.depth();
    const std::int64_t chunks = std::clamp<std::int64_t>((std::int64_t{1} << 18) / (of.places() * 32), 1,
                                                         std::clamp<std::int64_t>(all / 1024, 1, 4096));
    const std::int64_t chunk = (all + chunks - 1) / chunks;
    shape.grid.y = static_cast<unsigned>((all + chunk - 1) / chunk);
    launch("multiply_conv_places", device::multiply_conv_places, shape, on, of, factors, as, channel_sums, chunk, out);
}

void add_conv_outputs(cudaStream_t on, const workload::conv::sums& of, const void* output, storage as,
                      const double* signs, double* out) {
    launch("add_conv_outputs", device::add_conv_outputs, detail::shape_for(static_cast<std::uint64_t>(of.places())), on,
           of, output, as, signs, out);
}

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
