// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_MACHINE_SOAK_HPP
#define PLUMBLINE_CUDA_MACHINE_SOAK_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "plumbline/cuda/canary/canary.hpp"
#include "plumbline/cuda/machine/repeat.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::machine {

/// How long a soak lasts; not shortened by a budget, because drift over this time is what it looks for.
inline constexpr std::chrono::seconds soak_length{60};

/// soak: the tensor-core canary back to back. Metrics: "time" of a launch, one value for each half second, and
/// "drift", the last tenth's time over the first tenth's. The clock of each half second is in the raw samples.
[[nodiscard]] inline measure::procedure_result soak(backend& on, std::chrono::nanoseconds length = soak_length) {
    constexpr std::size_t launches = 32; // about 8 ms a sample
    constexpr std::size_t samples = 8;
    canary::compute kernel(on, workload::probe::of(workload::probe::kind::soak), 1);
    kernel.verify(on);
    measure::recording_request how;
    how.launches = launches;
    backend::recording tape = on.record([&](std::size_t slot) { kernel.run(on, slot); }, how);
    measure::metric time = time_metric("time", {});
    const auto begin = std::chrono::steady_clock::now();
    while (time.samples.empty() || std::chrono::steady_clock::now() - begin < length) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
        std::vector<double> times;
        std::vector<double> clocks;
        do {
            for (const measure::sample& s : on.play(tape, samples)) {
                times.push_back(s.elapsed_ns / launches);
                if (s.clock_mhz) clocks.push_back(*s.clock_mhz);
            }
        } while (std::chrono::steady_clock::now() < until);
        measure::sample half_second;
        half_second.elapsed_ns = stats::median(times);
        if (!clocks.empty()) half_second.clock_mhz = stats::median(clocks);
        time.samples.push_back(half_second.elapsed_ns);
        time.raw.push_back(half_second);
    }
    const std::size_t tenth = (time.samples.size() + 9) / 10;
    const auto middle_of = [&](std::size_t first) {
        const auto at = time.samples.begin() + static_cast<std::ptrdiff_t>(first);
        return stats::median(std::vector<double>(at, at + static_cast<std::ptrdiff_t>(tenth)));
    };
    measure::metric drift;
    drift.name = "drift";
    drift.unit = "1";
    drift.samples = {middle_of(time.samples.size() - tenth) / middle_of(0)};
    kernel.verify(on); // a chip that computes wrongly when hot is found here
    measure::procedure_result found;
    found.metrics.push_back(std::move(time));
    found.metrics.push_back(std::move(drift));
    found.ran = kernel.evidence(on);
    found.verified = true;
    return found;
}

} // namespace cuda::machine

PLUMBLINE_NAMESPACE_END

#endif
