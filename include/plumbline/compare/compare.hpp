// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_COMPARE_HPP
#define PLUMBLINE_COMPARE_COMPARE_HPP

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/compare/board.hpp"
#include "plumbline/compare/comparison.hpp"
#include "plumbline/compare/decide.hpp"
#include "plumbline/compare/graft.hpp"
#include "plumbline/compare/outcome.hpp"
#include "plumbline/compare/policy.hpp"
#include "plumbline/environment/diff.hpp"
#include "plumbline/result/alarm.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/result/limit.hpp"
#include "plumbline/stats/multiplicity.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

namespace detail {

/// The alarms of one side of a finding; none where there is no such result.
[[nodiscard]] inline std::vector<result::alarm> alarms_of(const result::result* of, const result::baseline& in) {
    return of == nullptr ? std::vector<result::alarm>{} : result::alarms(*of, in.device);
}

/// What the candidate's own evidence says against it.
inline void raise_alarms(candidate_pair& pair, const result::baseline& base, const result::baseline& candidate) {
    const auto known = alarms_of(pair.base_result, base);
    for (auto& each : alarms_of(pair.candidate_result, candidate)) {
        const bool in_base =
            std::any_of(known.begin(), known.end(), [&](const result::alarm& a) { return a.code == each.code; });
        pair.found.alarms.push_back({std::move(each), in_base});
    }
}

/// Fills what a finding shows of both sides, and what the policy says about it.
inline void describe_pair(candidate_pair& pair, const policy& rules) {
    auto& found = pair.found;
    const rule own = rules_for(rules, found.id, found.metric);
    const auto& any = pair.base_result != nullptr ? *pair.base_result : *pair.candidate_result;
    found.used.class_name = class_name(any);
    if (own.advisory.value_or(class_rules(rules, found.used.class_name).advisory)) {
        found.markers.insert(marker::advisory);
    }
    if (!own.required.value_or(true)) found.markers.insert(marker::optional);
    if (!pair.testable) return;
    found.base = summarise(pair.base);
    found.candidate = summarise(pair.candidate);
    mark(pair);
}

/// Chooses the noise of a pair, takes the board's factor out and computes its statistics.
[[nodiscard]] inline test_result test_pair(candidate_pair& pair, const result::baseline& base, const comparison& into,
                                           setting where, const policy& rules, tables& shared) {
    auto& found = pair.found;
    interleaving rounds = find_rounds(pair.base, pair.candidate);
    where.interleaved = !rounds.rounds.empty();
    pair.rounds_overlap = rounds.overlap;
    if (where.interleaved) {
        pair.base = std::move(rounds.base);
        pair.candidate = std::move(rounds.candidate);
        found.base = summarise(pair.base);
        found.candidate = summarise(pair.candidate);
        found.markers.insert(marker::interleaved);
    }
    const rule own = rules_for(rules, found.id, found.metric);
    const bool compute_bound =
        is_canary(pair, rules) || is_compute_bound(pair.base_result->what, own.compute_bound, rules);
    bool measured = false;
    found.used =
        choose_yardstick(*pair.base_result, base, *found.base.value, pair.in, compute_bound, where, rules, measured);
    if (measured) found.markers.insert(marker::noise_measured);
    observations both = pair.base;
    both.insert(both.end(), pair.candidate.begin(), pair.candidate.end());
    found.used.resolution = own.resolution.value_or(timer_resolution(both, pair.in, rules));
    found.used.floor = std::max(rules.floor, found.used.resolution / *found.base.value);
    found.parts = split_clock(pair.base, pair.candidate, pair.in, found.better);
    if (where.interleaved) return test_interleaved(rounds.rounds, found.used, rules, shared);
    double factor_variance = 0;
    if (where.other_board && where.factor_known && compute_bound) {
        for (auto& o : pair.candidate) o.cost -= into.board->shift;
        factor_variance = into.board->se * into.board->se;
        found.markers.insert(marker::board_factor_removed);
    }
    return test_stored(pair.base, pair.candidate, found.used, factor_variance, rules, shared);
}

/// Sessions that died, and fingerprints that say nothing, as notes.
inline void note_circumstances(comparison& into, const result::baseline& base, const result::baseline& candidate) {
    for (const auto* side : {&base, &candidate}) {
        const std::string name = side == &base ? "base" : "candidate";
        std::size_t failed = 0;
        std::string why;
        for (const auto& s : side->sessions) {
            if (!s.failed) continue;
            ++failed;
            why = s.reason;
        }
        if (failed > 0) {
            into.notes.push_back(name + ": " + std::to_string(failed) + " of " + std::to_string(side->sessions.size()) +
                                 " sessions failed: " + why);
        }
        const auto cut = side->checks.find(result::sessions_check);
        if (cut != side->checks.end()) into.notes.push_back(name + ": " + to_string(cut->second));
        if (side->environment.attributes.empty()) into.notes.push_back(name + ": the file has no fingerprint");
    }
}

/// Sessions that both sides hold, as a note: what is compared with itself proves nothing.
inline void note_shared_sessions(comparison& into, const result::baseline& base, const result::baseline& candidate) {
    const auto shared = std::count_if(candidate.sessions.begin(), candidate.sessions.end(), [&](const auto& s) {
        return std::any_of(base.sessions.begin(), base.sessions.end(),
                           [&](const auto& other) { return !s.order.empty() && same_session(s, other); });
    });
    if (shared == 0) return;
    into.notes.push_back(std::to_string(shared) + " of the candidate's " + std::to_string(candidate.sessions.size()) +
                         " sessions are in the base too: nothing is proven by comparing them with themselves");
}

/// Results whose rounds could not be paired, as a note: margins and noise are then those of stored baselines.
inline void note_overlaps(comparison& into, const std::vector<candidate_pair>& pairs) {
    const auto count = std::count_if(pairs.begin(), pairs.end(), [](const auto& p) { return p.rounds_overlap; });
    if (count == 0) return;
    into.notes.push_back(std::to_string(count) + (count == 1 ? " result is" : " results are") +
                         " compared as if stored, not in pairs: both sides name the same rounds, but these did not "
                         "follow one another in time (two runs, or a clock that was set back)");
}

/// The day on which the candidate was made: expiries are judged by it, so that an old comparison repeats.
[[nodiscard]] inline std::string day_of(const policy& rules, const result::baseline& candidate) {
    return rules.today.empty() ? candidate.created.substr(0, 10) : rules.today;
}

} // namespace detail

/// Compares a candidate with a base. Sessions of both sides that name the same round (session::control) on the same
/// boot and board are compared as interleaved pairs. Throws usage_error (exit code 2) for a policy that makes no
/// sense, an unknown unit or a duplicate (id, metric).
[[nodiscard]] inline comparison compare(const result::baseline& base, const result::baseline& candidate,
                                        const policy& rules = {}) {
    validate(rules);
    comparison into;
    auto pairs = detail::pair_up(base, candidate, rules);
    into.environment = environment::diff(base.environment, candidate.environment);
    detail::note_circumstances(into, base, candidate);
    detail::note_shared_sessions(into, base, candidate);
    const bool other_hardware = rules.allow_hardware_diff && !detail::hardware_differences(base, candidate).empty();
    detail::setting where;
    where.other_board = !other_hardware && detail::on_other_board(base, candidate);
    if (where.other_board) {
        into.board = detail::estimate_board_factor(pairs, base, candidate, rules);
        where.factor_known = !into.board->canary.empty();
    }
    detail::tables shared;
    std::vector<detail::tested_pair> tested;
    for (auto& pair : pairs) {
        detail::describe_pair(pair, rules);
        detail::raise_alarms(pair, base, candidate);
        if (!pair.testable) continue;
        // Against the ceilings of the base: the candidate's own rise with a number that is too good.
        pair.found.fraction_of_limit =
            result::fraction_of_limit(pair.base_result->what, base.device, *pair.found.candidate.value);
        if (other_hardware) {
            pair.found.outcome = verdict::cross_hardware;
            const auto location = stats::hodges_lehmann(detail::costs(pair.base), detail::costs(pair.candidate));
            pair.found.ratio = std::exp(location.shift);
            continue;
        }
        tested.push_back({&pair, detail::test_pair(pair, base, into, where, rules, shared)});
        into.interleaved = into.interleaved || pair.found.has(marker::interleaved);
    }
    detail::note_overlaps(into, pairs);
    into.tests = tested.size();
    detail::adjust(tested, rules, shared);
    for (auto& t : tested) {
        detail::decide(t, rules);
        t.pair->found.ratio = std::exp(t.test.effect.hl);
        t.pair->found.effect = t.test.effect;
        detail::apply_acceptances(t.pair->found, rules, detail::day_of(rules, candidate));
    }
    into.findings.reserve(pairs.size());
    for (auto& pair : pairs) into.findings.push_back(std::move(pair.found));
    detail::find_common_mode(into, rules);
    detail::conclude(into, rules);
    return into;
}

/// Compares a candidate with a control measured beside it, the reference, and says what the control says about the
/// stored base: a finding whose control has moved away from the base carries marker::baseline_drift. What the control
/// did not measure is compared with the base.
[[nodiscard]] inline comparison compare(const result::baseline& base, const result::baseline& candidate,
                                        const result::baseline& control, const policy& rules) {
    const comparison drift = compare(base, control, rules);
    result::baseline reference = control;
    detail::session_mover mover(reference, base);
    for (const auto& r : base.results) {
        const bool measured = std::any_of(control.results.begin(), control.results.end(), [&](const auto& c) {
            return c.what.id == r.what.id && c.what.metric == r.what.metric;
        });
        if (!measured) reference.results.push_back(mover.move(r));
    }
    for (const auto& [name, seen] : base.noise) reference.noise.try_emplace(name, seen); // the control's own wins
    comparison found = compare(reference, candidate, rules);
    std::set<detail::key> drifted;
    for (const auto& f : drift.findings) {
        if (f.outcome == verdict::regressed || f.outcome == verdict::improved) drifted.insert({f.id, f.metric});
    }
    for (auto& f : found.findings) {
        if (drifted.count({f.id, f.metric}) != 0) f.markers.insert(marker::baseline_drift);
    }
    if (!drifted.empty()) {
        found.notes.push_back("the control moved away from the stored base in " + std::to_string(drifted.size()) +
                              " results: the base is out of date here, and the control was the reference");
    }
    return found;
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
