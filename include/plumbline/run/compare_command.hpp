// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_COMPARE_COMMAND_HPP
#define PLUMBLINE_RUN_COMPARE_COMMAND_HPP

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "plumbline/compare/compare.hpp"
#include "plumbline/compare/explain.hpp"
#include "plumbline/compare/replay.hpp"
#include "plumbline/json/knowledge.hpp"
#include "plumbline/json/policy.hpp"
#include "plumbline/report/comparison.hpp"
#include "plumbline/run/confirm.hpp"
#include "plumbline/run/measure_command.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

[[nodiscard]] inline compare::policy policy_of(const context& in) {
    compare::policy rules = in.how.policy.empty() ? compare::policy{} : json::load_policy(in.how.policy);
    rules.strict = rules.strict || in.how.strict;
    return rules;
}

/// One side of a comparison in a report: its file and what was measured.
struct compared_side {
    std::string file;
    const result::baseline& measured;
};

/// A comparison in the format asked for.
[[nodiscard]] inline std::string comparison_report(const context& in, const compare::comparison& found,
                                                   const compare::policy& rules, const compared_side& base,
                                                   const compared_side& candidate) {
    report::options look = report_options(in);
    look.base = report::describe(base.measured, base.file);
    look.candidate = report::describe(candidate.measured, candidate.file);
    report::format as = report::format::text;
    if (in.how.format == output_format::json) as = report::format::json;
    if (in.how.format == output_format::markdown) as = report::format::markdown;
    if (in.how.format == output_format::junit) as = report::format::junit;
    if (in.how.format == output_format::github) as = report::format::github;
    std::ostringstream text;
    report::write_comparison(text, as, found, rules, {base.file}, {candidate.file}, look);
    return text.str();
}

/// Refuses, before anything is measured, a base that this run could never be compared with (exit code 3).
inline void require_comparable(const context& in, const result::baseline& base, const std::string& name) {
    if (base.device.backend == in.on.name) return;
    throw error(name + " was measured on the backend '" + base.device.backend + "' and this run would be on '" +
                    in.on.name + "', so nothing could be compared; give --backend=" + base.device.backend +
                    " or another baseline",
                exit_code::incomparable);
}

namespace detail {

/// --replay: adds the baseline's recorded plans to what is measured, for the benchmarks that are, and returns them.
[[nodiscard]] inline std::vector<result::result> plan_replays(const context& in, const result::baseline& base,
                                                              measure_plan& plan) {
    if (!in.how.replay) return {};
    std::vector<result::result> recorded;
    const std::vector<std::string> selected = plan.what.ids;
    for (result::result& each : compare::recorded_plans(base, *in.how.replay)) {
        const std::string source = workload::with_plan(each.what.id, *in.how.replay);
        const bool wanted = std::find(selected.begin(), selected.end(), source) != selected.end();
        if (!wanted || !in.on.has_plans(each.what.id)) continue;
        plan.what.ids.push_back(each.what.id);
        plan.earlier.push_back(each);
        recorded.push_back(std::move(each));
    }
    if (recorded.empty()) in.remarks.warn("--replay: the baseline holds no plan that this backend could time again");
    return recorded;
}

/// The comparison and what explains it, with the recorded plans on both sides where they were replayed. What is kept on
/// disk stays as it is.
[[nodiscard]] inline compare::comparison compare_and_explain(const context& in, result::baseline base,
                                                             result::baseline candidate,
                                                             const std::vector<result::result>& recorded,
                                                             const compare::policy& rules,
                                                             const std::vector<compare::knowledge>& known) {
    const std::vector<std::string> remarks = compare::add_replayed(base, candidate, recorded);
    compare::comparison found = compare::compare(base, candidate, rules);
    if (in.how.replay) compare::note_replays(found, *in.how.replay);
    found.notes.insert(found.notes.end(), remarks.begin(), remarks.end());
    found.why = compare::explain(found, base, candidate, rules, known);
    return found;
}

} // namespace detail

/// `bench --compare` on one device: runs the baseline's benchmarks and says what changed.
[[nodiscard]] inline exit_code compare_command(const context& in, const target_device& device) {
    const std::filesystem::path base_path =
        in.how.file.empty() ? baseline_path(in.folder(), device.device) : in.how.file;
    if (!std::filesystem::exists(base_path)) {
        throw usage_error("--compare: there is no baseline " + base_path.string() +
                          "; make one with --baseline, or name a file with --compare=FILE");
    }
    const result::baseline base = json::load(base_path);
    require_comparable(in, base, base_path.string());
    const compare::policy rules = policy_of(in);
    const std::vector<compare::knowledge> known = json::knowledge_with(in.how.knowledge);
    measure_plan plan;
    plan.what = select(ids_of(base), base.selected.suite, in.how.filter);
    plan.target = run_target(in, device);
    plan.budget_s = default_budget_s(base.selected.suite);
    plan.earlier = base.results;
    const std::vector<result::result> recorded = detail::plan_replays(in, base, plan);
    plan.sessions = in.how.sessions.value_or(5);
    check_outputs(in, plan.target);
    const file_lock lock(plan.target);
    measured_run run = measure_on(in, device, plan);
    if (run.signal) return say_interrupted(in, *run.signal, plan.target);
    json::save(plan.target, run.made);
    remove_leftovers(plan.target);
    compare::comparison found = detail::compare_and_explain(in, base, run.made, recorded, rules, known);
    const std::optional<int> stopped =
        in.how.confirm ? confirm(in, device, run.made, found, plan.target) : std::optional<int>();
    write_report(in, comparison_report(in, found, rules, {base_path.string(), base}, {plan.target.string(), run.made}));
    note_finished(in, device, plan.target, run.made);
    in.remarks.note("this run is kept as " + plan.target.string());
    forget_old_runs(in, device);
    if (stopped) return *stopped == SIGINT ? exit_code::interrupted : exit_code::terminated;
    return worse(found.exit, sessions_code(run.made)); // results are judged by the policy alone
}

namespace detail {

/// The other stack's program: must be something that can be executed.
[[nodiscard]] inline std::filesystem::path control_program(const std::filesystem::path& given) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(given, ignored)) {
        throw usage_error("--control=" + given.string() +
                          ": there is no such file; give the other stack's bench program");
    }
    if (::access(given.c_str(), X_OK) != 0) {
        throw usage_error(
            "--control=" + given.string() +
            " cannot be executed: two stacks are measured in alternation, "
            "so it takes the other stack's bench program, or a script that sets its libraries up and runs "
            "exec bench \"$@\"; a stored baseline is compared with --compare");
    }
    return std::filesystem::absolute(given);
}

} // namespace detail

/// `bench --control=PROGRAM` on one device: this program and the other stack's in alternation, session by session
/// (A B B A), and the paired comparison with the other stack as the base.
[[nodiscard]] inline exit_code control_command(const context& in, const target_device& device) {
    const std::filesystem::path other = detail::control_program(in.how.file);
    const compare::policy rules = policy_of(in);
    const std::vector<compare::knowledge> known = json::knowledge_with(in.how.knowledge);
    measure_plan plan;
    plan.what = choose_benchmarks(in, "standard");
    plan.target = run_target(in, device);
    plan.budget_s = default_budget_s(plan.what.selected.suite);
    plan.sessions = in.how.sessions.value_or(5);
    measure_plan control = plan;
    control.target = plan.target.parent_path() / (plan.target.stem().string() + ".control.json");
    check_outputs(in, plan.target);
    json::check_writable(control.target);
    const file_lock lock(plan.target);
    const file_lock control_lock(control.target);

    std::vector<side> sides;
    sides.push_back(detail::make_side(in, device, control, false));
    sides.push_back(detail::make_side(in, device, plan));
    sides[0].how.program = other.string();
    const preflight_outcome before = preflight(in, device, {}, plan.target);
    if (const auto signal = in.signals.taken()) return say_interrupted(in, *signal, plan.target);
    if (const auto signal = run_campaign(in, device, sides, plan, before.start_s, true)) {
        return say_interrupted(in, *signal, plan.target);
    }
    for (side& each : sides) {
        finish_side(each, before);
        json::save(each.target, each.made);
        remove_leftovers(each.target);
    }
    compare::comparison found = compare::compare(sides[0].made, sides[1].made, rules);
    found.why = compare::explain(found, sides[0].made, sides[1].made, rules, known);
    write_report(in, comparison_report(in, found, rules, {other.string(), sides[0].made},
                                       {plan.target.string(), sides[1].made}));
    in.remarks.note("kept as " + plan.target.string() + " and " + control.target.string());
    forget_old_runs(in, device);
    return worse(found.exit, worse(sessions_code(sides[0].made), sessions_code(sides[1].made)));
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
