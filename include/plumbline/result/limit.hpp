// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RESULT_LIMIT_HPP
#define PLUMBLINE_RESULT_LIMIT_HPP

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "plumbline/core/unit.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/workload/description.hpp"
#include "plumbline/workload/probe.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace result {

namespace detail {

/// Bytes per second of the copies that a device was measured with; 0 where there was none. A copy of few bytes is
/// slower than a long one: work without FLOP is held against the copy that moves as many bytes, to a MiB, if there was
/// one. Probes are what limits are made of, and are held against the longest copy.
[[nodiscard]] inline double copy_bandwidth(const workload::description& what, const device& on) {
    const auto speed = [&](const std::string& name) {
        const auto found = on.ceilings.find(name + "bytes_per_s");
        return found == on.ceilings.end() ? 0.0 : found->second;
    };
    if (what.flop <= 0 && what.family != "probe") {
        // Half of it is read and half of it is written.
        const auto mebibytes = static_cast<std::int64_t>(what.bytes / 2 / workload::probe::mebibyte + 0.5);
        const double same = speed("copy_" + workload::probe::size_text(mebibytes * workload::probe::mebibyte) + '_');
        if (mebibytes > 0 && same > 0) return same;
    }
    return speed("copy_");
}

} // namespace detail

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
        const double copy = detail::copy_bandwidth(what, on);
        if (!(copy > 0)) return std::nullopt;
        seconds = std::max(seconds, what.bytes / copy);
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
