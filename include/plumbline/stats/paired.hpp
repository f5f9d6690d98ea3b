// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_STATS_PAIRED_HPP
#define PLUMBLINE_STATS_PAIRED_HPP

#include <cstddef>
#include <vector>

#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace stats {

/// One round of interleaved sessions: all values of both sides that were taken close together. In the order ABBA a
/// drift that is linear in time cancels in the difference of the means.
struct round {
    std::vector<double> base;
    std::vector<double> candidate;
};

/// The rounds' differences and what they weigh.
struct paired_differences {
    std::vector<double> values; ///< mean of the candidate minus mean of the base, one for each complete round
    double weight = 0; ///< variance of a difference in units of the variance of one session: 1/k_b + 1/k_c, averaged
};

/// Differences of all rounds that have both sides; the others are left out.
[[nodiscard]] inline paired_differences difference_rounds(const std::vector<round>& rounds) {
    paired_differences found;
    for (const round& r : rounds) {
        if (r.base.empty() || r.candidate.empty()) continue;
        found.values.push_back(mean(r.candidate) - mean(r.base));
        found.weight += 1 / static_cast<double>(r.base.size()) + 1 / static_cast<double>(r.candidate.size());
    }
    if (!found.values.empty()) found.weight /= static_cast<double>(found.values.size());
    return found;
}

} // namespace stats

PLUMBLINE_NAMESPACE_END

#endif
