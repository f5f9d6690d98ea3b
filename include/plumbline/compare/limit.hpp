// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_LIMIT_HPP
#define PLUMBLINE_COMPARE_LIMIT_HPP

#include <algorithm>
#include <optional>
#include <string>

#include "plumbline/compare/policy.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// Speed-of-light time of one launch in seconds, max(FLOP / peak, bytes / bandwidth), from the measured ceilings of a
/// device ("gemm_<dtype>_flop_per_s", "copy_bytes_per_s"). Absent where no ceiling applies: the work has no formula,
/// or its data may stay in a cache.
[[nodiscard]] inline std::optional<double> speed_of_light_s(const workload::description& what,
                                                            const result::device& on) {
    const auto ceiling = [&](const std::string& name) -> std::optional<double> {
        const auto at = on.ceilings.find(name);
        if (at == on.ceilings.end() || !(at->second > 0)) return std::nullopt;
        return at->second;
    };
    const auto text = [&](const std::string& name) -> std::string {
        const auto at = what.params.find(name);
        return at == what.params.end() ? std::string() : plumbline::to_string(at->second);
    };
    double seconds = 0;
    if (what.flop > 0) {
        if (const auto peak = ceiling("gemm_" + text("dtype") + "_flop_per_s")) seconds = what.flop / *peak;
    }
    if (what.bytes > 0 && text("cache") != "hot") {
        if (const auto peak = ceiling("copy_bytes_per_s")) seconds = std::max(seconds, what.bytes / *peak);
    }
    if (seconds > 0) return seconds;
    return std::nullopt;
}

/// Whether a benchmark's speed follows the board's compute factor (clock under matrix load): by its FLOP per byte, or
/// as the policy's rules say.
[[nodiscard]] inline bool is_compute_bound(const workload::description& what, std::optional<bool> by_rule,
                                           const policy& rules) {
    if (by_rule) return *by_rule;
    if (what.flop <= 0) return false;
    return what.bytes <= 0 || what.flop / what.bytes >= rules.compute_intensity;
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
