// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_PROBE_LINK_HPP
#define PLUMBLINE_CUDA_PROBE_LINK_HPP

#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <thread>

#include <cuda_runtime_api.h>

#include "plumbline/cuda/handle.hpp"
#include "plumbline/environment/check.hpp"
#include "plumbline/environment/nvidia/link.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::probe {

/// Reads the PCIe link of device `ordinal` (host.gpu must name the same one) while about a quarter of a second of
/// copies is in the queue: an idle link drops to a lower generation. Nothing is timed here. Empty where it cannot be
/// read.
[[nodiscard]] inline std::optional<environment::link_reading> link_under_load(const environment::host& machine,
                                                                              int ordinal) {
    constexpr std::size_t bytes = std::size_t{64} << 20;
    constexpr int copies = 160; // 10 GB: 0.2 s on generation 5 x16, longer on anything slower
    try {
        check(cudaSetDevice(ordinal), "cudaSetDevice");
        const pinned_memory from(bytes);
        const device_memory to(bytes);
        const stream queue = make_stream();
        for (int i = 0; i < copies; ++i) {
            check(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyHostToDevice, queue.get()),
                  "cudaMemcpyAsync", "host to device");
        }
        // The link trains up within milliseconds of the first copy.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        const auto found = environment::nvidia::read_link(machine);
        const bool still_copying = cudaStreamQuery(queue.get()) == cudaErrorNotReady;
        static_cast<void>(cudaGetLastError()); // not ready is no error
        check(cudaStreamSynchronize(queue.get()), "cudaStreamSynchronize", "host to device");
        return still_copying ? found : std::nullopt;
    } catch (const std::exception&) {
        static_cast<void>(cudaGetLastError());
        return std::nullopt; // the check that asked ends as skipped; why CUDA fails is other checks' business
    }
}

} // namespace cuda::probe

PLUMBLINE_NAMESPACE_END

#endif
