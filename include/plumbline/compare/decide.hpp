// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_DECIDE_HPP
#define PLUMBLINE_COMPARE_DECIDE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/compare/estimate.hpp"
#include "plumbline/stats/multiplicity.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

namespace detail {

/// A pair that is in the family of tests, with its statistics.
struct tested_pair {
    candidate_pair* pair = nullptr;
    test_result test;
};

[[nodiscard]] inline double largest(const std::vector<double>& of) {
    return *std::max_element(of.begin(), of.end());
}
[[nodiscard]] inline double smallest(const std::vector<double>& of) {
    return *std::min_element(of.begin(), of.end());
}

/// The difference is too small for the timer: every session says so on both sides, or the difference is below a
/// resolution that is coarser than the margin. A coarse timer does not hide what is far larger than its ticks.
[[nodiscard]] inline bool is_below_resolution(const candidate_pair& pair) {
    const auto flagged = [](const observations& side) {
        return std::all_of(side.begin(), side.end(),
                           [](const observation& o) { return has_flag(*o.measured, result::flag::below_resolution); });
    };
    if (flagged(pair.base) && flagged(pair.candidate)) return true;
    const double resolution = pair.found.used.resolution;
    const double base = *pair.found.base.value;
    return resolution > pair.found.used.margin * base && std::abs(*pair.found.candidate.value - base) < resolution;
}

/// Looks for two modes on both sides and describes them; true when a side has two and the sides are not apart by the
/// margin all the same.
[[nodiscard]] inline bool is_bimodal(candidate_pair& pair, test_result& test, double margin) {
    const auto yb = costs(pair.base);
    const auto yc = costs(pair.candidate);
    const auto base = stats::find_two_modes(yb, margin, pair.found.used.floor);
    const auto candidate = stats::find_two_modes(yc, margin, pair.found.used.floor);
    if (!base && !candidate) return false;
    const double seconds = pair.in.dimension == "s" ? pair.in.factor : 0;
    if (base) pair.found.base.modes = describe_modes(pair.base, *base, seconds);
    if (candidate) pair.found.candidate.modes = describe_modes(pair.candidate, *candidate, seconds);
    pair.found.markers.insert(marker::bimodal);
    const double threshold = base ? base->threshold : candidate->threshold;
    const auto above = [&](const std::vector<double>& y) {
        return static_cast<std::size_t>(std::count_if(y.begin(), y.end(), [&](double v) { return v >= threshold; }));
    };
    test.effect.occupancy_p = stats::fisher_exact(above(yb), yb.size(), above(yc), yc.size());
    const bool apart = smallest(yc) - largest(yb) >= margin || smallest(yb) - largest(yc) >= margin;
    return !apart;
}

/// The verdict of a testable pair, in the order of the rules: resolution, modes, proven change, proven equivalence,
/// and otherwise inconclusive.
inline void decide(tested_pair& tested, const policy& rules) {
    auto& found = tested.pair->found;
    auto& e = tested.test.effect;
    const double margin = std::log1p(found.used.margin);
    const auto conclude = [&](verdict outcome) { found.outcome = outcome; };
    const auto because = [&](reason_code code, const std::string& text) {
        found.outcome = verdict::inconclusive;
        found.reasons.push_back({code, text});
    };
    if (is_below_resolution(*tested.pair)) {
        found.markers.insert(marker::below_resolution);
        return because(reason_code::below_resolution, "the difference is below the timer's resolution");
    }
    if (is_bimodal(*tested.pair, tested.test, margin)) {
        return because(reason_code::bimodal, "the sessions fall into two groups, and the sides overlap");
    }
    const auto proven = [&](double adjusted, double shift) { return adjusted <= rules.q && shift >= margin; };
    const auto vetoed = [&](const std::optional<double>& rank_p) { return rank_p && *rank_p > rules.alpha_rank; };
    const bool worse = proven(e.adjusted_regressed, e.hl);
    const bool better = proven(e.adjusted_improved, -e.hl);
    if (worse && !vetoed(e.rank_regressed)) return conclude(verdict::regressed);
    if (better && !vetoed(e.rank_improved)) {
        const bool too_fast = -e.hl > std::log(rules.suspicious_speedup);
        const bool above_limit = found.fraction_of_limit.value_or(0) > rules.limit_tolerance;
        if (too_fast || above_limit) found.markers.insert(marker::suspicious);
        return conclude(verdict::improved);
    }
    if (e.low90 > -margin && e.high90 < margin) {
        if (e.low95 > 0 || e.high95 < 0) found.markers.insert(marker::small_but_real);
        return conclude(verdict::equivalent);
    }
    if (worse || better) {
        found.markers.insert(marker::rank_veto);
        return because(reason_code::rank_veto, "a large change, but the sessions' ranks do not agree on it");
    }
    because(reason_code::too_noisy, "the change is neither proven nor excluded"); // reports say what would settle it
}

/// Adjusts all pairs for each other, regressions and improvements apart, and fills what depends on their number.
inline void adjust(std::vector<tested_pair>& all, const policy& rules, tables& shared) {
    std::vector<double> regressed;
    std::vector<double> improved;
    for (const auto& tested : all) {
        regressed.push_back(tested.test.effect.p_regressed);
        improved.push_back(tested.test.effect.p_improved);
    }
    regressed = stats::benjamini_hochberg(regressed);
    improved = stats::benjamini_hochberg(improved);
    const auto t_upper = [&](double q, double df) { return shared.t.upper(q, df); };
    for (std::size_t i = 0; i < all.size(); ++i) {
        auto& e = all[i].test.effect;
        e.adjusted_regressed = regressed[i];
        e.adjusted_improved = improved[i];
        e.smallest_detectable = std::expm1(stats::detectable_shift(e.se, e.df, rules.q, all.size(), t_upper));
        const stats::session_precision one{all[i].test.s, all[i].test.epoch_variance, all[i].test.d0};
        const double margin = std::log1p(all[i].pair->found.used.margin);
        e.sessions_needed = stats::sessions_to_detect(margin, one, rules.q, all.size(), t_upper);
    }
}

} // namespace detail

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
