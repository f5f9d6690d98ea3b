// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_OUTCOME_HPP
#define PLUMBLINE_COMPARE_OUTCOME_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "plumbline/compare/comparison.hpp"
#include "plumbline/compare/glob.hpp"
#include "plumbline/compare/policy.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// True for the verdicts of pairs that were tested.
[[nodiscard]] inline bool is_tested(verdict v) noexcept {
    return v == verdict::regressed || v == verdict::improved || v == verdict::equivalent || v == verdict::inconclusive;
}

namespace detail {

/// Marks a finding that the policy accepts, or accepted until a day that has passed (`today`, YYYY-MM-DD).
inline void apply_acceptances(finding& found, const policy& rules, const std::string& today) {
    const bool needs_it = found.outcome == verdict::regressed || found.has(marker::suspicious);
    if (!needs_it) return;
    const double change = std::expm1(std::abs(found.effect->hl));
    for (const auto& a : rules.accepted) {
        if (!glob_matches(a.match, found.id) || (!a.metric.empty() && a.metric != found.metric)) continue;
        if (a.up_to && change > *a.up_to) continue;
        const bool expired = !a.until.empty() && today > a.until;
        found.markers.insert(expired ? marker::acceptance_expired : marker::accepted);
    }
    if (found.has(marker::accepted)) found.markers.erase(marker::acceptance_expired);
}

/// Speaks of a machine-wide shift when nearly all pairs moved one way by more than their typical error, and marks the
/// findings that moved with it.
inline void find_common_mode(comparison& into, const policy& rules) {
    std::vector<double> shifts;
    std::vector<double> errors;
    for (const auto& f : into.findings) {
        if (!f.effect) continue;
        shifts.push_back(f.effect->hl);
        errors.push_back(f.effect->se);
    }
    if (shifts.size() < rules.common_mode_minimum || shifts.empty()) return;
    common_mode common;
    common.shift = stats::median(shifts);
    common.pairs = shifts.size();
    const auto same_way = std::count_if(shifts.begin(), shifts.end(), [&](double s) { return s * common.shift > 0; });
    common.share = static_cast<double>(same_way) / static_cast<double>(shifts.size());
    if (common.share <= rules.common_mode_share || std::abs(common.shift) <= stats::median(errors)) return;
    std::vector<double> clocks;
    std::vector<double> cycles;
    for (auto& f : into.findings) {
        if (!f.effect) continue;
        f.residual = f.effect->hl - common.shift;
        if (std::abs(*f.residual) < std::log1p(f.used.margin)) f.markers.insert(marker::common_mode);
        if (!f.parts) continue;
        clocks.push_back(f.parts->clock);
        cycles.push_back(f.parts->cycles);
    }
    if (!clocks.empty()) common.parts = split{stats::median(clocks), stats::median(cycles)};
    into.machine_wide = common;
}

/// The exit code one finding asks for.
[[nodiscard]] inline exit_code exit_of(const finding& f, bool anything_compared, const policy& rules) {
    switch (f.outcome) {
    case verdict::regressed:
        if (!f.has(marker::advisory) && !f.has(marker::accepted)) return exit_code::regressed;
        break;
    case verdict::improved:
        if (f.has(marker::suspicious) && !f.has(marker::advisory) && !f.has(marker::accepted)) {
            return exit_code::incomplete;
        }
        break;
    case verdict::inconclusive:
        if (rules.strict && !f.has(marker::advisory)) return exit_code::inconclusive;
        break;
    case verdict::missing:
        if (!f.has(marker::not_selected) && !f.has(marker::optional)) return exit_code::incomplete;
        break;
    case verdict::invalid:
        if (!f.has(marker::optional)) return exit_code::incomplete;
        break;
    case verdict::incomparable:
        if (!anything_compared) return exit_code::incomparable;
        if (!f.has(marker::optional)) return exit_code::incomplete;
        break;
    case verdict::equivalent:
    case verdict::new_benchmark:
    case verdict::skipped:
    case verdict::cross_hardware:
        break;
    }
    return exit_code::ok;
}

/// Counts the verdicts, averages the ratios, sorts the findings and settles the exit code.
inline void conclude(comparison& into, const policy& rules) {
    double sum = 0;
    bool compared = false; // something had two usable or unusable sides of the same work
    for (const auto& f : into.findings) {
        ++into.counts[f.outcome];
        compared = compared || is_tested(f.outcome) || f.outcome == verdict::invalid;
        if (!f.effect) continue; // every pair that was tested has one
        sum += f.effect->hl;
        ++into.overall.pairs;
    }
    if (into.overall.pairs > 0) into.overall.ratio = std::exp(sum / static_cast<double>(into.overall.pairs));
    into.exit = exit_code::ok;
    for (const auto& f : into.findings) into.exit = worse(into.exit, exit_of(f, compared, rules));
    if (into.board && into.board->red) into.exit = worse(into.exit, exit_code::regressed);
    const bool matched = compared || into.count(verdict::cross_hardware) > 0;
    if (!matched) into.exit = worse(into.exit, exit_code::incomplete); // nothing was paired
    const auto place = [](const finding& f) {
        const auto at = std::find(all_verdicts.begin(), all_verdicts.end(), f.outcome);
        // A speed-up nobody believes is read right after the regressions.
        const bool question = f.has(marker::suspicious) && !f.has(marker::accepted);
        return question ? 1 : 2 * static_cast<int>(at - all_verdicts.begin());
    };
    const auto size = [](const finding& f) { return f.effect ? -std::abs(f.effect->hl) : 0.0; };
    std::sort(into.findings.begin(), into.findings.end(), [&](const finding& a, const finding& b) {
        return std::tuple(place(a), size(a), a.id, a.metric) < std::tuple(place(b), size(b), b.id, b.metric);
    });
}

} // namespace detail

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
