// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_STATS_HIERARCHY_HPP
#define PLUMBLINE_STATS_HIERARCHY_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "plumbline/stats/distributions.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace stats {

/// Mean of repetitions nested in sessions, after Kalibera and Jones (2013).
struct two_level {
    double mean = nan;
    double s1_squared = nan; ///< variance between repetitions of one session
    double s2_squared = nan; ///< variance between the means of sessions
    double t2_squared = nan; ///< variance between sessions beyond what repetitions explain: s2^2 - s1^2 / repetitions
    double half_width = nan; ///< of the confidence interval of the mean
};

/// `sessions[i]` holds the repetitions of session i: at least two sessions of equally many, at least two, repetitions.
[[nodiscard]] inline two_level kalibera(const std::vector<std::vector<double>>& sessions, double confidence = 0.95) {
    two_level found;
    if (sessions.size() < 2 || sessions.front().size() < 2) return found;
    std::vector<double> means;
    std::vector<double> variances;
    for (const auto& repetitions : sessions) {
        means.push_back(mean(repetitions));
        variances.push_back(variance(repetitions));
    }
    const double n = static_cast<double>(sessions.size());
    found.mean = mean(means);
    found.s1_squared = mean(variances);
    found.s2_squared = variance(means);
    found.t2_squared = found.s2_squared - found.s1_squared / static_cast<double>(sessions.front().size());
    found.half_width = t_upper_quantile((1 - confidence) / 2, n - 1) * std::sqrt(found.s2_squared / n);
    return found;
}

/// Fieller's interval of the ratio candidate / base of two means with their half widths; NaN where the base's interval
/// reaches zero, because the ratio is then unbounded.
[[nodiscard]] inline std::pair<double, double> ratio_interval(const two_level& base, const two_level& candidate) {
    const double below = base.mean * base.mean - base.half_width * base.half_width;
    if (!(below > 0)) return {nan, nan};
    const double above = candidate.mean * candidate.mean - candidate.half_width * candidate.half_width;
    const double product = base.mean * candidate.mean;
    const double root = std::sqrt(product * product - below * above);
    return {(product - root) / below, (product + root) / below};
}

/// Noise seen in stored sessions.
struct noise_estimate {
    double s0 = nan;  ///< between sessions of one epoch; NaN without two sessions in any epoch
    double s_e = nan; ///< between epochs beyond what sessions explain; NaN for fewer than two epochs
    double df = 0;    ///< degrees of freedom behind s0
    std::size_t sessions = 0;
    std::size_t epochs = 0;
};

/// `epochs[i]` holds the values (in ln units) of the sessions of epoch i. s0^2 is the variance within epochs, pooled;
/// s_e^2 is the variance of the epochs' means less what s0 explains of it. Plain and not robust estimates on purpose:
/// an odd session is something that the next run can meet too, and the estimate guards against false alarms.
[[nodiscard]] inline noise_estimate estimate_noise(const std::vector<std::vector<double>>& epochs) {
    noise_estimate found;
    double squares = 0;
    double explained = 0; // mean over epochs of 1 / sessions
    std::vector<double> means;
    for (const auto& sessions : epochs) {
        if (sessions.empty()) continue;
        const double k = static_cast<double>(sessions.size());
        squares += sum_of_squares(sessions);
        found.df += k - 1;
        found.sessions += sessions.size();
        means.push_back(mean(sessions));
        explained += 1 / k;
    }
    found.epochs = means.size();
    if (found.df > 0) found.s0 = std::sqrt(squares / found.df);
    if (means.size() >= 2) {
        const double s0_squared = found.df > 0 ? squares / found.df : 0;
        const double within = s0_squared * explained / static_cast<double>(means.size());
        found.s_e = std::sqrt(std::max(0.0, variance(means) - within));
    }
    return found;
}

/// A standard deviation seen with `df` degrees of freedom against a prior worth `d0`: their mean square, but never less
/// than what was seen. Few epochs can agree by luck, and must then not switch their term off; when they disagree, that
/// is believed.
[[nodiscard]] inline double cautious_deviation(double seen, double df, double prior, double d0) {
    return std::max(seen, std::sqrt((d0 * prior * prior + df * seen * seen) / (d0 + df)));
}

} // namespace stats

PLUMBLINE_NAMESPACE_END

#endif
