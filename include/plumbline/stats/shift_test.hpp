// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_STATS_SHIFT_TEST_HPP
#define PLUMBLINE_STATS_SHIFT_TEST_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "plumbline/stats/distributions.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace stats {

/// What is known about the spread between sessions before any is seen.
struct prior {
    double s0 = 0;    ///< standard deviation
    double d0 = 0;    ///< degrees of freedom it is worth; 0: the ordinary pooled t test
    double floor = 0; ///< smallest standard deviation believed in
};

/// The spread between epochs (boots, days, boards), which more sessions of one epoch cannot average out.
struct epoch_term {
    double s_e = 0;
    std::size_t base_epochs = 1;
    std::size_t candidate_epochs = 1;
    double df = 0; ///< degrees of freedom behind s_e when it was estimated; 0: known, or a matter of policy

    [[nodiscard]] double variance() const {
        const auto share = [](std::size_t n) { return 1 / static_cast<double>(std::max<std::size_t>(n, 1)); };
        return s_e * s_e * (share(base_epochs) + share(candidate_epochs));
    }
};

/// A difference of means with its error, distributed as delta + se * T(df).
struct shift {
    double delta = 0;    ///< mean of the candidate minus mean of the base
    double s_pooled = 0; ///< standard deviation between sessions as seen; 0 without any degree of freedom
    double s = 0;        ///< the moderated one that is used
    double se = 0;
    double df = 0;

    /// p that the candidate is not larger (one-sided: small means larger).
    [[nodiscard]] double p_greater() const { return t_upper_tail(delta / se, df); }
    /// p that the candidate is not smaller.
    [[nodiscard]] double p_less() const { return t_upper_tail(-delta / se, df); }
    /// Half the width of the two-sided interval of delta.
    [[nodiscard]] double half_width(double confidence) const { return t_upper_quantile((1 - confidence) / 2, df) * se; }
};

namespace detail {

/// Moderated variance (Smyth 2004, limma): the prior's and the sample's, weighted by their degrees of freedom.
[[nodiscard]] inline shift moderate(double delta, double squares, double d, const prior& known) {
    shift found;
    found.delta = delta;
    found.df = known.d0 + d;
    found.s_pooled = d > 0 ? std::sqrt(squares / d) : 0;
    const double variance = (known.d0 * known.s0 * known.s0 + squares) / found.df;
    found.s = std::sqrt(std::max(variance, known.floor * known.floor));
    return found;
}

} // namespace detail

/// Moderated t of two groups of independent sessions: `base` and `candidate` hold one value for each session. Needs
/// one value a side, and d0 > 0 or three in all; with d0 = 0 it is Student's pooled t.
[[nodiscard]] inline shift moderated_shift(const std::vector<double>& base, const std::vector<double>& candidate,
                                           const prior& known, const epoch_term& epochs = {}) {
    const double m = static_cast<double>(base.size());
    const double n = static_cast<double>(candidate.size());
    shift found = detail::moderate(mean(candidate) - mean(base), sum_of_squares(base) + sum_of_squares(candidate),
                                   m + n - 2, known);
    const double within = found.s * found.s * (1 / m + 1 / n);
    const double between = epochs.variance();
    found.se = std::sqrt(within + between);
    if (epochs.df > 0 && between > 0) { // Satterthwaite: the error is as sure as the parts it is made of
        found.df =
            (within + between) * (within + between) / (within * within / found.df + between * between / epochs.df);
    }
    return found;
}

/// Moderated t of paired differences, one for each round. The prior's s0 is that of one session; `weight` is the
/// variance of a difference in units of s0 squared (1 for ABBA, 2 for AB).
[[nodiscard]] inline shift moderated_paired_shift(const std::vector<double>& differences, const prior& known,
                                                  double weight) {
    const double n = static_cast<double>(differences.size());
    const double scale = std::sqrt(weight);
    shift found = detail::moderate(mean(differences), sum_of_squares(differences), n - 1,
                                   {known.s0 * scale, known.d0, known.floor * scale});
    found.se = found.s / std::sqrt(n);
    return found;
}

/// Welch's t test of two groups with unequal variances; needs two values a side.
[[nodiscard]] inline shift welch_shift(const std::vector<double>& base, const std::vector<double>& candidate) {
    const double vb = variance(base) / static_cast<double>(base.size());
    const double vc = variance(candidate) / static_cast<double>(candidate.size());
    shift found;
    found.delta = mean(candidate) - mean(base);
    found.se = std::sqrt(vb + vc);
    found.df = (vb + vc) * (vb + vc) /
               (vb * vb / static_cast<double>(base.size() - 1) + vc * vc / static_cast<double>(candidate.size() - 1));
    return found;
}

/// Two one-sided tests of equivalence within (-margin, margin): the larger p counts.
struct equivalence_test {
    double p_lower = 1; ///< that delta is not above -margin
    double p_upper = 1; ///< that delta is not below margin
    double p = 1;
};

[[nodiscard]] inline equivalence_test tost(const shift& found, double margin) {
    equivalence_test test;
    test.p_lower = t_upper_tail((found.delta + margin) / found.se, found.df);
    test.p_upper = t_upper_tail((margin - found.delta) / found.se, found.df);
    test.p = std::max(test.p_lower, test.p_upper);
    return test;
}

/// Smallest shift in ln units that is found with 80 % power when q is shared by `tests` tests (the first step of
/// Benjamini-Hochberg): (t(1 - q/tests) + t(0.8)) * se. `t_upper(q, df)` is t_upper_quantile or a table of it.
template <class Quantile>
[[nodiscard]] double detectable_shift(double se, double df, double q, std::size_t tests, Quantile&& t_upper) {
    const double level = q / static_cast<double>(std::max<std::size_t>(tests, 1));
    return (t_upper(level, df) + t_upper(0.2, df)) * se;
}

[[nodiscard]] inline double detectable_shift(double se, double df, double q, std::size_t tests) {
    return detectable_shift(se, df, q, tests, t_upper_quantile);
}

/// How precise one session is, for planning more of them.
struct session_precision {
    double s = 0;              ///< standard deviation between sessions
    double epoch_variance = 0; ///< part of the variance that more sessions of the same epochs cannot lower
    double d0 = 0;             ///< degrees of freedom of the prior
};

/// Fewest sessions a side, at most `most`, with which a shift of `wanted` is detected (detectable_shift with
/// df = d0 + 2 K - 2); absent when even `most` do not: then only more epochs help.
template <class Quantile>
[[nodiscard]] std::optional<std::size_t> sessions_to_detect(double wanted, const session_precision& one, double q,
                                                            std::size_t tests, Quantile&& t_upper,
                                                            std::size_t most = 1000) {
    const auto enough = [&](std::size_t sessions) {
        const double k = static_cast<double>(sessions);
        const double df = one.d0 + 2 * k - 2;
        if (!(df > 0)) return false;
        return detectable_shift(std::sqrt(2 * one.s * one.s / k + one.epoch_variance), df, q, tests, t_upper) <= wanted;
    };
    if (!enough(most)) return std::nullopt;
    std::size_t low = 0;
    std::size_t high = most;
    while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        (enough(middle) ? high : low) = middle;
    }
    return high;
}

} // namespace stats

PLUMBLINE_NAMESPACE_END

#endif
