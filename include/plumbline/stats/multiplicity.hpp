// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_STATS_MULTIPLICITY_HPP
#define PLUMBLINE_STATS_MULTIPLICITY_HPP

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace stats {

namespace detail {

/// Step-up adjustment: factor * n / rank * p, made monotone from the largest p down, at most 1.
[[nodiscard]] inline std::vector<double> step_up(const std::vector<double>& p, double factor) {
    std::vector<std::size_t> order(p.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
    std::vector<double> adjusted(p.size(), 1);
    double smallest = 1;
    for (std::size_t rank = p.size(); rank >= 1; --rank) {
        const std::size_t i = order[rank - 1];
        smallest = std::min(smallest, p[i] * factor * static_cast<double>(p.size()) / static_cast<double>(rank));
        adjusted[i] = smallest;
    }
    return adjusted;
}

} // namespace detail

/// Benjamini and Hochberg (1995): adjusted p values, in the order given. Controls the false discovery rate of
/// independent or positively dependent tests.
[[nodiscard]] inline std::vector<double> benjamini_hochberg(const std::vector<double>& p) {
    return detail::step_up(p, 1);
}

/// Benjamini and Yekutieli (2001): the same under any dependence, at the price of the factor 1 + 1/2 + ... + 1/n.
[[nodiscard]] inline std::vector<double> benjamini_yekutieli(const std::vector<double>& p) {
    double factor = 0;
    for (std::size_t i = 1; i <= p.size(); ++i) factor += 1 / static_cast<double>(i);
    return detail::step_up(p, factor);
}

} // namespace stats

PLUMBLINE_NAMESPACE_END

#endif
