// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CLOCK_HPP
#define PLUMBLINE_CUDA_CLOCK_HPP

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "plumbline/cuda/kernels.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// Mean SM clock between two sets of marks, MHz: the median over the multiprocessors read both times of cycles over
/// nanoseconds. Nothing when no multiprocessor was read both times.
///
/// Each mark is taken at a tick of the timer, so its coarseness (32 ns to 1 us by architecture) does not matter.
[[nodiscard]] inline std::optional<double> mean_clock_mhz(const kernels::clock_mark* before,
                                                          const kernels::clock_mark* after, std::size_t count) {
    std::vector<double> clocks;
    for (std::size_t sm = 0; sm < count; ++sm) {
        if (before[sm].time_ns == 0 || after[sm].time_ns <= before[sm].time_ns) continue;
        if (after[sm].cycles <= before[sm].cycles) continue;
        clocks.push_back(static_cast<double>(after[sm].cycles - before[sm].cycles) * 1e3 /
                         static_cast<double>(after[sm].time_ns - before[sm].time_ns));
    }
    if (clocks.empty()) return std::nullopt;
    return stats::median(std::move(clocks));
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
