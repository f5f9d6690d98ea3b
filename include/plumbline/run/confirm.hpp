// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_CONFIRM_HPP
#define PLUMBLINE_RUN_CONFIRM_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/compare/trial.hpp"
#include "plumbline/environment/checks.hpp"
#include "plumbline/run/measure_command.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// Limits of --confirm: how much of a comparison is run again.
namespace confirm_limits {
inline constexpr std::size_t causes = 4;    ///< the most credible ones
inline constexpr std::size_t results = 4;   ///< of each cause, the most affected
inline constexpr std::size_t sentinels = 2; ///< that had not changed
inline constexpr std::size_t rounds = 2;    ///< times each cause is set back
inline constexpr double seconds = 300;      ///< of all of it, where --time-budget says nothing
} // namespace confirm_limits

namespace detail {

/// One cause that is set back and forth.
struct experiment {
    compare::cause* on = nullptr;
    std::vector<environment::difference> settings;
    std::vector<compare::covered_result> tried; ///< what it covers that is run
    std::vector<compare::alternation> rounds;
    std::string problem; ///< why the old setting could not be had
};

/// The setting that a session gets to be as the baseline was.
[[nodiscard]] inline child_setting old_setting(const std::vector<environment::difference>& settings) {
    child_setting made;
    for (const environment::difference& each : settings) {
        std::optional<std::string> value;
        if (each.from.known()) value = to_string(each.from.value);
        if (each.name == "cpu.allowed")
            made.processors = value;
        else
            made.variables[each.name.substr(std::string_view("env.").size())] = value;
    }
    return made;
}

/// The experiments a comparison asks for: causes that can be set from outside, those set aside as explained by another
/// included, each with the results it covers, most affected first.
[[nodiscard]] inline std::vector<experiment> find_experiments(compare::explanation& why) {
    std::vector<experiment> found;
    for (auto* list : {&why.causes, &why.set_aside}) {
        for (compare::cause& each : *list) {
            experiment one{&each, compare::settable(each), each.covers, {}, {}};
            if (one.settings.empty() || one.tried.empty() || found.size() >= confirm_limits::causes) continue;
            std::stable_sort(one.tried.begin(), one.tried.end(),
                             [](const auto& a, const auto& b) { return a.share > b.share; });
            // What cannot run any more has no share: one of it is enough, and says much.
            std::vector<compare::covered_result> some;
            std::copy_if(one.tried.begin(), one.tried.end(), std::back_inserter(some),
                         [](const auto& r) { return r.share > 0; });
            if (some.size() > confirm_limits::results) some.resize(confirm_limits::results);
            const auto failed =
                std::find_if(one.tried.begin(), one.tried.end(), [](const auto& r) { return r.share <= 0; });
            if (failed != one.tried.end()) some.push_back(*failed);
            one.tried = std::move(some);
            found.push_back(std::move(one));
        }
    }
    return found;
}

/// Results that had not changed and that no experiment covers, the steadiest first.
[[nodiscard]] inline std::vector<compare::result_name> find_sentinels(const compare::comparison& found) {
    std::vector<const compare::finding*> steady;
    for (const compare::finding& each : found.findings) {
        const bool still =
            each.outcome == compare::verdict::equivalent || each.outcome == compare::verdict::inconclusive;
        if (still && each.effect && each.metric == "time") steady.push_back(&each);
    }
    const auto rank = [](const compare::finding* f) {
        return std::pair(f->outcome != compare::verdict::equivalent, std::abs(f->effect->hl) + f->effect->se);
    };
    std::sort(steady.begin(), steady.end(), [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
    std::vector<compare::result_name> names;
    for (const compare::finding* each : steady) {
        if (names.size() < confirm_limits::sentinels) names.emplace_back(each->id, each->metric);
    }
    return names;
}

/// A session that measures `ids` like an earlier one, in an order of its own.
[[nodiscard]] inline result::baseline leg_plan(const context& in, const result::baseline& like,
                                               const std::vector<std::string>& ids, std::uint64_t seed) {
    result::baseline plan;
    plan.created = utc_text(std::time(nullptr));
    plan.tool = tool_identity();
    plan.device.backend = in.on.name;
    result::session session;
    session.started = utc_now();
    session.seed = seed;
    session.order = shuffled(ids, seed);
    plan.sessions.push_back(std::move(session));
    for (const result::result& each : like.results) {
        if (each.status != result::result_status::ok || each.sessions.empty()) continue;
        if (std::find(ids.begin(), ids.end(), each.what.id) == ids.end()) continue;
        result::result known = each;
        known.sessions.resize(1);
        known.sessions[0].session = 0;
        plan.results.push_back(std::move(known));
    }
    return plan;
}

/// Why a session did not run as the baseline did although it was told to; empty when it did.
[[nodiscard]] inline std::string setting_problem(const session_end& end,
                                                 const std::vector<environment::difference>& wanted) {
    if (end.failed || end.measured.sessions.empty()) return end.reason.empty() ? "the session failed" : end.reason;
    for (const environment::difference& each : wanted) {
        const result::attribute* now = end.measured.environment.find(each.name);
        const bool known = now != nullptr && now->read.known();
        const bool as_before = each.from.known() ? known && now->read.value == each.from.value : !known;
        if (!as_before) return each.name + " could not be set back to " + environment::describe(each.from);
    }
    return {};
}

/// What keeps a session from being as fast as the baseline was whatever its settings are; empty when nothing does.
[[nodiscard]] inline std::string disturbance(const environment::host& machine, const result::baseline& of) {
    for (const result::result& each : of.results) {
        for (const result::session_result& one : each.sessions) {
            if (compare::has_flag(one, result::flag::foreign_load)) return "another process worked on the device";
        }
    }
    environment::check_context look;
    look.machine = &machine;
    look.fingerprint = &of.environment;
    const environment::check_outcome alone = environment::checks::cpu_left_alone(look);
    return alone.status == environment::check_status::warn ? alone.seen : std::string();
}

/// Runs the sessions of --confirm.
class confirmation {
public:
    confirmation(const context& in, const target_device& device, const result::baseline& like,
                 compare::comparison& found, const std::filesystem::path& beside)
        : in_(in), machine_(device.machine), like_(like), found_(found), beside_(beside),
          experiments_(find_experiments(found.why)), sentinels_(find_sentinels(found)) {
        how_ = launcher_for(in, device.number, std::min(0.5, default_budget_s(like.selected.suite)));
        std::set<std::string> names;
        for (const experiment& each : experiments_) {
            for (const auto& result : each.tried) names.insert(result.id);
        }
        for (const auto& name : sentinels_) names.insert(name.first);
        ids_.assign(names.begin(), names.end());
        fit(device);
    }

    /// Sets each cause back and forth and writes what came of it into the explanation. The signal that ended it early.
    std::optional<int> run() {
        if (experiments_.empty()) return std::nullopt;
        leg_or_nothing last = run_leg({}, {});
        for (std::size_t round = 0; round < rounds_ && last; ++round) {
            for (experiment& each : experiments_) {
                if (!each.problem.empty()) continue;
                const leg_or_nothing old = run_leg(old_setting(each.settings), each.settings, &each.problem);
                if (!old) continue;
                const leg_or_nothing after = run_leg({}, {});
                if (!after) break;
                each.rounds.push_back({*last, *old, *after});
                last = after;
            }
        }
        in_.remarks.clear();
        if (const auto signal = in_.signals.taken()) {
            in_.remarks.warn("--confirm was interrupted: its causes stand as the comparison found them");
            return signal;
        }
        for (experiment& each : experiments_) {
            compare::trial& tried =
                each.on->tried.emplace(compare::judge(each.rounds, each.tried, sentinels_, disturbed_));
            if (!each.problem.empty()) tried.text = "not tried: " + each.problem;
        }
        compare::conclude_trials(found_);
        return std::nullopt;
    }

private:
    using leg_or_nothing = std::optional<compare::leg>;

    /// Says what will be done and how long it takes, and leaves out what does not fit into the time there is.
    void fit(const target_device& device) {
        if (experiments_.empty()) {
            if (!found_.why.causes.empty()) {
                in_.remarks.note(
                    "--confirm: none of the causes can be set back from outside; see what proves them by hand");
            }
            return;
        }
        measure_plan plan;
        plan.budget_s = how_.budget_s;
        plan.target = beside_;
        forecast times = learn_times(in_, device, plan);
        times.learn(like_);
        double limit = confirm_limits::seconds;
        if (in_.how.time_budget_s) limit = *in_.how.time_budget_s - detail::seconds_since(in_.begin);
        const auto sessions = [&] { return 1 + 2 * rounds_ * experiments_.size(); };
        const double one = times.predict(ids_, 1);
        while (rounds_ > 1 && one * static_cast<double>(sessions()) > limit) --rounds_;
        while (experiments_.size() > 1 && one * static_cast<double>(sessions()) > limit) experiments_.pop_back();
        in_.remarks.note("--confirm: " + std::to_string(experiments_.size()) +
                         (experiments_.size() == 1 ? " cause" : " causes") + " set back and forth, " +
                         std::to_string(ids_.size()) + " benchmarks, " + std::to_string(sessions()) +
                         " sessions: about " + duration_text(one * static_cast<double>(sessions())));
    }

    /// One session; nothing when it failed, with the reason in `problem`.
    leg_or_nothing run_leg(const child_setting& setting, const std::vector<environment::difference>& wanted,
                           std::string* problem = nullptr) {
        if (in_.signals.taken()) return std::nullopt;
        how_.setting = setting;
        std::string why;
        try {
            const session_end end = run_session(how_, leg_plan(in_, like_, ids_, ++seed_), beside_, in_.signals,
                                                [&](const session_event& event) {
                                                    if (event.begins) in_.remarks.step("confirming: " + event.id);
                                                });
            why = setting_problem(end, wanted);
            if (disturbed_.empty()) disturbed_ = disturbance(machine_, end.measured);
            if (why.empty()) return compare::read_leg(end.measured);
        } catch (const error& e) {
            why = e.what();
        }
        if (problem != nullptr) *problem = why;
        if (problem == nullptr) in_.remarks.warn("--confirm: a session failed: " + why);
        return std::nullopt;
    }

    const context& in_;
    const environment::host& machine_;
    const result::baseline& like_;
    compare::comparison& found_;
    std::filesystem::path beside_;
    std::vector<experiment> experiments_;
    std::vector<compare::result_name> sentinels_;
    std::vector<std::string> ids_;
    launcher how_;
    std::string disturbed_; ///< what else held sessions back; empty when nothing did
    std::size_t rounds_ = confirm_limits::rounds;
    std::uint64_t seed_ = 0;
};

} // namespace detail

/// `--confirm`: re-runs what a comparison found worse, and two results that had not changed, in new sessions: as things
/// are, with a cause set back to what it was in the baseline, and as things are again. Only causes that a process can
/// be given from outside: environment variables (LD_LIBRARY_PATH among them) and the CPU affinity. `like` is the run
/// that was compared; session files lie beside `beside`. Returns the signal that ended it early.
[[nodiscard]] inline std::optional<int> confirm(const context& in, const target_device& device,
                                                const result::baseline& like, compare::comparison& found,
                                                const std::filesystem::path& beside) {
    return detail::confirmation(in, device, like, found, beside).run();
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
