// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_STOP_RULE_HPP
#define PLUMBLINE_MEASURE_STOP_RULE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "plumbline/measure/settings.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// The values whose mark is set; all of them if there are no marks.
[[nodiscard]] inline std::vector<double> marked(const std::vector<double>& values, const std::vector<bool>& marks) {
    if (marks.empty()) return values;
    std::vector<double> kept;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (marks[i]) kept.push_back(values[i]);
    }
    return kept;
}

/// Clean samples that are needed of samples that last `sample_ns`: a training step of 20 ms is not run 30 times.
[[nodiscard]] inline std::size_t needed_clean(double sample_ns, const settings& rules) {
    const double filling = std::ceil(static_cast<double>(rules.enough.count()) / std::max(sample_ns, 1.0));
    const double most = static_cast<double>(rules.min_clean);
    return static_cast<std::size_t>(std::clamp(filling, std::min(static_cast<double>(rules.few_clean), most), most));
}

/// Whether enough is known: at least `needed_clean` clean samples, and both ends of the order-statistic interval of
/// their median within `precision` of it.
[[nodiscard]] inline bool precise_enough(const std::vector<double>& clean_samples, const settings& rules,
                                         double sample_ns = 0) {
    if (clean_samples.size() < needed_clean(sample_ns, rules)) return false;
    const double middle = stats::median(clean_samples);
    const stats::interval range = stats::median_interval(clean_samples, rules.confidence);
    return range.exists() && range.high - middle <= rules.precision * middle &&
           middle - range.low <= rules.precision * middle;
}

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
