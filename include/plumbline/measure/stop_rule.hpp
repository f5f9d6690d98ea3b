// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_STOP_RULE_HPP
#define PLUMBLINE_MEASURE_STOP_RULE_HPP

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

/// Whether enough is known: at least `min_clean` clean samples, and both ends of the order-statistic interval of
/// their median within `precision` of it.
[[nodiscard]] inline bool precise_enough(const std::vector<double>& clean_samples, const settings& rules) {
    if (clean_samples.size() < rules.min_clean) return false;
    const double middle = stats::median(clean_samples);
    const stats::interval range = stats::median_interval(clean_samples, rules.confidence);
    return range.exists() && range.high - middle <= rules.precision * middle &&
           middle - range.low <= rules.precision * middle;
}

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
