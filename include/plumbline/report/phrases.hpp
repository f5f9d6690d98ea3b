// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_PHRASES_HPP
#define PLUMBLINE_REPORT_PHRASES_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/compare/comparison.hpp"
#include "plumbline/compare/implementation.hpp"
#include "plumbline/report/causes.hpp"
#include "plumbline/report/format.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

// What a finding says in words. Every report for people is made of these, so that all of them say the same.

/// Whether a finding by itself makes the exit code 1 or 4.
[[nodiscard]] inline bool is_red(const compare::finding& what) {
    using compare::marker;
    using compare::verdict;
    const bool excused = what.has(marker::accepted);
    switch (what.outcome) {
    case verdict::regressed:
        return !excused && !what.has(marker::advisory);
    case verdict::invalid:
    case verdict::incomparable:
    case verdict::missing:
        return !what.has(marker::optional) && !what.has(marker::not_selected);
    default:
        return !excused && what.has(marker::suspicious);
    }
}

/// The benchmark as people call it: the id, and the metric where it is not the time.
[[nodiscard]] inline std::string title(const compare::finding& what) {
    return printable(what.metric == "time" ? what.id : what.id + " (" + what.metric + ')');
}

/// Change of the metric itself, as a fraction, for a change of cost in ln units: a cost of +8 % is a throughput of
/// -7.4 %.
[[nodiscard]] inline double change_of_value(const compare::finding& what, double cost) {
    return std::expm1(what.better == direction::lower ? cost : -cost);
}

/// "306 -> 331 us", or what there is of it.
[[nodiscard]] inline std::string values(const compare::finding& what) {
    if (what.base.value && what.candidate.value) {
        return change_of_quantity(*what.base.value, *what.candidate.value, what.unit);
    }
    if (what.base.value) return quantity(*what.base.value, what.unit) + " -> ?";
    if (what.candidate.value) return "? -> " + quantity(*what.candidate.value, what.unit);
    return {};
}

/// "+8.2 % [7.6, 8.8]": the Hodges-Lehmann estimate and the 95 % interval of the change of the metric.
[[nodiscard]] inline std::string change(const compare::finding& what, bool with_interval) {
    if (!what.effect) return {};
    std::string text = signed_percent(change_of_value(what, what.effect->hl));
    if (!with_interval) return text;
    double low = change_of_value(what, what.effect->low95);
    double high = change_of_value(what, what.effect->high95);
    if (low > high) std::swap(low, high);
    if (!std::isfinite(low) || !std::isfinite(high)) return text;
    const int decimals = std::max(std::abs(low), std::abs(high)) < 0.000995 ? 2 : 1;
    return text + " [" + fixed(100 * low, decimals) + ", " + fixed(100 * high, decimals) + ']';
}

/// The change of implementation of a finding, or "" where the same ran on both sides.
[[nodiscard]] inline std::string implementation_change(const compare::finding& what) {
    if (!what.has(compare::marker::implementation_changed)) return {};
    if (what.base.implementations.empty() || what.candidate.implementations.empty()) return {};
    // The usual one of both sides: where sessions differ it may be the same.
    const std::string &from = what.base.implementations.front().name, &to = what.candidate.implementations.front().name;
    return from == to ? std::string() : printable(compare::implementation_change(from, to));
}

/// "clock accounts for +6.1 %, cycles for +2.0 %": a slowdown taken apart. Positive is slower in both: a lower clock,
/// more cycles.
[[nodiscard]] inline std::string parts(const compare::split& from) {
    return "clock accounts for " + signed_percent(compare::split::fraction(from.clock)) + ", cycles for " +
           signed_percent(compare::split::fraction(from.cycles));
}

namespace detail {

[[nodiscard]] inline std::string modes_of(const compare::side& from, const std::string& unit, const char* name) {
    std::string text;
    for (const compare::mode& each : from.modes) {
        text += text.empty() ? std::string(name) + " has two groups: " : " and ";
        text += quantity(each.value, unit) + " (" + counted(each.sessions, "session");
        if (each.clock_mhz) text += ", " + fixed(*each.clock_mhz, 0) + " MHz";
        for (const std::string& implementation : each.implementations) text += ", " + printable(implementation);
        text += ')';
    }
    return text;
}

/// What a marker means to a reader; "" for those that other phrases already say.
[[nodiscard]] inline const char* meaning(compare::marker of) {
    using compare::marker;
    switch (of) {
    case marker::small_but_real:
        return "small but real: within the margin, but not zero";
    case marker::suspicious:
        return "suspicious: too fast to believe until a policy accepts it";
    case marker::advisory:
        return "advisory: does not count for the exit code";
    case marker::optional:
        return "optional: not required by the policy";
    case marker::accepted:
        return "accepted by the policy";
    case marker::acceptance_expired:
        return "the policy's acceptance of this change has expired";
    case marker::throttled:
        return "throttled: the clock was held down during the run";
    case marker::board_factor_removed:
        return "the board's own factor is removed";
    case marker::common_mode:
        return "moved with nearly everything else";
    case marker::baseline_drift:
        return "the control moved too: the stored baseline is no longer what this machine does";
    case marker::unverified:
        return "the output was not verified this time";
    case marker::implementation_varies:
        return "sessions of one side ran different implementations";
    default:
        return "";
    }
}

} // namespace detail

/// What settles an inconclusive finding.
[[nodiscard]] inline std::string what_would_settle(const compare::finding& what) {
    if (!what.effect) return {};
    const double smallest = compare::smallest_reported(what);
    std::string text = std::isfinite(smallest) ? "smallest change it could have seen: " + detectable(smallest)
                                               : std::string("no change of any size could have been seen");
    if (what.effect->sessions_needed) {
        text += "; " + counted(*what.effect->sessions_needed, "session") + " a side would settle it";
    } else {
        text += "; more sessions would not settle it, another day or boot, or an interleaved --control would";
    }
    return text;
}

/// An alarm as people read it: "ALARM: TF32 was asked for and not used: ... (the base has it too)".
[[nodiscard]] inline std::string describe(const compare::raised_alarm& from) {
    return "ALARM: " + printable(from.what.text) + (from.in_base ? " (the base has it too)" : "");
}

/// Everything else worth knowing about a finding, one sentence an element, none of them empty.
[[nodiscard]] inline std::vector<std::string> details(const compare::finding& what) {
    using compare::verdict;
    std::vector<std::string> all;
    const auto add = [&all](std::string text) {
        if (!text.empty()) all.push_back(std::move(text));
    };
    for (const compare::raised_alarm& each : what.alarms) add(describe(each));
    for (const compare::reason& each : what.reasons) {
        add(printable(each.text.empty() ? compare::to_string(each.code) : each.text));
    }
    add(detail::modes_of(what.base, what.unit, "the base"));
    add(detail::modes_of(what.candidate, what.unit, "the new one"));
    const bool moved = what.outcome == verdict::regressed || what.outcome == verdict::improved;
    if (moved && what.parts) add(parts(*what.parts));
    if (what.outcome == verdict::inconclusive) add(what_would_settle(what));
    for (const compare::marker each : what.markers) add(detail::meaning(each));
    return all;
}

/// "5 regressed, 41 equivalent, 6 inconclusive": every class that occurs, worst first.
[[nodiscard]] inline std::string counts(const compare::comparison& from) {
    std::string text;
    for (const compare::verdict each : compare::all_verdicts) {
        if (from.count(each) == 0) continue;
        std::string name = compare::to_string(each);
        std::replace(name.begin(), name.end(), '_', ' ');
        text += (text.empty() ? "" : ", ") + std::to_string(from.count(each)) + ' ' + name;
    }
    return text.empty() ? "nothing was compared" : text;
}

/// counts and the exit code: the last line of a report.
[[nodiscard]] inline std::string summary(const compare::comparison& from) {
    return counts(from) + "; exit " + std::to_string(static_cast<int>(from.exit));
}

/// The report in one line for who reads no further: what is red, and what most likely brought it about. "" when nothing
/// is red.
[[nodiscard]] inline std::string in_short(const compare::comparison& from) {
    std::string text;
    for (const compare::verdict each : compare::all_verdicts) {
        const auto red = std::count_if(from.findings.begin(), from.findings.end(),
                                       [&](const compare::finding& f) { return f.outcome == each && is_red(f); });
        if (red == 0) continue;
        const bool suspicious = each == compare::verdict::improved || each == compare::verdict::equivalent;
        text += (text.empty() ? "" : ", ") + std::to_string(red) + ' ' +
                (suspicious ? "suspicious" : compare::to_string(each));
    }
    if (text.empty() || from.why.empty()) return text;
    if (from.why.causes.empty()) return text + "; no cause found";
    const compare::cause& first = from.why.causes.front();
    const bool fits_only = first.how_sure == compare::strength::associated;
    text += first.how_sure == compare::strength::confirmed ? "; because of "
            : fits_only                                    ? "; perhaps "
                                                           : "; most likely ";
    text += what_changed(first) + " (" + compare::to_string(first.how_sure) +
            (first.covers.empty() ? ")" : ", covers " + std::to_string(first.covers.size()) + ')');
    if (from.why.causes.size() == 1) return text;
    return text + " and " + counted(from.why.causes.size() - 1, "more cause");
}

/// Whether nearly everything became slower at once.
[[nodiscard]] inline bool machine_slower(const compare::comparison& from) {
    return from.machine_wide && from.machine_wide->shift > 0;
}

/// The machine-wide finding in one sentence, or "".
[[nodiscard]] inline std::string machine_wide(const compare::comparison& from) {
    if (!from.machine_wide) return {};
    const compare::common_mode& common = *from.machine_wide;
    std::string text = percent(common.share) + " of " + counted(common.pairs, "pair") + " moved together: cost " +
                       signed_percent(std::expm1(common.shift));
    if (!common.parts) return text + "; look at clock, power, temperature and other processes first";
    const bool clock = std::abs(common.parts->clock) > std::abs(common.shift) / 2;
    return text + "; " + parts(*common.parts) +
           (clock ? "; look at clock settings, power and temperature first" : "; look at other processes first");
}

/// What is known about the boards in one sentence, or "" when both sides ran on the same.
[[nodiscard]] inline std::string boards(const compare::comparison& from) {
    if (!from.board) return {};
    const compare::board_factor& board = *from.board;
    const std::string pair =
        "another board (" + printable(board.base_board) + " -> " + printable(board.candidate_board) + ')';
    if (!board.problem.empty()) return pair + ": " + printable(board.problem);
    return pair + ": compute cost " + signed_percent(std::expm1(board.shift)) + " by " + printable(board.canary) +
           (board.red ? ", more than boards of one model differ" : ", removed from the changes below");
}

/// Configuration that differs, which may explain a change: those the fingerprint knows on both sides.
[[nodiscard]] inline std::vector<const environment::difference*> candidate_causes(const compare::comparison& from) {
    std::vector<const environment::difference*> causes;
    for (const auto& each : from.environment) {
        if (each.changed() && each.kind != result::attribute_class::state) causes.push_back(&each);
    }
    return causes;
}

/// What to do next, most urgent first.
[[nodiscard]] inline std::vector<std::string> next_steps(const compare::comparison& from) {
    using compare::verdict;
    std::vector<std::string> steps;
    const auto any = [&](auto test) { return std::any_of(from.findings.begin(), from.findings.end(), test); };
    const bool red_regression =
        any([](const compare::finding& f) { return f.outcome == verdict::regressed && is_red(f); });
    if (!from.why.empty()) {
        if (!from.why.conclusion.empty()) steps.push_back(printable(from.why.conclusion));
        const bool provable = std::any_of(from.why.causes.begin(), from.why.causes.end(), [](const compare::cause& c) {
            return !c.tried && c.how_sure != compare::strength::confirmed && !compare::settable(c).empty();
        });
        if (provable) steps.push_back("to prove a cause: bench --compare=BASE --confirm");
    } else if (red_regression || machine_slower(from)) {
        if (candidate_causes(from).empty()) {
            steps.push_back("nothing recorded changed: suspect the machine; run the suite on a sibling, then "
                            "bench-compare --siblings DIR NEW");
        } else {
            steps.push_back("to prove a cause: bench --compare=BASE --confirm");
        }
    }
    if (red_regression) {
        steps.push_back("if the change is wanted: bench-compare --accept NEW --into BASE --reason=TEXT");
    }
    if (any([](const compare::finding& f) { return f.has(compare::marker::suspicious) && is_red(f); })) {
        steps.push_back("check that a suspicious benchmark still does its work; then accept it in the policy");
    }
    const auto ran_before = [](const compare::finding& f) {
        return std::any_of(f.reasons.begin(), f.reasons.end(), [](const compare::reason& each) {
            return each.code == compare::reason_code::failed || each.code == compare::reason_code::skipped_one_side;
        });
    };
    const auto invalid = [](const compare::finding& f) { return f.outcome == verdict::invalid && is_red(f); };
    if (any([&](const compare::finding& f) { return invalid(f) && ran_before(f); })) {
        steps.push_back("what failed is red until it runs again: remove the cause, or the reason given");
    }
    if (any([&](const compare::finding& f) { return invalid(f) && !ran_before(f); })) {
        steps.push_back("invalid results prove nothing: remove the reason given and measure again");
    }
    if (any([](const compare::finding& f) { return f.outcome == verdict::incomparable && is_red(f); })) {
        steps.push_back("incomparable results need a baseline of the same hardware and workloads; "
                        "--allow-hardware-diff gives ratios without verdicts");
    }
    if (any([](const compare::finding& f) { return f.outcome == verdict::missing && is_red(f); })) {
        steps.push_back("measure what is missing, or declare the subset with --filter");
    }
    std::size_t sessions = 0;
    bool epochs = false;
    for (const compare::finding& each : from.findings) {
        if (each.outcome != verdict::inconclusive || !each.effect) continue;
        if (each.effect->sessions_needed)
            sessions = std::max(sessions, *each.effect->sessions_needed);
        else
            epochs = true;
    }
    if (sessions > 0) {
        steps.push_back("to settle what is inconclusive: bench --sessions=" + std::to_string(sessions) +
                        " on both sides");
    }
    if (epochs) {
        steps.push_back("to settle the rest: --append sessions of another day or boot, or interleave with --control");
    }
    return steps;
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
