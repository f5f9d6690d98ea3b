// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_SIBLINGS_HPP
#define PLUMBLINE_COMPARE_SIBLINGS_HPP

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/compare/policy.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// One machine among machines of its kind.
struct sibling {
    std::string name;      ///< as given: a file name
    std::size_t rank = 0;  ///< 1 is the fastest
    std::size_t pairs = 0; ///< benchmarks it shares with at least two others
    double ratio = 1;      ///< geometric mean of its cost over the median of the others; above 1 is slower
    bool odd = false;      ///< stands apart from the others beyond their spread and the margin
    bool subject = false;  ///< the machine that is being judged
    /// Benchmarks that stand apart, worst first: id and metric, cost over the median of the others.
    std::vector<std::pair<std::string, double>> outstanding;
};

/// Machines of one kind, fastest first, and those left out with the reason.
struct ranking {
    std::vector<sibling> machines;
    std::vector<std::pair<std::string, std::string>> left_out;
};

/// Ranks `subject` among its siblings, each by its own numbers: machines are never pooled. Machines of other hardware
/// and machines without a common result are left out and named.
[[nodiscard]] inline ranking rank_siblings(const std::vector<std::pair<std::string, result::baseline>>& others,
                                           const std::pair<std::string, result::baseline>& subject,
                                           const policy& rules = {});

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
