// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_STATS_DISTRIBUTIONS_HPP
#define PLUMBLINE_STATS_DISTRIBUTIONS_HPP

#include <cmath>
#include <cstddef>
#include <limits>

#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace stats {

namespace detail {

/// Continued fraction of the incomplete beta function by the modified Lentz method (Numerical Recipes, 6.4).
/// Converges in O(sqrt(max(a, b))) steps for x < (a + 1) / (a + b + 2).
[[nodiscard]] inline double beta_continued_fraction(double a, double b, double x) {
    constexpr double tiny = 1e-300;
    constexpr int enough = 100000;
    const auto away_from_zero = [](double v) { return std::abs(v) < tiny ? tiny : v; };
    double c = 1;
    double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
    double f = d;
    for (int i = 1; i < enough; ++i) {
        const double m = i;
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / away_from_zero(1 + even * d);
        c = away_from_zero(1 + even / c);
        f *= d * c;
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / away_from_zero(1 + odd * d);
        c = away_from_zero(1 + odd / c);
        f *= d * c;
        if (std::abs(d * c - 1) <= std::numeric_limits<double>::epsilon()) break;
    }
    return f;
}

/// Solves tail(x) = q for x > 0, where `tail` falls from 1/2 at 0 towards 0 and 0 < q < 1/2. Bisection: it needs no
/// derivative and ends at neighbouring doubles.
template <class Tail>
[[nodiscard]] double invert_upper_tail(const Tail& tail, double q) {
    double low = 0;
    double high = 1;
    while (tail(high) > q && high < 1e300) {
        low = high;
        high *= 2;
    }
    while (high - low > 1e-15 * high) {
        const double middle = low + (high - low) / 2;
        (tail(middle) > q ? low : high) = middle;
    }
    return high;
}

} // namespace detail

/// Regularised incomplete beta function I_x(a, b) for a, b > 0. `y` must be 1 - x: the caller usually knows it without
/// cancellation, which keeps small tails exact to about 1e-13 relative.
[[nodiscard]] inline double incomplete_beta(double a, double b, double x, double y) {
    if (x <= 0) return 0;
    if (y <= 0) return 1;
    const double log_front = std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log(y);
    if (x < (a + 1) / (a + b + 2)) return std::exp(log_front) * detail::beta_continued_fraction(a, b, x) / a;
    return 1 - std::exp(log_front) * detail::beta_continued_fraction(b, a, y) / b;
}

/// P(T > t) of Student's t with df > 0 degrees of freedom.
[[nodiscard]] inline double t_upper_tail(double t, double df) {
    if (std::isnan(t)) return nan;
    const double square = t * t;
    // t * t may overflow: the tail is then below any double.
    const double inside = std::isinf(square) ? 0 : df / (df + square);
    const double tail = incomplete_beta(df / 2, 0.5, inside, std::isinf(square) ? 1 : square / (df + square)) / 2;
    return t >= 0 ? tail : 1 - tail;
}

/// P(T <= t) of Student's t with df > 0 degrees of freedom.
[[nodiscard]] inline double t_cdf(double t, double df) {
    return t_upper_tail(-t, df);
}

/// The t that Student's t with df degrees of freedom exceeds with probability q. The upper tail is the argument
/// because 1 - q loses the digits of a small q; q outside (0, 1) gives NaN.
[[nodiscard]] inline double t_upper_quantile(double q, double df) {
    if (!(q > 0 && q < 1)) return nan;
    if (q > 0.5) return -t_upper_quantile(1 - q, df);
    if (q == 0.5) return 0;
    return detail::invert_upper_tail([df](double t) { return t_upper_tail(t, df); }, q);
}

/// Quantile of Student's t: the t with P(T <= t) = p; NaN outside (0, 1).
[[nodiscard]] inline double t_quantile(double p, double df) {
    return -t_upper_quantile(p, df);
}

/// P(Z > z) of the standard normal distribution.
[[nodiscard]] inline double normal_upper_tail(double z) {
    return std::erfc(z / std::sqrt(2.0)) / 2;
}

/// Quantile of the standard normal distribution; NaN outside (0, 1).
[[nodiscard]] inline double normal_quantile(double p) {
    if (!(p > 0 && p < 1)) return nan;
    if (p == 0.5) return 0;
    if (p < 0.5) return -detail::invert_upper_tail(normal_upper_tail, p);
    return detail::invert_upper_tail(normal_upper_tail, 1 - p);
}

/// P(X >= k) for X binomial with n trials of probability p.
[[nodiscard]] inline double binomial_upper_tail(std::size_t k, std::size_t n, double p) {
    if (k == 0) return 1;
    if (k > n) return 0;
    return incomplete_beta(static_cast<double>(k), static_cast<double>(n - k + 1), p, 1 - p);
}

/// Upper confidence bound of a proportion of which `k` of `n` were seen (Clopper and Pearson, one-sided).
[[nodiscard]] inline double binomial_upper_bound(std::size_t k, std::size_t n, double confidence = 0.95) {
    if (k >= n) return 1;
    double low = 0;
    double high = 1;
    while (high - low > 1e-14 * high) {
        const double middle = low + (high - low) / 2;
        // The bound is the p at which seeing k or fewer has probability 1 - confidence.
        (binomial_upper_tail(k + 1, n, middle) < confidence ? low : high) = middle;
    }
    return high;
}

/// Two-sided sign test that `up` and `down` are equally likely.
[[nodiscard]] inline double sign_test(std::size_t up, std::size_t down) {
    const std::size_t n = up + down;
    return std::min(1.0, 2 * binomial_upper_tail(std::max(up, down), n, 0.5));
}

/// Fisher's exact two-sided p that two groups mix alike: `a` of `n` in one, `b` of `m` in the other. The sum of the
/// probabilities of all tables that are not more likely than the one seen.
[[nodiscard]] inline double fisher_exact(std::size_t a, std::size_t n, std::size_t b, std::size_t m) {
    const auto log_choose = [](std::size_t of, std::size_t take) {
        const auto d = [](std::size_t v) { return static_cast<double>(v); };
        return std::lgamma(d(of) + 1) - std::lgamma(d(take) + 1) - std::lgamma(d(of - take) + 1);
    };
    const std::size_t hits = a + b;
    const auto log_probability = [&](std::size_t i) {
        return log_choose(n, i) + log_choose(m, hits - i) - log_choose(n + m, hits);
    };
    const double seen = log_probability(a);
    double p = 0;
    for (std::size_t i = hits > m ? hits - m : 0; i <= std::min(n, hits); ++i) {
        const double log_p = log_probability(i);
        if (log_p <= seen + 1e-7) p += std::exp(log_p); // equal tables differ by rounding only
    }
    return std::min(1.0, p);
}

} // namespace stats

PLUMBLINE_NAMESPACE_END

#endif
