// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_TENSOR_CUH
#define PLUMBLINE_CUDA_KERNELS_TENSOR_CUH

#include <algorithm>

#include "plumbline/cuda/kernels.hpp"
#include "plumbline/cuda/launch.cuh"
#include "plumbline/workload/number.hpp"
#include "plumbline/workload/random.hpp"
#include "plumbline/workload/verify.hpp"

PLUMBLINE_NAMESPACE_BEGIN

// Filling, looking at and hashing buffers: untimed work, so simple rather than fast.
namespace cuda::kernels {

namespace device {

__device__ inline std::uint64_t first_element() {
    return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline std::uint64_t element_step() {
    return std::uint64_t{gridDim.x} * blockDim.x;
}

__global__ void fill_normal(void* data, storage as, std::uint64_t count, std::uint64_t seed) {
    for (std::uint64_t i = first_element(); i < count; i += element_step()) {
        switch (as) {
        case storage::fp32:
            static_cast<float*>(data)[i] = workload::random::normal(seed, i);
            break;
        case storage::fp16:
            static_cast<std::uint16_t*>(data)[i] = workload::to_fp16(workload::random::normal(seed, i));
            break;
        case storage::bf16:
            static_cast<std::uint16_t*>(data)[i] = workload::to_bf16(workload::random::normal(seed, i));
            break;
        case storage::fp8:
            static_cast<std::uint8_t*>(data)[i] = workload::to_fp8(workload::random::normal(seed, i));
            break;
        case storage::int8:
            static_cast<std::int8_t*>(data)[i] = workload::random::normal_int8(seed, i);
            break;
        case storage::int32:
            break;
        }
    }
}

__device__ inline double load(const void* data, storage as, std::uint64_t i) {
    switch (as) {
    case storage::fp32:
        return static_cast<const float*>(data)[i];
    case storage::fp16:
        return workload::from_fp16(static_cast<const std::uint16_t*>(data)[i]);
    case storage::bf16:
        return workload::from_bf16(static_cast<const std::uint16_t*>(data)[i]);
    case storage::fp8:
        return workload::from_fp8(static_cast<const std::uint8_t*>(data)[i]);
    case storage::int8:
        return static_cast<const std::int8_t*>(data)[i];
    case storage::int32:
        return static_cast<const std::int32_t*>(data)[i];
    }
    return 0;
}

__global__ void count_unwritten(const void* data, storage as, std::uint64_t count, std::uint64_t* bad) {
    std::uint64_t found = 0;
    for (std::uint64_t i = first_element(); i < count; i += element_step()) {
        const double value = load(data, as, i);
        found += as == storage::int32 ? value == workload::poisoned_int32 : !isfinite(value);
    }
    if (found != 0) atomicAdd(reinterpret_cast<unsigned long long*>(bad), found);
}

__global__ void gather(const void* data, storage as, const std::int64_t* where, std::uint64_t count, double* values) {
    for (std::uint64_t i = first_element(); i < count; i += element_step()) {
        values[i] = load(data, as, static_cast<std::uint64_t>(where[i]));
    }
}

/// Adds to out the products of each row with x over the columns of this block's chunk. `Lanes` threads share a row:
/// a whole warp where the row is contiguous in memory, one thread where the column is, so that neighbours read
/// neighbours.
template <int Lanes>
__global__ void project(const void* data, storage as, workload::matrix_view view, const double* x, std::int64_t x_step,
                        std::int64_t chunk, double* out) {
    const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * chunk;
    const std::int64_t end = begin + chunk < view.columns ? begin + chunk : view.columns;
    const auto rows = static_cast<std::uint64_t>(view.batch * view.rows);
    for (std::uint64_t at = first_element() / Lanes; at < rows; at += element_step() / Lanes) {
        const std::int64_t of = static_cast<std::int64_t>(at) / view.rows;
        const std::int64_t row = static_cast<std::int64_t>(at) % view.rows;
        double sum = 0;
        for (std::int64_t column = begin + threadIdx.x % Lanes; column < end; column += Lanes) {
            sum += load(data, as, static_cast<std::uint64_t>(view.at(of, row, column))) * x[of * x_step + column];
        }
        // All lanes of a warp are at the same row, so none has left the loop.
        for (int step = Lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (threadIdx.x % Lanes == 0) atomicAdd(out + at, sum);
    }
}

/// One round of the SplitMix64 output function: every input bit reaches every output bit.
__device__ inline std::uint64_t mix(std::uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

__global__ void hash(const std::uint16_t* data, std::uint64_t count, std::uint64_t* sum) {
    std::uint64_t local = 0;
    // A sum over elements does not depend on the order of the threads; the index inside makes it depend on theirs.
    for (std::uint64_t i = first_element(); i < count; i += element_step()) local += mix(i << 16 | data[i]);
    atomicAdd(reinterpret_cast<unsigned long long*>(sum), local);
}

} // namespace device

namespace detail {

/// Enough blocks to fill any device; the kernels loop over the rest.
inline launch_shape shape_for(std::uint64_t count) {
    return {static_cast<unsigned>(std::clamp<std::uint64_t>((count + 255) / 256, 1, 4096)), 256};
}

/// How the columns of a projection are cut: few long rows into chunks of at least 256, side by side, until there are
/// about 2^18 threads.
struct projection_plan {
    launch_shape shape;
    std::int64_t chunk = 1; ///< columns
};

inline projection_plan plan_projection(const workload::matrix_view& view, std::int64_t lanes) {
    projection_plan plan;
    const std::int64_t threads = view.batch * view.rows * lanes;
    const std::int64_t most = std::clamp<std::int64_t>(view.columns / 256, 1, 4096);
    const std::int64_t chunks = std::clamp<std::int64_t>((std::int64_t{1} << 18) / threads, 1, most);
    plan.chunk = (view.columns + chunks - 1) / chunks;
    plan.shape = shape_for(static_cast<std::uint64_t>(threads));
    plan.shape.grid.y = static_cast<unsigned>((view.columns + plan.chunk - 1) / plan.chunk);
    return plan;
}

} // namespace detail

void fill_normal(cudaStream_t on, void* data, storage as, std::uint64_t count, std::uint64_t seed) {
    if (as == storage::int32) throw error("fill_normal: int32 is not an input type");
    launch("fill_normal", device::fill_normal, detail::shape_for(count), on, data, as, count, seed);
}

void count_unwritten(cudaStream_t on, const void* data, storage as, std::uint64_t count, std::uint64_t* bad) {
    launch("count_unwritten", device::count_unwritten, detail::shape_for(count), on, data, as, count, bad);
}

void gather(cudaStream_t on, const void* data, storage as, const std::int64_t* where, std::uint64_t count,
            double* values) {
    launch("gather", device::gather, detail::shape_for(count), on, data, as, where, count, values);
}

void project(cudaStream_t on, const void* data, storage as, const workload::matrix_view& view, const double* x,
             std::int64_t x_step, double* out) {
    const bool warp_per_row = view.column_stride == 1 && view.row_stride != 1;
    const detail::projection_plan plan = detail::plan_projection(view, warp_per_row ? 32 : 1);
    launch("project", warp_per_row ? device::project<32> : device::project<1>, plan.shape, on, data, as, view, x,
           x_step, plan.chunk, out);
}

void hash(cudaStream_t on, const void* data, std::uint64_t bytes, std::uint64_t* sum) {
    launch("hash", device::hash, detail::shape_for(bytes / 2), on, static_cast<const std::uint16_t*>(data), bytes / 2,
           sum);
}

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
