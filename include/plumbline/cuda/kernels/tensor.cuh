// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_TENSOR_CUH
#define PLUMBLINE_CUDA_KERNELS_TENSOR_CUH

#include <algorithm>

#include "plumbline/cuda/error.hpp"
#include "plumbline/cuda/kernels.hpp"
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
inline unsigned blocks_for(std::uint64_t count) {
    return static_cast<unsigned>(std::clamp<std::uint64_t>((count + 255) / 256, 1, 4096));
}

} // namespace detail

void fill_normal(cudaStream_t on, void* data, storage as, std::uint64_t count, std::uint64_t seed) {
    if (as == storage::int32) throw error("fill_normal: int32 is not an input type");
    device::fill_normal<<<detail::blocks_for(count), 256, 0, on>>>(data, as, count, seed);
    check_launch("fill_normal");
}

void count_unwritten(cudaStream_t on, const void* data, storage as, std::uint64_t count, std::uint64_t* bad) {
    device::count_unwritten<<<detail::blocks_for(count), 256, 0, on>>>(data, as, count, bad);
    check_launch("count_unwritten");
}

void gather(cudaStream_t on, const void* data, storage as, const std::int64_t* where, std::uint64_t count,
            double* values) {
    device::gather<<<detail::blocks_for(count), 256, 0, on>>>(data, as, where, count, values);
    check_launch("gather");
}

void hash(cudaStream_t on, const void* data, std::uint64_t bytes, std::uint64_t* sum) {
    device::hash<<<detail::blocks_for(bytes / 2), 256, 0, on>>>(static_cast<const std::uint16_t*>(data), bytes / 2,
                                                                sum);
    check_launch("hash");
}

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
