// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_TIMING_CUH
#define PLUMBLINE_CUDA_KERNELS_TIMING_CUH

#include "plumbline/cuda/error.hpp"
#include "plumbline/cuda/kernels.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::kernels {

namespace device {

__device__ inline std::uint64_t timer_ns() {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__global__ void hold(const volatile unsigned* released, unsigned ticket, std::uint64_t deadline_ns,
                     volatile unsigned* expired) {
    const std::uint64_t begin = timer_ns();
    // The difference is signed, so that tickets may wrap.
    while (static_cast<int>(*released - ticket) < 0) {
        if (timer_ns() - begin > deadline_ns) {
            *expired = ticket;
            __threadfence_system();
            return;
        }
        __nanosleep(200); // leaves the bus alone between two looks at host memory
    }
}

__global__ void mark_clocks(clock_mark* marks, unsigned count) {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm >= count) return;
    // The timer may tick only once a microsecond: wait for a tick and read the cycles there.
    const std::uint64_t first = timer_ns();
    clock_mark here;
    int looks = 0;
    do {
        here.time_ns = timer_ns();
        here.cycles = static_cast<std::uint64_t>(clock64());
    } while (here.time_ns == first && ++looks < 10000);
    // One 16-byte store: two blocks on one multiprocessor leave one of their marks, never a mixture.
    *reinterpret_cast<ulonglong2*>(marks + sm) = make_ulonglong2(here.time_ns, here.cycles);
}

__global__ void spin(std::uint64_t duration_ns) {
    const std::uint64_t begin = timer_ns();
    while (timer_ns() - begin < duration_ns) {
    }
}

__global__ void spin_and_signal(std::uint64_t duration_ns, volatile unsigned* cell, unsigned value) {
    const std::uint64_t begin = timer_ns();
    while (timer_ns() - begin < duration_ns) {
    }
    *cell = value;
    __threadfence_system();
}

__global__ void nothing() {}

} // namespace device

void hold(cudaStream_t on, const unsigned* released, unsigned ticket, std::uint64_t deadline_ns, unsigned* expired) {
    device::hold<<<1, 1, 0, on>>>(released, ticket, deadline_ns, expired);
    check_launch("hold");
}

void mark_clocks(cudaStream_t on, clock_mark* marks, unsigned count) {
    // At most one block for each multiprocessor: the hardware spreads them before it doubles up.
    device::mark_clocks<<<count / 2, 1, 0, on>>>(marks, count);
    check_launch("mark_clocks");
}

void spin(cudaStream_t on, std::uint64_t duration_ns) {
    device::spin<<<1, 1, 0, on>>>(duration_ns);
    check_launch("spin");
}

void spin_and_signal(cudaStream_t on, std::uint64_t duration_ns, unsigned* cell, unsigned value) {
    device::spin_and_signal<<<1, 1, 0, on>>>(duration_ns, cell, value);
    check_launch("spin_and_signal");
}

void nothing(cudaStream_t on) {
    device::nothing<<<1, 1, 0, on>>>();
    check_launch("nothing");
}

const void* some_kernel() noexcept {
    return reinterpret_cast<const void*>(&device::nothing);
}

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
