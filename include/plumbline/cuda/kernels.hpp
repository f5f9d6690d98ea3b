// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_HPP
#define PLUMBLINE_CUDA_KERNELS_HPP

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "plumbline/version.hpp"

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

/// An empty kernel.
void nothing(cudaStream_t on);

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
