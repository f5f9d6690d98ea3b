// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_GATE_HPP
#define PLUMBLINE_COMPARE_GATE_HPP

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/compare/noise.hpp"
#include "plumbline/compare/observation.hpp"
#include "plumbline/core/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

namespace detail {

/// A benchmark on its way to a verdict.
struct candidate_pair {
    finding found;
    const result::result* base_result = nullptr;
    const result::result* candidate_result = nullptr;
    unit in;           ///< of the finding
    observations base; ///< only filled when the pair passed the gate
    observations candidate;
    bool testable = false;       ///< has numbers on both sides that may be compared
    bool rounds_overlap = false; ///< its sides name the same rounds, which did not follow one another in time
};

using key = std::pair<std::string, std::string>; // id and metric

/// Whether two files hold one and the same session: nothing else starts within the same millisecond in the same order.
[[nodiscard]] inline bool same_session(const result::session& a, const result::session& b) {
    return !a.started.empty() && a.started == b.started && a.seed == b.seed && a.order == b.order;
}

/// What is wrong with one side by itself, in words; nothing when it can be compared. `name` is "base" or "candidate".
[[nodiscard]] inline std::vector<reason> faults(const result::result& of, const result::baseline& in,
                                                const std::string& name, const policy& rules) {
    std::vector<reason> found;
    const auto add = [&](reason_code code, const std::string& text) { found.push_back({code, name + ": " + text}); };
    if (of.status == result::result_status::failed) {
        add(reason_code::failed, of.reason.empty() ? "failed" : of.reason);
        return found;
    }
    if (!in.device.backend.empty() && of.backend != in.device.backend) {
        add(reason_code::wrong_backend, "ran on " + of.backend + " in a file about " + in.device.backend);
    }
    const auto any = [&](const auto& wrong) {
        return std::any_of(of.sessions.begin(), of.sessions.end(),
                           [&](const auto& s) { return std::any_of(s.samples.begin(), s.samples.end(), wrong); });
    };
    const auto empty = [](const auto& s) { return s.samples.empty(); };
    if (of.sessions.empty() || std::any_of(of.sessions.begin(), of.sessions.end(), empty)) {
        add(reason_code::no_samples, "a session without a sample");
    }
    if (any([](double v) { return !std::isfinite(v); })) add(reason_code::not_finite, "a sample that is no number");
    if (any([](double v) { return v <= 0; })) add(reason_code::not_positive, "a sample that is zero or negative");
    const auto flagged = [&](const char* flag) {
        return std::any_of(of.sessions.begin(), of.sessions.end(), [&](const auto& s) { return has_flag(s, flag); });
    };
    if (rules.foreign_load_is_invalid && flagged(result::flag::foreign_load)) {
        add(reason_code::foreign_load, "another process worked on the device");
    }
    if (rules.throttled_is_invalid && flagged(result::flag::throttled)) {
        add(reason_code::throttled, "the clock was below its reference");
    }
    return found;
}

/// Index of the results of a baseline; usage_error for a duplicate or for a session that does not exist.
[[nodiscard]] inline std::map<key, const result::result*> index(const result::baseline& of, const std::string& name) {
    std::map<key, const result::result*> all;
    for (const auto& r : of.results) {
        if (!all.emplace(key{r.what.id, r.what.metric}, &r).second) {
            throw usage_error("the " + name + " has '" + r.what.id + "' with metric '" + r.what.metric +
                              "' twice: remove one of the two results");
        }
        for (const auto& s : r.sessions) {
            if (s.session < of.sessions.size()) continue;
            throw usage_error("the " + name + "'s result '" + r.what.id + "' names session " +
                              std::to_string(s.session) + " of " + std::to_string(of.sessions.size()) +
                              ": the file is damaged, measure again");
        }
    }
    return all;
}

[[nodiscard]] inline unit unit_of(const result::result& of, const std::string& name) {
    const auto found = find_unit(of.what.unit);
    if (found) return *found;
    throw usage_error("the " + name + "'s result '" + of.what.id + "' has the unknown unit '" + of.what.unit +
                      "': known are times (ns to s), B and B/s, FLOP/s, Hz, W, J, cycles, count, 1, %, and NAME/s for "
                      "anything counted");
}

/// Identity attributes that both sides know and that differ, as text; empty when the hardware is the same. An
/// attribute that could be read on one side only is not a difference.
[[nodiscard]] inline std::vector<std::string> hardware_differences(const result::baseline& base,
                                                                   const result::baseline& candidate) {
    std::vector<std::string> found;
    for (const auto& [name, entry] : base.environment.attributes) {
        if (entry.kind != result::attribute_class::identity || !entry.read.known()) continue;
        const auto* other = candidate.environment.find(name);
        if (other == nullptr || !other->read.known() || other->read.value == entry.read.value) continue;
        found.push_back(name + " " + to_string(entry.read.value) + " -> " + to_string(other->read.value));
    }
    if (!base.device.backend.empty() && !candidate.device.backend.empty() &&
        base.device.backend != candidate.device.backend) {
        found.push_back("backend " + base.device.backend + " -> " + candidate.device.backend);
    }
    return found;
}

/// Why two results of one id must not be compared at all.
[[nodiscard]] inline std::vector<reason> mismatches(const result::result& base, const result::result& candidate,
                                                    const unit& base_unit, const unit& candidate_unit) {
    std::vector<reason> found;
    if (base.what.hash() != candidate.what.hash()) {
        found.push_back({reason_code::workload_differs, "the work is not the same: workload.hash " + base.what.hash() +
                                                            " -> " + candidate.what.hash()});
    }
    if (base_unit.dimension != candidate_unit.dimension) {
        found.push_back({reason_code::unit_differs, "unit " + base.what.unit + " -> " + candidate.what.unit});
    }
    if (base.what.better != candidate.what.better) {
        found.push_back({reason_code::direction_differs, "one side is better when lower, the other when higher"});
    }
    return found;
}

/// The verdict of what only the candidate has measured: new, unless it failed or must not be trusted.
inline void judge_new(candidate_pair& pair, const result::baseline& candidate, const policy& rules) {
    auto& found = pair.found;
    found.outcome = verdict::new_benchmark;
    if (pair.candidate_result->status == result::result_status::skipped) return;
    const auto wrong = faults(*pair.candidate_result, candidate, "candidate", rules);
    if (!wrong.empty()) found.outcome = verdict::invalid;
    found.reasons.insert(found.reasons.end(), wrong.begin(), wrong.end());
}

/// Skipped on one side or both: true when the verdict is decided by that.
[[nodiscard]] inline bool decide_skipped(candidate_pair& pair, const result::baseline& candidate_file,
                                         const policy& rules) {
    const auto& base = *pair.base_result;
    const auto& candidate = *pair.candidate_result;
    const bool base_skipped = base.status == result::result_status::skipped;
    const bool candidate_skipped = candidate.status == result::result_status::skipped;
    if (!base_skipped && !candidate_skipped) return false;
    auto& found = pair.found;
    if (base_skipped && candidate_skipped) {
        const bool alike = base.reason == candidate.reason;
        found.outcome = alike ? verdict::skipped : verdict::invalid;
        found.reasons.push_back({alike ? reason_code::skipped_one_side : reason_code::skipped_differently,
                                 alike ? base.reason : base.reason + " -> " + candidate.reason});
        if (alike) found.reasons.clear();
    } else if (result::lacked_time(candidate)) {
        found.outcome = verdict::missing;
        found.reasons.push_back({reason_code::not_measured, candidate.reason});
    } else if (base_skipped) {
        found.reasons.push_back({reason_code::skipped_one_side, "base: skipped: " + base.reason});
        judge_new(pair, candidate_file, rules); // nothing to compare with yet
    } else {
        found.outcome = verdict::invalid;
        found.reasons.push_back(
            {reason_code::skipped_one_side, "failed: it ran in the base and cannot run here: " + candidate.reason});
    }
    return true;
}

/// Marks of a pair that passed: throttled sessions, other implementations, an output that was no longer verified.
inline void mark(candidate_pair& pair) {
    auto& found = pair.found;
    for (const auto* side : {&pair.base, &pair.candidate}) {
        const auto throttled = std::count_if(side->begin(), side->end(), [](const observation& o) {
            return has_flag(*o.measured, result::flag::throttled);
        });
        if (throttled == 0) continue;
        found.markers.insert(marker::throttled);
        found.reasons.push_back({reason_code::throttled, std::string(side == &pair.base ? "base" : "candidate") +
                                                             ": the clock was below its reference in " +
                                                             std::to_string(throttled) + " of " +
                                                             std::to_string(side->size()) + " sessions"});
    }
    std::set<std::string> names[2];
    for (const auto& i : found.base.implementations) names[0].insert(i.name);
    for (const auto& i : found.candidate.implementations) names[1].insert(i.name);
    if (names[0].size() > 1 || names[1].size() > 1) found.markers.insert(marker::implementation_varies);
    if (!names[0].empty() && !names[1].empty() && names[0] != names[1]) {
        found.markers.insert(marker::implementation_changed);
    }
    if (pair.base_result->verified && !pair.candidate_result->verified) found.markers.insert(marker::unverified);
}

/// Decides what the gate can decide: sets the verdict, or makes the pair testable.
inline void pass_gate(candidate_pair& pair, const result::baseline& base, const result::baseline& candidate,
                      const std::vector<std::string>& hardware, const policy& rules) {
    auto& found = pair.found;
    if (decide_skipped(pair, candidate, rules)) return;
    const unit candidate_unit = unit_of(*pair.candidate_result, "candidate");
    for (const auto& text : hardware) {
        if (!rules.allow_hardware_diff) found.reasons.push_back({reason_code::hardware_differs, text});
    }
    // One that failed early has no description to compare, and what matters is that it failed.
    const auto ok = [](const result::result& r) { return r.status == result::result_status::ok; };
    if (ok(*pair.base_result) && ok(*pair.candidate_result)) {
        const auto different = mismatches(*pair.base_result, *pair.candidate_result, pair.in, candidate_unit);
        found.reasons.insert(found.reasons.end(), different.begin(), different.end());
    }
    const bool incomparable = !found.reasons.empty();
    bool invalid = false;
    for (const bool first : {true, false}) {
        const auto wrong = first ? faults(*pair.base_result, base, "base", rules)
                                 : faults(*pair.candidate_result, candidate, "candidate", rules);
        found.reasons.insert(found.reasons.end(), wrong.begin(), wrong.end());
        invalid = invalid || !wrong.empty();
    }
    if (!invalid && hardware.empty() && pair.base_result->backend != pair.candidate_result->backend) {
        found.reasons.push_back({reason_code::wrong_backend,
                                 "ran on " + pair.base_result->backend + " -> " + pair.candidate_result->backend});
        invalid = true;
    }
    found.outcome = incomparable ? verdict::incomparable : verdict::invalid;
    if (incomparable || invalid) return;
    pair.base = observe(*pair.base_result, base, 1);
    pair.candidate = observe(*pair.candidate_result, candidate, candidate_unit.factor / pair.in.factor);
    // Converting units and halving can leave the range of a double, and nothing may be computed from that.
    const auto unusable = [](const observation& o) { return !std::isfinite(o.cost); };
    for (const auto* side : {&pair.base, &pair.candidate}) {
        if (std::none_of(side->begin(), side->end(), unusable)) continue;
        found.reasons.push_back({reason_code::not_finite, std::string(side == &pair.base ? "base" : "candidate") +
                                                              ": a value out of the range of numbers"});
        return; // invalid, as set above
    }
    pair.testable = true;
}

/// Pairs everything that either side has and lets it pass the gate.
[[nodiscard]] inline std::vector<candidate_pair> pair_up(const result::baseline& base,
                                                         const result::baseline& candidate, const policy& rules) {
    const auto base_results = index(base, "base");
    const auto candidate_results = index(candidate, "candidate");
    const auto hardware = hardware_differences(base, candidate);
    const std::set<std::string> left_out(candidate.selected.left_out.begin(), candidate.selected.left_out.end());
    std::vector<candidate_pair> pairs;
    const auto start = [&](const result::result& from, const std::string& name) -> candidate_pair& {
        candidate_pair pair;
        pair.found.id = from.what.id;
        pair.found.metric = from.what.metric;
        pair.found.unit = from.what.unit;
        pair.found.better = from.what.better;
        pair.in = unit_of(from, name);
        pairs.push_back(std::move(pair));
        return pairs.back();
    };
    for (const auto& [name, result] : base_results) {
        auto& pair = start(*result, "base");
        pair.base_result = result;
        const auto other = candidate_results.find(name);
        if (other != candidate_results.end()) {
            pair.candidate_result = other->second;
            pass_gate(pair, base, candidate, hardware, rules);
            continue;
        }
        pair.found.outcome = verdict::missing;
        if (left_out.count(name.first) != 0) {
            pair.found.markers.insert(marker::not_selected);
            pair.found.reasons.push_back({reason_code::not_selected, "left out by the declared selection"});
        }
    }
    for (const auto& [name, result] : candidate_results) {
        if (base_results.count(name) != 0) continue;
        auto& pair = start(*result, "candidate");
        pair.candidate_result = result;
        judge_new(pair, candidate, rules);
    }
    return pairs;
}

} // namespace detail

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
