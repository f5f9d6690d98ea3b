// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_STATS_RANKS_HPP
#define PLUMBLINE_STATS_RANKS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "plumbline/stats/distributions.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace stats {

/// Largest number of values (both sides together) for which rank tests are exact; beyond it they use the normal
/// approximation with tie and continuity correction, which is then good to a few per cent of p.
inline constexpr std::size_t exact_rank_limit = 60;

/// A rank test of "candidate larger than base".
struct rank_test {
    double u = 0;         ///< pairs in which the candidate is larger, plus half of the ties
    double p_greater = 1; ///< one-sided: the candidate is larger
    double p_less = 1;    ///< one-sided: the candidate is smaller
    double p_two_sided = 1;
    bool exact = true;
};

namespace detail {

/// Midranks of all values, doubled so that they are whole numbers, in the order of `values`.
[[nodiscard]] inline std::vector<std::size_t> doubled_midranks(const std::vector<double>& values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    std::vector<std::size_t> ranks(values.size());
    for (std::size_t first = 0; first < order.size();) {
        std::size_t last = first;
        while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
        // Ranks first+1 .. last+1 share their mean; doubled it is the sum of the two ends.
        for (std::size_t i = first; i <= last; ++i) ranks[order[i]] = first + last + 2;
        first = last + 1;
    }
    return ranks;
}

/// Number of ways to choose `take` of `weights` with each sum: counts[s]. O(n * take * sum).
[[nodiscard]] inline std::vector<double> subset_sums(const std::vector<std::size_t>& weights, std::size_t take) {
    const std::size_t total = std::accumulate(weights.begin(), weights.end(), std::size_t{0});
    std::vector<std::vector<double>> counts(take + 1, std::vector<double>(total + 1, 0));
    counts[0][0] = 1;
    std::size_t seen = 0;
    std::size_t reach = 0;
    for (std::size_t weight : weights) {
        ++seen;
        reach += weight;
        for (std::size_t chosen = std::min(seen, take); chosen >= 1; --chosen) {
            for (std::size_t sum = reach; sum >= weight; --sum) counts[chosen][sum] += counts[chosen - 1][sum - weight];
        }
    }
    return counts[take];
}

/// Both tails of a distribution given as counts, at the value `at`, which belongs to both.
[[nodiscard]] inline rank_test tails(const std::vector<double>& counts, std::size_t at) {
    double below = 0;
    double above = 0;
    double total = 0;
    for (std::size_t s = 0; s < counts.size(); ++s) {
        total += counts[s];
        if (s <= at) below += counts[s];
        if (s >= at) above += counts[s];
    }
    rank_test test;
    test.p_greater = above / total;
    test.p_less = below / total;
    test.p_two_sided = std::min(1.0, 2 * std::min(test.p_greater, test.p_less));
    return test;
}

/// Normal approximation of a rank statistic with continuity correction 1/2.
[[nodiscard]] inline rank_test normal_tails(double statistic, double expected, double variance) {
    rank_test test;
    test.exact = false;
    if (variance <= 0) return test; // all values equal
    const double sd = std::sqrt(variance);
    test.p_greater = normal_upper_tail((statistic - expected - 0.5) / sd);
    test.p_less = normal_upper_tail((expected - statistic - 0.5) / sd);
    test.p_two_sided = std::min(1.0, 2 * std::min(test.p_greater, test.p_less));
    return test;
}

/// Sum of t^3 - t over groups of t equal values, from doubled midranks.
[[nodiscard]] inline double tie_term(std::vector<std::size_t> ranks) {
    std::sort(ranks.begin(), ranks.end());
    double sum = 0;
    for (std::size_t first = 0; first < ranks.size();) {
        std::size_t last = first;
        while (last < ranks.size() && ranks[last] == ranks[first]) ++last;
        const double t = static_cast<double>(last - first);
        sum += t * t * t - t;
        first = last;
    }
    return sum;
}

} // namespace detail

/// Mann-Whitney test by the normal approximation with tie and continuity correction.
[[nodiscard]] inline rank_test mann_whitney_normal(const std::vector<double>& base,
                                                   const std::vector<double>& candidate) {
    std::vector<double> all(candidate);
    all.insert(all.end(), base.begin(), base.end());
    const auto ranks = detail::doubled_midranks(all);
    const double n = static_cast<double>(candidate.size());
    const double m = static_cast<double>(base.size());
    double doubled_sum = 0;
    for (std::size_t i = 0; i < candidate.size(); ++i) doubled_sum += static_cast<double>(ranks[i]);
    const double u = doubled_sum / 2 - n * (n + 1) / 2;
    const double total = n + m;
    const double variance = n * m / 12 * (total + 1 - detail::tie_term(ranks) / (total * (total - 1)));
    rank_test test = detail::normal_tails(u, n * m / 2, variance);
    test.u = u;
    return test;
}

/// Mann-Whitney test, exact and tie-aware: the permutation distribution of the candidate's rank sum over the pooled
/// midranks, by dynamic programming on doubled midranks. An empty side gives p = 1.
[[nodiscard]] inline rank_test mann_whitney(const std::vector<double>& base, const std::vector<double>& candidate) {
    if (base.empty() || candidate.empty()) return {};
    if (base.size() + candidate.size() > exact_rank_limit) return mann_whitney_normal(base, candidate);
    std::vector<double> all(candidate);
    all.insert(all.end(), base.begin(), base.end());
    const auto ranks = detail::doubled_midranks(all);
    std::size_t sum = 0;
    for (std::size_t i = 0; i < candidate.size(); ++i) sum += ranks[i];
    rank_test test = detail::tails(detail::subset_sums(ranks, candidate.size()), sum);
    const double n = static_cast<double>(candidate.size());
    test.u = static_cast<double>(sum) / 2 - n * (n + 1) / 2;
    return test;
}

/// Smallest two-sided p that the exact test can reach with m and n untied values: 2 / C(m + n, m), at most 1.
[[nodiscard]] inline double smallest_rank_p(std::size_t m, std::size_t n) {
    double choices = 1;
    for (std::size_t i = 1; i <= m; ++i) choices *= static_cast<double>(n + i) / static_cast<double>(i);
    return std::min(1.0, 2 / choices);
}

/// Wilcoxon's signed-rank test that differences are positive, exact and tie-aware; zeros are left out. `u` is the
/// rank sum of the positive ones.
[[nodiscard]] inline rank_test signed_rank(const std::vector<double>& differences) {
    std::vector<double> magnitudes;
    std::vector<bool> positive;
    for (double d : differences) {
        if (d == 0) continue;
        magnitudes.push_back(std::abs(d));
        positive.push_back(d > 0);
    }
    if (magnitudes.empty()) return {};
    const auto ranks = detail::doubled_midranks(magnitudes);
    std::size_t sum = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (positive[i]) sum += ranks[i];
    }
    rank_test test;
    if (ranks.size() > exact_rank_limit) {
        const double n = static_cast<double>(ranks.size());
        const double variance = n * (n + 1) * (2 * n + 1) / 24 - detail::tie_term(ranks) / 48;
        test = detail::normal_tails(static_cast<double>(sum) / 2, n * (n + 1) / 4, variance);
    } else {
        const std::size_t total = std::accumulate(ranks.begin(), ranks.end(), std::size_t{0});
        std::vector<double> counts(total + 1, 0);
        counts[0] = 1;
        for (std::size_t rank : ranks) {
            for (std::size_t s = total; s >= rank; --s) counts[s] += counts[s - rank];
        }
        test = detail::tails(counts, sum);
    }
    test.u = static_cast<double>(sum) / 2;
    return test;
}

/// The 1-based rank k of the lower end of the Hodges-Lehmann interval among the sorted m * n differences (the upper
/// end is m * n - k + 1): the largest k with 2 P(U < k) <= 1 - confidence under the untied null distribution; 0 when
/// even the whole range has less coverage. `coverage` is what the interval really has.
struct shift_rank {
    std::size_t k = 0;
    double coverage = 0;
};

[[nodiscard]] inline shift_rank hodges_lehmann_rank(std::size_t m, std::size_t n, double confidence = 0.95) {
    if (m == 0 || n == 0) return {};
    const double alpha = std::min(1 - confidence, 1.0);
    if (m + n > exact_rank_limit) {
        const double product = static_cast<double>(m * n);
        const double sd = std::sqrt(product * static_cast<double>(m + n + 1) / 12);
        const double k = std::floor(product / 2 - normal_quantile(1 - alpha / 2) * sd);
        if (k < 1) return {};
        return {static_cast<std::size_t>(k), confidence};
    }
    std::vector<std::size_t> ranks(m + n);
    std::iota(ranks.begin(), ranks.end(), std::size_t{1});
    const auto counts = detail::subset_sums(ranks, n);
    const std::size_t smallest = n * (n + 1) / 2; // rank sum where U is 0
    const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
    shift_rank found;
    double below = 0;               // P(U <= k)
    for (std::size_t k = 0;; ++k) { // ends at the middle at the latest, where twice the tail exceeds 1
        below += counts[smallest + k] / total;
        if (2 * below > alpha) return found;
        found = {k + 1, 1 - 2 * below};
    }
}

/// Hodges-Lehmann estimate of a shift with its order-statistic interval.
struct shift_estimate {
    double shift = nan;
    interval range; ///< does not exist when there are too few values for the confidence asked for
};

/// Median of all differences candidate - base, with the interval of the rank given. O(m n log(m n)).
[[nodiscard]] inline shift_estimate hodges_lehmann(const std::vector<double>& base,
                                                   const std::vector<double>& candidate, const shift_rank& rank) {
    std::vector<double> differences;
    differences.reserve(base.size() * candidate.size());
    for (double c : candidate) {
        for (double b : base) differences.push_back(c - b);
    }
    if (differences.empty()) return {};
    std::sort(differences.begin(), differences.end());
    const std::size_t n = differences.size();
    shift_estimate found;
    found.shift = differences[(n - 1) / 2] / 2 + differences[n / 2] / 2;
    if (rank.k > 0) found.range = {differences[rank.k - 1], differences[n - rank.k], rank.coverage};
    return found;
}

/// The same with an interval of the confidence asked for.
[[nodiscard]] inline shift_estimate hodges_lehmann(const std::vector<double>& base,
                                                   const std::vector<double>& candidate, double confidence = 0.95) {
    return hodges_lehmann(base, candidate, hodges_lehmann_rank(base.size(), candidate.size(), confidence));
}

/// Hodges-Lehmann estimate of the centre of paired differences: the median of all Walsh averages (d_i + d_j) / 2 with
/// i <= j.
[[nodiscard]] inline double walsh_median(const std::vector<double>& differences) {
    std::vector<double> averages;
    averages.reserve(differences.size() * (differences.size() + 1) / 2);
    for (std::size_t i = 0; i < differences.size(); ++i) {
        for (std::size_t j = i; j < differences.size(); ++j) {
            averages.push_back(differences[i] / 2 + differences[j] / 2);
        }
    }
    return median(std::move(averages));
}

} // namespace stats

PLUMBLINE_NAMESPACE_END

#endif
