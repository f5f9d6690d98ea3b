// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_PLAN_HPP
#define PLUMBLINE_MEASURE_PLAN_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "plumbline/measure/settings.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// Shortest device time of a sample on a timer of this resolution.
[[nodiscard]] inline double shortest_sample_ns(double resolution_ns, const settings& rules) {
    return std::max(static_cast<double>(rules.min_sample.count()), rules.resolution_multiple * resolution_ns);
}

/// Whether the timer's step is more than the precision asked for, so that the figure is the timer's, not the device's.
[[nodiscard]] inline bool below_resolution(double sample_ns, double resolution_ns, const settings& rules) {
    return resolution_ns > rules.precision * sample_ns;
}

/// Launches of one sample: enough that it lasts `sample_ns`, and, where that makes it at most four times as long, a
/// whole number of rounds over the buffer sets, so that all samples do the same. `limit` bounds the number.
[[nodiscard]] inline std::size_t launches_for(double launch_ns, double sample_ns, std::size_t slots,
                                              std::size_t limit) {
    if (!(launch_ns > 0)) return limit;
    const double needed = std::ceil(sample_ns / launch_ns);
    const auto least = static_cast<std::size_t>(std::clamp(needed, 1.0, static_cast<double>(limit)));
    const std::size_t rounds = (least + slots - 1) / slots * slots;
    const bool affordable = static_cast<double>(rounds) * launch_ns <= 4 * sample_ns;
    return rounds <= limit && affordable ? rounds : least;
}

/// Samples of one burst: as many as its length holds; of longer ones min_burst_samples, in at most twice the length;
/// at least one. Four times the length took training steps of 12 ms to the power cap of an H200.
[[nodiscard]] inline std::size_t samples_of_burst(double sample_ns, const settings& rules) {
    const double fit = static_cast<double>(rules.burst.count()) / sample_ns;
    const double few = std::min(static_cast<double>(rules.min_burst_samples), 2 * fit);
    return static_cast<std::size_t>(std::clamp(std::max(fit, few), 1.0, 1e6));
}

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
