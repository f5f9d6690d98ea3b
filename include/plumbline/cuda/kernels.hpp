// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_HPP
#define PLUMBLINE_CUDA_KERNELS_HPP

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "plumbline/workload/dtype.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Plain declarations of everything that launches one of our kernels. The definitions are in kernels/*.cuh, which one
/// .cu of the program compiles with nvcc (cuda/program.cuh); a program that lacks it does not link.
///
/// Each function enqueues on `on` and returns; a failing launch throws cuda_error.
namespace cuda::kernels {

/// The clock of one multiprocessor: its cycle counter, read at a tick of the GPU-wide nanosecond timer.
struct alignas(16) clock_mark {
    std::uint64_t time_ns = 0; ///< 0: this multiprocessor was not read
    std::uint64_t cycles = 0;
};

/// Keeps the stream waiting until *released reaches `ticket` (tickets grow by one, wrapping), or until `deadline_ns`
/// have passed on the device; in that case *expired is set to `ticket`. Both cells are pinned host memory as the
/// device sees it.
void hold(cudaStream_t on, const unsigned* released, unsigned ticket, std::uint64_t deadline_ns, unsigned* expired);

/// Writes marks[i] for each multiprocessor i < count that the kernel lands on; run on an otherwise idle device it
/// lands on all of them. Takes about 3 us.
void mark_clocks(cudaStream_t on, clock_mark* marks, unsigned count);

/// Occupies one thread for `duration_ns` of device time: a planted slowdown of known size (0: an empty kernel).
void spin(cudaStream_t on, std::uint64_t duration_ns);

/// spin(), then *cell = value; `cell` is pinned host memory as the device sees it, so that the host can see the end.
void spin_and_signal(cudaStream_t on, std::uint64_t duration_ns, unsigned* cell, unsigned value);

/// An empty kernel.
void nothing(cudaStream_t on);

/// The address of one of the kernels, for questions about where the program's device code came from.
[[nodiscard]] const void* some_kernel() noexcept;

/// How an element is stored.
enum class storage { fp32, fp16, bf16, fp8, int8, int32 };

/// Writes elements 0 .. count-1 of the normal stream `seed` (workload/random.hpp), quantised to `as`; int32 is not
/// an input and is refused. The bits are those of workload::gemm::input_value.
void fill_normal(cudaStream_t on, void* data, storage as, std::uint64_t count, std::uint64_t seed);

/// Adds to *bad the number of elements that are not finite or, for int32, still as poisoned (workload/verify.hpp).
void count_unwritten(cudaStream_t on, const void* data, storage as, std::uint64_t count, std::uint64_t* bad);

/// values[i] = data[where[i]] as float64.
void gather(cudaStream_t on, const void* data, storage as, const std::int64_t* where, std::uint64_t count,
            double* values);

/// Adds to *sum a hash of `bytes` bytes (a multiple of 2) that sees order and every bit.
void hash(cudaStream_t on, const void* data, std::uint64_t bytes, std::uint64_t* sum);

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
