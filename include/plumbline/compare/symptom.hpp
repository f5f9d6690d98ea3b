// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_SYMPTOM_HPP
#define PLUMBLINE_COMPARE_SYMPTOM_HPP

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plumbline/compare/board.hpp"
#include "plumbline/compare/comparison.hpp"
#include "plumbline/compare/implementation.hpp"
#include "plumbline/compare/observation.hpp"
#include "plumbline/result/alarm.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/stats/descriptive.hpp"
#include "plumbline/workload/modes.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare::detail {

/// Mechanisms that were seen, each with what is to be said about it.
using signs_seen = std::map<mechanism, std::string>;

/// A verdict that asks for an explanation, with what its two results say beside their times.
struct symptom {
    const finding* of = nullptr;
    const result::result* base = nullptr;
    const result::result* candidate = nullptr;
    double total = 0;            ///< slowdown in ln units; 0 where there is no number
    std::optional<double> clock; ///< the part of it that a lower clock accounts for, where cycles are known
    double machine = 0;          ///< the part that the canary shows too
    bool canary_speaks = false;  ///< a canary says what the machine alone does to this benchmark
    bool failed = false;         ///< it cannot be made any more, or must not be believed
    bool choice_alone = false;   ///< the plan of the base, timed again, is as fast as before: what is new is the choice
    signs_seen seen;

    /// What neither clock nor machine accounts for.
    [[nodiscard]] double own() const { return std::max(0.0, total - std::max(clock.value_or(0), machine)); }
};

/// What the canaries say about device work.
struct canaries {
    canary_state state = canary_state::absent;
    std::string text;
    std::optional<double> compute; ///< slowdown of the compute canary in ln units, 0 when it is as before
    std::optional<double> memory;  ///< of the copy canary
};

[[nodiscard]] inline std::string shortest(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

/// A change of cost in percent: "+8.2 %".
[[nodiscard]] inline std::string percent_text(double ln) {
    return (ln < 0 ? "-" : "+") + shortest(std::abs(100 * std::expm1(ln)), 1) + " %";
}

/// A finding that slowed down beyond doubt and whose effect is not only noise.
[[nodiscard]] inline bool slowed(const finding& f) {
    if (!f.effect || f.effect->hl <= 0) return false;
    return f.outcome == verdict::regressed || (f.effect->low95 > 0 && f.effect->hl > std::log1p(f.used.margin) / 2);
}

[[nodiscard]] inline const result::result* find_result(const result::baseline& in, const finding& f) {
    for (const result::result& each : in.results) {
        if (each.what.id == f.id && each.what.metric == f.metric) return &each;
    }
    return nullptr;
}

/// Reads one canary: how much slower it is, or nothing when it cannot be used, in which case `into` learns why.
[[nodiscard]] inline std::optional<double> read_canary(const finding& f, const result::baseline& base,
                                                       const result::baseline& candidate, canaries& into) {
    const auto* before = find_result(base, f);
    const auto* after = find_result(candidate, f);
    if (before == nullptr || after == nullptr || !f.effect) return std::nullopt;
    const std::string hash = code_hash(observe(*before, base, 1));
    if (hash.empty() || hash != code_hash(observe(*after, candidate, 1))) {
        if (into.state == canary_state::absent) into.state = canary_state::other_code;
        return std::nullopt;
    }
    if (slowed(f)) return f.effect->hl;
    const bool steady = f.outcome == verdict::equivalent || f.outcome == verdict::improved;
    if (steady) return 0;
    if (into.state == canary_state::absent) into.state = canary_state::unclear;
    return std::nullopt;
}

/// What the canaries of a comparison say. The one on matrix units stands for compute-bound work where there is one.
[[nodiscard]] inline canaries read_canaries(const comparison& from, const result::baseline& base,
                                            const result::baseline& candidate) {
    canaries found;
    std::string slowest;
    const auto take = [&](const char* pattern, std::optional<double>& into) {
        for (const finding& f : from.findings) {
            if (into || f.metric != "time" || !glob_matches(pattern, f.id)) continue;
            into = read_canary(f, base, candidate, found);
            if (!into) continue;
            std::string text = f.id + " " + (*into > 0 ? percent_text(*into) : std::string("as before"));
            if (f.has(marker::board_factor_removed)) text += " but for the board's own factor";
            found.text += (found.text.empty() ? "" : ", ") + text;
        }
    };
    take("probe/canary_mma*", found.compute);
    take("probe/canary_fma*", found.compute);
    take("probe/canary_copy*", found.memory);
    if (!found.compute && !found.memory) {
        if (found.state == canary_state::other_code) {
            found.text =
                "the canary's machine code is not the same in both files, so it says nothing about the machine";
        }
        return found;
    }
    const bool slower = found.compute.value_or(0) > 0 || found.memory.value_or(0) > 0;
    found.state = slower ? canary_state::slower : canary_state::unchanged;
    found.text =
        std::string("the library-free canary, the same machine code, ") +
        (slower ? "is slower too (" : "runs as before (") + found.text +
        (slower ? "): hardware or its state, before any library" : "): libraries or settings, not the hardware");
    return found;
}

/// Whether the canaries can speak for a benchmark: steady work on the device itself, not copies, starts or the host's.
[[nodiscard]] inline bool is_device_work(const std::string& id) {
    for (const char* pattern :
         {"gemm/*", "conv/*", "layernorm/*", "training_step/*", "probe/canary_*", "probe/device_copy*"}) {
        if (glob_matches(pattern, id)) return true;
    }
    return false;
}

/// The median of a reading over the sessions of a result; empty where it was not read.
[[nodiscard]] inline std::optional<double> median_state(const result::result& of, const std::string& name) {
    std::vector<double> values;
    for (const result::session_result& each : of.sessions) {
        if (const auto value = number(each.state, name)) values.push_back(*value);
    }
    if (values.empty()) return std::nullopt;
    return stats::median(values);
}

[[nodiscard]] inline std::string lower_case(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

/// What the evidence of two results says: which implementation, with what, from which library.
inline void read_evidence(symptom& s) {
    const result::evidence* before = usual_evidence(*s.base);
    const result::evidence* after = usual_evidence(*s.candidate);
    if (before == nullptr || after == nullptr) return;
    const std::string changed = implementation_change(before->implementation, after->implementation);
    if (s.of->has(marker::implementation_changed) && before->implementation != after->implementation) {
        s.seen[mechanism::implementation_changed] = changed;
        const int rank = instruction_set_rank(before->implementation);
        if (rank > 0 && instruction_set_rank(after->implementation) < rank) {
            s.seen[mechanism::instruction_set_lower] = changed;
        }
    }
    if (before->implementation == "asynchronous" && after->implementation == "blocking") {
        s.seen[mechanism::launch_synchronous] = "launches wait for the work they start";
    }
    const auto has_fallen = [&](const result::evidence& ran) {
        const auto raised = result::alarms(s.candidate->what, ran);
        return std::any_of(raised.begin(), raised.end(),
                           [](const auto& a) { return a.code == result::alarm_code::fallback; });
    };
    const bool fell = has_fallen(*after) && !has_fallen(*before);
    if (fell) s.seen[mechanism::fallback_chosen] = changed;
    for (const auto& [name, old] : before->parts) {
        const auto at = after->parts.find(name);
        if (at == after->parts.end() || at->second == old) continue;
        const std::string text = name + " " + plumbline::to_string(old) + " -> " + plumbline::to_string(at->second);
        if (name == "tensor_cores" && old == scalar(true)) s.seen[mechanism::tensor_cores_lost] = changed;
        if (name == "threads") s.seen[mechanism::threads_changed] = text;
        if (name == "library" || name.find("version") != std::string::npos) s.seen[mechanism::library_replaced] = text;
        const auto from = number(before->parts, name), to = number(after->parts, name);
        if (name.rfind("workspace", 0) == 0 && from && to && *to < 0.9 * *from) {
            s.seen[mechanism::workspace_smaller] = text;
        }
    }
}

/// What the readings of two results say: host, other processes, stages of a loader.
inline void read_states(symptom& s) {
    const auto grew = [&](const std::string& name, double factor) -> std::string {
        const auto from = median_state(*s.base, name), to = median_state(*s.candidate, name);
        if (!from || !to || !(*to > *from * factor)) return {};
        return name + " " + shortest(*from, 1) + " -> " + shortest(*to, 1);
    };
    if (s.of->metric == "enqueue" && s.total > 0) {
        s.seen[mechanism::host_slower] = "enqueueing a launch takes " + percent_text(s.total);
    } else if (const std::string text = grew("enqueue_ns", 1.3); !text.empty()) {
        s.seen[mechanism::host_slower] = text;
    }
    const double half = std::exp(s.total / 2);
    if (const auto text = grew("decode_us_per_image", std::max(1.1, half)); !text.empty()) {
        s.seen[mechanism::decode_slower] = text;
    }
    if (const auto text = grew("read_us_per_image", std::max(1.1, half)); !text.empty()) {
        s.seen[mechanism::read_slower] = text;
    }
    const auto loaded = [](const result::result& of) {
        return std::any_of(of.sessions.begin(), of.sessions.end(),
                           [](const auto& each) { return has_flag(each, result::flag::foreign_load); });
    };
    if (loaded(*s.candidate) && !loaded(*s.base)) {
        s.seen[mechanism::foreign_work] = "another process worked on the device during the run";
    }
}

/// The reason why a finding has no number although its base has one; empty when that is not so, and for what was never
/// begun, which says nothing.
[[nodiscard]] inline std::string failure_of(const symptom& s) {
    if (s.candidate == nullptr || s.base == nullptr || s.base->status != result::result_status::ok) return {};
    if (s.candidate->status == result::result_status::ok) return {};
    return s.candidate->reason == result::no_session ? std::string() : s.candidate->reason;
}

/// What a failure says beyond itself: a library refused to make it, or there was no memory for it. A crash and a wrong
/// result say no such thing.
inline void read_failure(symptom& s, const std::string& why) {
    if (s.candidate->status == result::result_status::skipped) {
        s.seen[mechanism::cannot_run] = why;
    } else if (lower_case(why).find("memory") != std::string::npos) {
        s.seen[mechanism::out_of_memory] = why;
    }
}

/// The replay of the base's plan, where it was timed beside today's choice: it clears whatever slows all plans alike,
/// or the choice.
inline void read_replay(symptom& s, const comparison& from) {
    const auto changed = s.seen.find(mechanism::implementation_changed);
    if (changed == s.seen.end() || s.of->metric != "time") return;
    const std::string id = workload::with_plan(s.of->id, workload::plan_choice::pinned);
    const auto replayed = std::find_if(from.findings.begin(), from.findings.end(),
                                       [&](const finding& f) { return f.id == id && f.metric == "time"; });
    if (replayed == from.findings.end() || !replayed->effect || replayed->base.implementations.empty()) return;
    // Only one choice of the base is replayed: the heuristic's or that of a search.
    const result::evidence* before = usual_evidence(*s.base);
    if (before == nullptr || replayed->base.implementations.front().name != before->implementation) return;
    s.choice_alone = replayed->outcome == verdict::equivalent || replayed->outcome == verdict::improved;
    if (s.choice_alone) {
        changed->second += ", and the baseline's own plan is as fast as before";
    } else if (replayed->outcome == verdict::regressed && replayed->effect->hl > 0.7 * s.total) {
        for (const mechanism each :
             {mechanism::implementation_changed, mechanism::workspace_smaller, mechanism::fallback_chosen}) {
            s.seen.erase(each);
        }
    }
}

/// Fills a symptom's parts and signs; false when the finding asks for no explanation.
[[nodiscard]] inline bool describe_symptom(symptom& s, const canaries& canary, const policy& rules) {
    const finding& f = *s.of;
    const std::string failure = failure_of(s);
    const bool disturbed = std::any_of(f.reasons.begin(), f.reasons.end(),
                                       [](const reason& r) { return r.code == reason_code::foreign_load; });
    s.failed = f.outcome == verdict::invalid && (!failure.empty() || disturbed);
    const bool regressed = f.outcome == verdict::regressed && !f.has(marker::accepted);
    if ((!regressed && !s.failed) || s.base == nullptr || s.candidate == nullptr) return false;
    if (regressed) {
        s.total = f.effect->hl;
        if (f.parts) s.clock = std::clamp(f.parts->clock, 0.0, s.total);
        const bool compute = is_compute_bound(s.base->what, {}, rules) || glob_matches("probe/canary_?ma*", f.id);
        const auto& shift = compute ? canary.compute : canary.memory;
        const auto& other = compute ? canary.memory : canary.compute;
        s.canary_speaks = is_device_work(f.id) && (shift || other);
        if (s.canary_speaks) s.machine = std::min(s.total, shift.value_or(other.value_or(0)));
        // A clock that is a good part of the slowdown is a mechanism of its own.
        if (s.clock.value_or(0) > std::max(0.2 * s.total, std::log1p(f.used.margin) / 2)) {
            s.seen[mechanism::clock_lower] =
                "clock accounts for " + percent_text(*s.clock) + " of " + percent_text(s.total);
        }
    }
    if (!failure.empty()) read_failure(s, failure);
    read_evidence(s);
    read_states(s);
    return true;
}

/// All verdicts of a comparison that ask for an explanation.
[[nodiscard]] inline std::vector<symptom> find_symptoms(const comparison& from, const result::baseline& base,
                                                        const result::baseline& candidate, const canaries& canary,
                                                        const policy& rules) {
    std::map<std::pair<std::string, std::string>, std::pair<const result::result*, const result::result*>> results;
    for (const result::result& each : base.results) results[{each.what.id, each.what.metric}].first = &each;
    for (const result::result& each : candidate.results) results[{each.what.id, each.what.metric}].second = &each;
    std::vector<symptom> found;
    for (const finding& f : from.findings) {
        symptom s;
        s.of = &f;
        std::tie(s.base, s.candidate) = results[{f.id, f.metric}];
        if (!describe_symptom(s, canary, rules)) continue;
        read_replay(s, from);
        found.push_back(std::move(s));
    }
    return found;
}

} // namespace compare::detail

PLUMBLINE_NAMESPACE_END

#endif
