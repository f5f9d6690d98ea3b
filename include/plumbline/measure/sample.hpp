// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_SAMPLE_HPP
#define PLUMBLINE_MEASURE_SAMPLE_HPP

#include <optional>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// One timed sample: `launches` launches that were all in the queue before the first event could fire.
/// Values are for the whole sample; the engine divides by the number of launches.
struct sample {
    double elapsed_ns = 0;            ///< device time by events (CPU backend: steady clock)
    std::optional<double> clock_mhz;  ///< mean SM clock inside the sample: clock64 over globaltimer
    std::optional<double> enqueue_ns; ///< host time it took to put the sample's work into the queue

    /// SM cycles of the sample: elapsed time times the mean clock.
    [[nodiscard]] std::optional<double> cycles() const {
        if (!clock_mhz) return std::nullopt;
        return elapsed_ns * *clock_mhz * 1e-3;
    }
};

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
