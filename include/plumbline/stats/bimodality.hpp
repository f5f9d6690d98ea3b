// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_STATS_BIMODALITY_HPP
#define PLUMBLINE_STATS_BIMODALITY_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace stats {

/// Two groups of values.
struct two_modes {
    double threshold = 0; ///< values below it belong to the lower group
    double low = 0;       ///< median of the lower group
    double high = 0;      ///< median of the upper group
    std::size_t low_count = 0;
    std::size_t high_count = 0;
};

/// Finds two modes: the best split in two (smallest sum of squares) counts when its groups are at least `separation`
/// and six within-group standard deviations (never less than `floor`) apart and the smaller one has at least two
/// values and 15 %. Needs five values.
[[nodiscard]] inline std::optional<two_modes> find_two_modes(std::vector<double> values, double separation,
                                                             double floor) {
    const std::size_t n = values.size();
    if (n < 5) return std::nullopt;
    std::sort(values.begin(), values.end());
    const auto part = [&](std::size_t from, std::size_t to) {
        return std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(from),
                                   values.begin() + static_cast<std::ptrdiff_t>(to));
    };
    double best = std::numeric_limits<double>::infinity();
    std::size_t at = 0;
    for (std::size_t split = 1; split < n; ++split) {
        const double squares = sum_of_squares(part(0, split)) + sum_of_squares(part(split, n));
        if (squares < best) {
            best = squares;
            at = split;
        }
    }
    const std::size_t minority = std::min(at, n - at);
    if (minority < 2 || static_cast<double>(minority) < 0.15 * static_cast<double>(n)) return std::nullopt;
    const two_modes found{values[at - 1] / 2 + values[at] / 2, median(part(0, at)), median(part(at, n)), at, n - at};
    const double within = std::max(std::sqrt(best / static_cast<double>(n - 2)), floor);
    if (found.high - found.low < std::max(separation, 6 * within)) return std::nullopt;
    return found;
}

} // namespace stats

PLUMBLINE_NAMESPACE_END

#endif
