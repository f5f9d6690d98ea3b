// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_ESTIMATE_HPP
#define PLUMBLINE_COMPARE_ESTIMATE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/compare/gate.hpp"
#include "plumbline/stats/paired.hpp"
#include "plumbline/stats/ranks.hpp"
#include "plumbline/stats/shift_test.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

namespace detail {

/// The interleaved rounds of a pair of sides: sessions of the same round, boot and board on both. None when the rounds
/// did not follow each other in time: their names agree by chance, they come from different runs.
struct interleaving {
    std::vector<stats::round> rounds;
    observations base; ///< the sessions that belong to a complete round
    observations candidate;
    bool overlap = false; ///< there are rounds by name, and they did not follow each other
};

/// The first and the last start (ISO 8601 in UTC, which sorts as text) among the sessions of a round.
[[nodiscard]] inline std::pair<std::string, std::string> span_of(const std::vector<const observation*>& base,
                                                                 const std::vector<const observation*>& candidate) {
    std::pair<std::string, std::string> span{base.front()->session->started, base.front()->session->started};
    for (const auto* side : {&base, &candidate}) {
        for (const auto* o : *side) {
            span.first = std::min(span.first, o->session->started);
            span.second = std::max(span.second, o->session->started);
        }
    }
    return span;
}

[[nodiscard]] inline interleaving find_rounds(const observations& base, const observations& candidate) {
    struct members {
        std::vector<const observation*> base, candidate;
    };
    // The boot and the board are part of the key: a round of the same name in another run is another round.
    std::map<std::vector<std::string>, members> rounds;
    const auto key_of = [](const observation& o) {
        return std::vector<std::string>{o.session->control, o.session->when.boot, o.session->when.board};
    };
    for (const auto& o : base) {
        if (!o.session->control.empty()) rounds[key_of(o)].base.push_back(&o);
    }
    for (const auto& o : candidate) {
        if (!o.session->control.empty()) rounds[key_of(o)].candidate.push_back(&o);
    }
    interleaving found;
    std::vector<std::pair<std::string, std::string>> spans; // first and last start of each round
    for (const auto& [name, in] : rounds) {
        if (in.base.empty() || in.candidate.empty()) continue;
        stats::round r;
        spans.push_back(span_of(in.base, in.candidate));
        for (const auto* o : in.base) {
            r.base.push_back(o->cost);
            found.base.push_back(*o);
        }
        for (const auto* o : in.candidate) {
            r.candidate.push_back(o->cost);
            found.candidate.push_back(*o);
        }
        found.rounds.push_back(std::move(r));
    }
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) {
        if (spans[i].first >= spans[i - 1].second) continue;
        interleaving none;
        none.overlap = true;
        return none;
    }
    return found;
}

/// Quantiles of Student's t, remembered: nearly all pairs of a comparison share their degrees of freedom.
class t_table {
public:
    [[nodiscard]] double upper(double q, double df) {
        const auto [at, added] = known_.try_emplace({q, df}, 0);
        if (added) at->second = stats::t_upper_quantile(q, df);
        return at->second;
    }

private:
    std::map<std::pair<double, double>, double> known_;
};

/// Ranks of the Hodges-Lehmann interval, remembered by the sizes of the sides.
class rank_table {
public:
    [[nodiscard]] stats::shift_rank of(std::size_t m, std::size_t n) {
        const auto [at, added] = known_.try_emplace({m, n});
        if (added) at->second = stats::hodges_lehmann_rank(m, n);
        return at->second;
    }

private:
    std::map<std::pair<std::size_t, std::size_t>, stats::shift_rank> known_;
};

/// What all pairs of a comparison share.
struct tables {
    t_table t;
    rank_table ranks;
};

/// A pair's statistics before they are adjusted for the other pairs.
struct test_result {
    estimate effect;
    double s = 0;              ///< standard deviation between sessions that was used
    double epoch_variance = 0; ///< part of se^2 that more sessions of the same epochs cannot lower
    double d0 = 0;
};

[[nodiscard]] inline stats::prior prior_of(const yardstick& used) {
    return {used.s0, used.d0, used.floor};
}

inline void fill_intervals(estimate& e, const stats::shift& found, double alpha_equivalence, tables& shared) {
    e.delta = found.delta;
    e.se = found.se;
    e.df = found.df;
    e.p_regressed = found.p_greater();
    e.p_improved = found.p_less();
    const double half90 = shared.t.upper(alpha_equivalence, e.df) * e.se;
    const double half95 = shared.t.upper(0.025, e.df) * e.se;
    e.low90 = e.delta - half90;
    e.high90 = e.delta + half90;
    e.low95 = e.delta - half95;
    e.high95 = e.delta + half95;
}

/// Two independent groups of sessions: moderated t, Hodges-Lehmann with its interval, exact Mann-Whitney.
[[nodiscard]] inline test_result test_stored(const observations& base, const observations& candidate,
                                             const yardstick& used, double extra_variance, const policy& rules,
                                             tables& shared) {
    const auto yb = costs(base);
    const auto yc = costs(candidate);
    test_result test;
    const stats::epoch_term epochs{used.s_e, count_epochs(base), count_epochs(candidate), used.d_e};
    test.epoch_variance = epochs.variance() + extra_variance;
    stats::shift found = stats::moderated_shift(yb, yc, prior_of(used), epochs);
    found.se = std::sqrt(found.se * found.se + extra_variance);
    test.s = found.s;
    test.d0 = used.d0;
    fill_intervals(test.effect, found, rules.alpha_equivalence, shared);
    const auto location = stats::hodges_lehmann(yb, yc, shared.ranks.of(yb.size(), yc.size()));
    test.effect.hl = location.shift;
    if (location.range.exists()) {
        test.effect.hl_low = location.range.low;
        test.effect.hl_high = location.range.high;
    }
    if (yb.size() >= rules.rank_minimum && yc.size() >= rules.rank_minimum) {
        const auto ranks = stats::mann_whitney(yb, yc);
        test.effect.rank_regressed = ranks.p_greater;
        test.effect.rank_improved = ranks.p_less;
    }
    return test;
}

/// Interleaved rounds: moderated t of the rounds' differences, Walsh median, exact signed-rank test. Drift and order
/// cancel within a round, and there is no epoch term.
[[nodiscard]] inline test_result test_interleaved(const std::vector<stats::round>& rounds, const yardstick& used,
                                                  const policy& rules, tables& shared) {
    const auto differences = stats::difference_rounds(rounds);
    test_result test;
    const auto found = stats::moderated_paired_shift(differences.values, prior_of(used), differences.weight);
    test.s = found.s / std::sqrt(differences.weight);
    test.d0 = used.d0;
    fill_intervals(test.effect, found, rules.alpha_equivalence, shared);
    test.effect.hl = stats::walsh_median(differences.values);
    if (differences.values.size() >= rules.rank_minimum) {
        const auto ranks = stats::signed_rank(differences.values);
        test.effect.rank_regressed = ranks.p_greater;
        test.effect.rank_improved = ranks.p_less;
    }
    return test;
}

/// A slowdown taken apart by the cycles of both sides; absent unless every session counted cycles of a time.
[[nodiscard]] inline std::optional<split> split_clock(const observations& base, const observations& candidate,
                                                      const unit& in, direction better) {
    if (in.dimension != "s" || better != direction::lower) return std::nullopt;
    double cycles[2] = {0, 0};
    double time[2] = {0, 0};
    for (const int i : {0, 1}) {
        const auto& side = i == 0 ? base : candidate;
        for (const auto& o : side) {
            if (!o.log_cycles) return std::nullopt;
            cycles[i] += *o.log_cycles / static_cast<double>(side.size());
            time[i] += std::log(o.value) / static_cast<double>(side.size());
        }
    }
    split parts;
    parts.cycles = cycles[1] - cycles[0];
    parts.clock = (time[1] - time[0]) - parts.cycles;
    return parts;
}

} // namespace detail

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
