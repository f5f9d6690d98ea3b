// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RESULT_LIMIT_HPP
#define PLUMBLINE_RESULT_LIMIT_HPP

#include <algorithm>
#include <optional>
#include <string>

#include "plumbline/core/unit.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/workload/description.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace result {

/// Seconds the measured limits of a device leave for one launch: max(FLOP / peak of the dtype, bytes / copy bandwidth),
/// the roofline. Empty when a limit that is needed was not measured, or the work has no formula.
[[nodiscard]] inline std::optional<double> speed_of_light_s(const workload::description& what, const device& on) {
    if (what.flop <= 0 && what.bytes <= 0) return std::nullopt;
    double seconds = 0;
    if (what.flop > 0) {
        const auto dtype = what.params.find("dtype");
        if (dtype == what.params.end()) return std::nullopt;
        const auto peak = on.ceilings.find("gemm_" + to_string(dtype->second) + "_flop_per_s");
        if (peak == on.ceilings.end() || !(peak->second > 0)) return std::nullopt;
        seconds = what.flop / peak->second;
    }
    if (what.bytes > 0) {
        const auto copy = on.ceilings.find("copy_bytes_per_s");
        if (copy == on.ceilings.end() || !(copy->second > 0)) return std::nullopt;
        seconds = std::max(seconds, what.bytes / copy->second);
    }
    return seconds;
}

/// How much of the device's measured limit a time per launch reaches, 1 being all of it; empty where the limit is not
/// known or the metric is not a time. A little above 1 is possible: the limits are measurements too.
[[nodiscard]] inline std::optional<double> fraction_of_limit(const workload::description& what, const device& on,
                                                             double value) {
    const auto unit = find_unit(what.unit);
    if (!unit || unit->dimension != "s" || !(value > 0)) return std::nullopt;
    const auto limit = speed_of_light_s(what, on);
    if (!limit) return std::nullopt;
    return *limit / (value * unit->factor);
}

} // namespace result

PLUMBLINE_NAMESPACE_END

#endif
