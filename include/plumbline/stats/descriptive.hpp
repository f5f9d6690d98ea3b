// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_STATS_DESCRIPTIVE_HPP
#define PLUMBLINE_STATS_DESCRIPTIVE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Pure functions on numbers. Shapes are vectors of finite values; an empty vector gives NaN unless said otherwise.
namespace stats {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// An interval between two order statistics and the confidence it really has, which is at least the one asked for.
struct interval {
    double low = nan;
    double high = nan;
    double coverage = 0; ///< actual confidence; 0 when there are too few values for the confidence asked for

    [[nodiscard]] bool exists() const noexcept { return coverage > 0; }
};

/// Median: the mean of the two middle values for an even count.
[[nodiscard]] inline double median(std::vector<double> values) {
    if (values.empty()) return nan;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    // Halves are added, not the sum halved: two values near the largest double must not overflow.
    return *std::max_element(values.begin(), middle) / 2 + *middle / 2;
}

/// Quantile by linear interpolation between order statistics (type 7 of Hyndman and Fan, the default of numpy).
/// `p` is clamped to [0, 1].
[[nodiscard]] inline double quantile(std::vector<double> values, double p) {
    if (values.empty()) return nan;
    std::sort(values.begin(), values.end());
    const double at = std::clamp(p, 0.0, 1.0) * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

/// Arithmetic mean.
[[nodiscard]] inline double mean(const std::vector<double>& values) {
    if (values.empty()) return nan;
    double sum = 0;
    for (double v : values) sum += v;
    return sum / static_cast<double>(values.size());
}

/// Sum of squares around the mean, in two passes; 0 for fewer than two values.
[[nodiscard]] inline double sum_of_squares(const std::vector<double>& values) {
    if (values.size() < 2) return 0;
    const double center = mean(values);
    double sum = 0;
    for (double v : values) sum += (v - center) * (v - center);
    return sum;
}

/// Sample variance with n - 1; NaN for fewer than two values.
[[nodiscard]] inline double variance(const std::vector<double>& values) {
    if (values.size() < 2) return nan;
    return sum_of_squares(values) / static_cast<double>(values.size() - 1);
}

/// Sample standard deviation with n - 1; NaN for fewer than two values.
[[nodiscard]] inline double standard_deviation(const std::vector<double>& values) {
    return std::sqrt(variance(values));
}

/// Median absolute deviation from the median, not scaled; times 1.4826 it estimates a normal standard deviation.
[[nodiscard]] inline double mad(std::vector<double> values) {
    const double center = median(values);
    for (double& v : values) v = std::abs(v - center);
    return median(std::move(values));
}

namespace detail {

/// P(X = k) for X binomial with n fair trials.
[[nodiscard]] inline double fair_binomial(std::size_t n, std::size_t k) {
    const double trials = static_cast<double>(n);
    const double hits = static_cast<double>(k);
    const double log_choose = std::lgamma(trials + 1) - std::lgamma(hits + 1) - std::lgamma(trials - hits + 1);
    return std::exp(log_choose - trials * std::log(2.0));
}

} // namespace detail

/// The 1-based rank k of the lower order statistic of the two-sided interval [x(k), x(n-k+1)] of a median, by the
/// sign test: the largest k with 2 P(Binomial(n, 1/2) < k) <= 1 - confidence; 0 when there is none.
[[nodiscard]] inline std::size_t sign_test_rank(std::size_t n, double confidence) {
    const double alpha = std::min(1 - confidence, 1.0);
    double below = 0;               // P(Binomial(n, 1/2) <= k)
    for (std::size_t k = 0;; ++k) { // ends at the middle at the latest, where twice the tail exceeds 1
        below += detail::fair_binomial(n, k);
        if (2 * below > alpha) return k;
    }
}

/// Distribution-free confidence interval of the median between two order statistics (sign test); needs six values
/// for 95 %. Ties and any continuous or discrete distribution are allowed: the coverage is then at least as stated.
[[nodiscard]] inline interval median_interval(std::vector<double> values, double confidence = 0.95) {
    const std::size_t n = values.size();
    const std::size_t k = sign_test_rank(n, confidence);
    if (k == 0) return {};
    std::sort(values.begin(), values.end());
    double outside = 0;
    for (std::size_t j = 0; j < k; ++j) outside += 2 * detail::fair_binomial(n, j);
    return {values[k - 1], values[n - k], 1 - outside};
}

} // namespace stats

PLUMBLINE_NAMESPACE_END

#endif
