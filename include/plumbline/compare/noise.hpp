// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_NOISE_HPP
#define PLUMBLINE_COMPARE_NOISE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/compare/glob.hpp"
#include "plumbline/compare/observation.hpp"
#include "plumbline/compare/policy.hpp"
#include "plumbline/core/unit.hpp"
#include "plumbline/stats/hierarchy.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// Sessions from which a measured s0, and epochs from which a measured s_e, replaces the starting value.
inline constexpr std::size_t sessions_for_s0 = 10;
inline constexpr std::size_t epochs_for_s_e = 3;

/// The policy's class of a result: its own class, but "cpu_kernel" for all computing on the CPU backend, whose clocks
/// and neighbours make a kernel as noisy as anything sustained on a GPU.
[[nodiscard]] inline std::string class_name(const result::result& of) {
    const bool computes = of.what.kind == benchmark_class::kernel || of.what.kind == benchmark_class::sustained ||
                          of.what.kind == benchmark_class::training_step;
    if (of.backend == "cpu" && computes) return "cpu_kernel";
    return to_string(of.what.kind);
}

/// The key of a result in baseline::noise: its id, and "#metric" after it for any metric but the time.
[[nodiscard]] inline std::string noise_key(const std::string& id, const std::string& metric) {
    return metric == "time" ? id : id + "#" + metric;
}

/// The class's part of the policy; the values of class_policy for a class the policy does not know.
[[nodiscard]] inline class_policy class_rules(const policy& rules, const std::string& name) {
    const auto at = rules.classes.find(name);
    return at == rules.classes.end() ? class_policy{} : at->second;
}

/// Everything the policy's rules say about one benchmark, later rules over earlier ones.
[[nodiscard]] inline rule rules_for(const policy& rules, const std::string& id, const std::string& metric) {
    rule sum;
    const auto take = [](auto& into, const auto& from) {
        if (from) into = from;
    };
    for (const rule& r : rules.rules) {
        if (!glob_matches(r.match, id) || (!r.metric.empty() && r.metric != metric)) continue;
        take(sum.margin, r.margin);
        take(sum.s0, r.s0);
        take(sum.s_e, r.s_e);
        take(sum.resolution, r.resolution);
        take(sum.required, r.required);
        take(sum.advisory, r.advisory);
        take(sum.compute_bound, r.compute_bound);
    }
    return sum;
}

namespace detail {

/// What the sessions of one result say about its noise, epoch by epoch; nothing for values that have no logarithm.
[[nodiscard]] inline stats::noise_estimate noise_seen(const result::result& of, const result::baseline& in) {
    std::map<result::epoch, std::vector<double>> epochs;
    for (const auto& o : observe(of, in, 1)) {
        if (!std::isfinite(o.cost)) return {};
        epochs[o.session->when].push_back(o.cost);
    }
    std::vector<std::vector<double>> groups;
    for (auto& [when, values] : epochs) groups.push_back(std::move(values));
    return stats::estimate_noise(groups);
}

} // namespace detail

/// Noise of every result that has enough sessions or epochs, by noise_key: what belongs into baseline::noise. s0 comes
/// from at least ten sessions, s_e from at least three epochs.
///
/// A handful of epochs of one benchmark says little: used as it is, an s_e from three epochs let 30 to 80 % of
/// unchanged suites of 100 alarm where the true one was three to five times the policy's. So the class's benchmarks
/// are pooled first, the policy's value being the least; that is the prior, worth policy::d0, of each one's own
/// estimate (stats::cautious_deviation). tests/compare/resampling.cpp holds it to the alarm rate.
[[nodiscard]] inline std::map<std::string, result::noise> estimate_noise(const result::baseline& in,
                                                                         const policy& rules = {}) {
    struct pooled {
        double squares = 0, df = 0;
    };
    std::map<std::string, pooled> classes;
    std::vector<std::pair<const result::result*, stats::noise_estimate>> seen;
    for (const auto& r : in.results) {
        if (r.status != result::result_status::ok) continue;
        seen.emplace_back(&r, detail::noise_seen(r, in));
        const auto& last = seen.back().second;
        if (last.epochs < epochs_for_s_e) continue;
        const double df = static_cast<double>(last.epochs - 1);
        auto& sum = classes[class_name(r)];
        sum.squares += df * last.s_e * last.s_e;
        sum.df += df;
    }
    std::map<std::string, result::noise> all;
    for (const auto& [r, estimate] : seen) {
        result::noise found;
        found.sessions = estimate.sessions;
        found.epochs = estimate.epochs;
        if (estimate.sessions >= sessions_for_s0 && estimate.df > 0) {
            found.s0 = estimate.s0;
            found.d0 = std::min(20.0, estimate.df);
        }
        if (estimate.epochs >= epochs_for_s_e) {
            const std::string name = class_name(*r);
            const auto& sum = classes[name];
            const double prior = std::max(class_rules(rules, name).s_e, std::sqrt(sum.squares / sum.df));
            found.s_e =
                stats::cautious_deviation(estimate.s_e, static_cast<double>(estimate.epochs - 1), prior, rules.d0);
        }
        if (found.s0 || found.s_e) all[noise_key(r->what.id, r->what.metric)] = found;
    }
    return all;
}

namespace detail {

/// How the two sides of a comparison lie to each other.
struct setting {
    bool interleaved = false;  ///< paired sessions of one epoch
    bool other_board = false;  ///< measured on different boards
    bool factor_known = false; ///< the board's compute factor could be estimated
};

/// The timer's resolution per launch, in the unit of the result: as the sessions recorded it (the coarsest), else the
/// policy's; 0 when nobody knows.
[[nodiscard]] inline double timer_resolution(const observations& side, const unit& in, const policy& rules) {
    if (in.dimension != "s") return 0;
    double coarsest = 0;
    for (const auto& o : side) {
        const auto resolution_ns = number(o.measured->state, "timer_resolution_ns");
        if (!resolution_ns) continue;
        const double launches = number(o.measured->state, "launches_per_sample").value_or(1);
        coarsest = std::max(coarsest, *resolution_ns * 1e-9 / std::max(launches, 1.0));
    }
    return (coarsest > 0 ? coarsest : rules.resolution_s) / in.factor;
}

/// Where both give a value, a benchmark's own entry of the measured noise wins over its class's.
inline void apply_measured(yardstick& used, const result::noise* measured, double prior_df, bool& any) {
    if (measured == nullptr) return;
    if (measured->s0 && measured->sessions >= sessions_for_s0) {
        used.s0 = *measured->s0;
        used.d0 = measured->d0;
        any = true;
    }
    if (measured->s_e && measured->epochs >= epochs_for_s_e) {
        used.s_e = *measured->s_e;
        used.d_e = prior_df + static_cast<double>(measured->epochs - 1);
        any = true;
    }
}

/// Noise and margin for one benchmark. `value` is the base's, in the unit `in`; `compute_bound` says whether it
/// follows the board's compute factor. Order of precedence: class, measured noise of the base, the policy's rules.
[[nodiscard]] inline yardstick choose_yardstick(const result::result& of, const result::baseline& base, double value,
                                                const unit& in, bool compute_bound, const setting& where,
                                                const policy& rules, bool& noise_measured) {
    yardstick used;
    used.class_name = class_name(of);
    const class_policy start = class_rules(rules, used.class_name);
    const bool is_short = in.dimension == "s" && value * in.factor < rules.short_below_ns * 1e-9;
    used.s0 = is_short ? start.s0_short.value_or(start.s0) : start.s0;
    used.s_e = start.s_e;
    used.d0 = rules.d0;
    used.floor = rules.floor;
    used.margin = where.interleaved ? start.margin_interleaved.value_or(start.margin) : start.margin;
    const auto noise_of = [&](const std::string& key) -> const result::noise* {
        const auto at = base.noise.find(key);
        return at == base.noise.end() ? nullptr : &at->second;
    };
    apply_measured(used, noise_of(used.class_name), rules.d0, noise_measured);
    apply_measured(used, noise_of(noise_key(of.what.id, of.what.metric)), rules.d0, noise_measured);
    const rule own = rules_for(rules, of.what.id, of.what.metric);
    used.s0 = own.s0.value_or(used.s0);
    if (own.s_e) {
        used.s_e = *own.s_e;
        used.d_e = 0;
    }
    used.margin = own.margin.value_or(used.margin);
    if (where.other_board) {
        used.s_e = std::max(used.s_e, start.s_e_board.value_or(start.s_e));
        // Boards of one model differ by more than a per cent in compute-bound work: unless that was measured and
        // removed, it is part of the error.
        if (compute_bound && !where.factor_known) used.s_e = std::hypot(used.s_e, rules.board_spread);
    }
    if (where.interleaved) used.s_e = 0; // both sides share the boot, the day and the board, round by round
    return used;
}

} // namespace detail

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
