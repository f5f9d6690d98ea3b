// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_MEASURE_COMMAND_HPP
#define PLUMBLINE_RUN_MEASURE_COMMAND_HPP

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/core/utf8.hpp"
#include "plumbline/json/google_benchmark.hpp"
#include "plumbline/json/store.hpp"
#include "plumbline/measure/ceilings.hpp"
#include "plumbline/report/results.hpp"
#include "plumbline/report/terminal.hpp"
#include "plumbline/run/campaign.hpp"
#include "plumbline/run/preflight.hpp"
#include "plumbline/run/select.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// How a run is to be made, after everything about it has been decided.
struct measure_plan {
    chosen what;
    std::filesystem::path target;
    std::optional<result::baseline> existing; ///< --append: the baseline that gets more sessions
    std::vector<result::result> earlier;      ///< --compare: the results this run is compared with
    std::size_t sessions = 5;
    double budget_s = 1;
};

/// What became of a run.
struct measured_run {
    result::baseline made;
    std::optional<int> signal; ///< ended early by it; FILE.partial holds what was measured
    std::filesystem::path partial;
};

/// Seconds a benchmark may take in a session, by suite: quick's 15 results in 5 sessions fit into a minute,
/// standard's 60 into five.
[[nodiscard]] inline double default_budget_s(const std::string& suite) {
    if (suite == "quick") return 0.5;
    return suite == "full" ? 2 : 1;
}

/// The benchmarks of --suite and --filter. A known family's id that does not parse is a usage_error.
[[nodiscard]] inline chosen choose_benchmarks(const context& in, const std::string& default_suite) {
    const std::string name = in.how.suite.empty() ? default_suite : in.how.suite;
    const workload::suite suite = find_suite(name, in.settings.suites);
    chosen made = select(suite.of(in.on.name), name, in.how.filter);
    const finder find = in.on.find(in.how.data);
    for (const std::string& id : made.ids) {
        try {
            (void)find(id);
        } catch (const unsupported_error&) {
            // Another backend's family: a skipped result with the reason.
        }
    }
    if (in.how.search) add_searches(made, in.on.has_plans);
    return made;
}

/// Finds out, before anything is measured, whether everything that will be written can be.
inline void check_outputs(const context& in, const std::filesystem::path& target) {
    json::check_writable(target);
    if (!in.how.save.empty()) json::check_writable(in.how.save);
    if (!in.how.output.empty()) json::check_writable(in.how.output);
    if (!in.how.google_output.empty()) json::check_writable(in.how.google_output);
}

/// 4 when a session died, hung or could not start: whatever the results say, something is wrong with this machine.
[[nodiscard]] inline exit_code sessions_code(const result::baseline& made) {
    for (const result::session& each : made.sessions) {
        if (each.failed) return exit_code::incomplete;
    }
    return exit_code::ok;
}

/// The exit code of a run by itself: 4 when anything failed, died, was disturbed by foreign load or was not measured.
[[nodiscard]] inline exit_code code_of(const result::baseline& made) {
    bool any = false;
    bool bad = sessions_code(made) != exit_code::ok;
    for (const result::result& each : made.results) {
        any = any || each.status == result::result_status::ok;
        bad = bad || each.status == result::result_status::failed || result::lacked_time(each);
        for (const result::session_result& one : each.sessions) {
            for (const std::string& flag : one.flags) bad = bad || flag == result::flag::foreign_load;
        }
    }
    return any && !bad ? exit_code::ok : exit_code::incomplete;
}

namespace detail {

/// The unfinished run of `plan.target`; usage_error when there is none or it was of other benchmarks.
[[nodiscard]] inline result::baseline load_unfinished(const measure_plan& plan) {
    const std::filesystem::path partial = json::partial_path(plan.target);
    if (!std::filesystem::exists(partial)) {
        throw usage_error("--resume: there is no unfinished run " + partial.string() + "; leave --resume out");
    }
    result::baseline made = json::load(partial);
    // A killed parent could not take in what its last session had finished.
    result::baseline last = peek_session(plan.target);
    const auto known = [&](const result::session& one) {
        for (const result::session& each : made.sessions) {
            if (each.started == one.started && each.seed == one.seed) return true;
        }
        return false;
    };
    if (!last.sessions.empty() && !known(last.sessions.front())) merge(made, std::move(last));
    if (made.selected.suite != plan.what.selected.suite || made.selected.filter != plan.what.selected.filter) {
        throw usage_error("--resume: the unfinished run " + partial.string() + " was of suite '" + made.selected.suite +
                          "' with filter '" + made.selected.filter +
                          "'; give the same, or leave --resume out to start anew");
    }
    return made;
}

/// Starting point of a side: empty, a baseline that gets more sessions, or an unfinished run. `main`: the side whose
/// file --resume must find.
[[nodiscard]] inline side make_side(const context& in, const target_device& device, const measure_plan& plan,
                                    bool main = true) {
    side made;
    made.how = launcher_for(in, device.number, plan.budget_s);
    made.target = plan.target;
    made.ids = plan.what.ids;
    made.earlier = plan.earlier;
    std::map<std::string, std::size_t> done;
    const std::filesystem::path partial = json::partial_path(plan.target);
    // The second side of an interleaved run may not have begun when it was interrupted.
    const bool resumed = in.how.resume && (main || std::filesystem::exists(partial));
    if (resumed) {
        made.made = load_unfinished(plan);
        done = sessions_by_id(made.made);
        json::save(partial, made.made); // with what the last session had finished: nothing is lost from here on
    } else if (plan.existing) {
        made.made = *plan.existing;
    }
    if (plan.existing) {
        for (const auto& [id, count] : sessions_by_id(*plan.existing)) done[id] -= std::min(done[id], count);
    }
    if (!resumed && std::filesystem::exists(partial)) {
        in.remarks.note("starting anew: the unfinished run " + partial.string() + " is given up");
    }
    remove_leftovers(plan.target, resumed);
    made.reference_known = !made.made.environment.attributes.empty() && !in.how.force;
    if (!plan.existing) made.made.selected = plan.what.selected;
    made.made.tool = tool_identity();
    made.made.device = device.device;
    for (const auto& [name, value] : in.how.labels) made.made.labels[name] = value;
    if (made.made.created.empty()) made.made.created = utc_text(std::time(nullptr));
    made.todo = schedule(plan.what.ids, plan.sessions, done);
    return made;
}

/// What earlier runs of this device say about times; the existing file knows best.
[[nodiscard]] inline forecast learn_times(const context& in, const target_device& device, const measure_plan& plan) {
    forecast times(plan.budget_s, in.on.find(in.how.data));
    std::vector<std::filesystem::path> files = finished_runs(in.folder(), device.device, 1);
    files.push_back(baseline_path(in.folder(), device.device));
    files.push_back(plan.target);
    for (const std::filesystem::path& file : files) {
        try {
            if (std::filesystem::exists(file)) times.learn(json::load(file));
        } catch (const error&) {
            // A broken file of an earlier run only costs the prediction.
        }
    }
    return times;
}

/// Shares what is left of --time-budget out to the benchmarks.
inline void fit_budget(std::vector<side>& sides, const forecast& times, double left_s) {
    double fixed = 0, measuring = 0;
    for (const side& each : sides) {
        const double sessions = static_cast<double>(each.todo.sessions_left());
        fixed += times.start_s() * sessions;
        measuring += times.predict(each.ids, each.todo.sessions_left()) - times.start_s() * sessions;
    }
    if (measuring <= 0 || fixed + measuring <= left_s) return;
    const double share = std::max(0.02, (left_s - fixed) / measuring);
    for (side& each : sides) each.how.budget_s = std::max(0.02, each.how.budget_s * share);
}

[[nodiscard]] inline std::string campaign_remark(const std::vector<side>& sides, const forecast& times,
                                                 const std::string& backend) {
    double seconds = 0;
    std::size_t sessions = 0;
    for (const side& each : sides) {
        seconds += times.predict(each.todo.next(), each.todo.sessions_left());
        sessions += each.todo.sessions_left();
    }
    const std::size_t ids = sides.front().todo.next().size();
    return std::to_string(ids) + (ids == 1 ? " benchmark, " : " benchmarks, ") + std::to_string(sessions) +
           (sessions == 1 ? " session" : " sessions") + " on " + backend + ": about " + duration_text(seconds) +
           (times.learnt() ? "" : " (a first guess)");
}

} // namespace detail

/// Measures one or more sides and says beforehand how long it will take; `start_s` is what the preflight's session
/// took beside its benchmarks. Returns the signal that ended it early.
[[nodiscard]] inline std::optional<int> run_campaign(const context& in, const target_device& device,
                                                     std::vector<side>& sides, const measure_plan& plan,
                                                     std::optional<double> start_s, bool paired) {
    forecast times = detail::learn_times(in, device, plan);
    if (start_s) times.started_in(*start_s);
    campaign_settings how;
    how.paired = paired;
    how.seed = std::random_device{}() % 1000000007u;
    if (in.how.time_budget_s) {
        how.time_budget_s = std::max(0.1, *in.how.time_budget_s - detail::seconds_since(in.begin));
        detail::fit_budget(sides, times, *how.time_budget_s);
    }
    in.remarks.note(detail::campaign_remark(sides, times, in.on.name));
    return campaign(sides, how, times, in.remarks, in.signals).run();
}

/// Tells where an interrupted run is kept.
[[nodiscard]] inline exit_code say_interrupted(const context& in, int signal, const std::filesystem::path& target) {
    const char* name = signal == SIGINT ? "SIGINT" : "SIGTERM";
    const std::filesystem::path partial = json::partial_path(target);
    const bool kept = std::filesystem::exists(partial);
    in.remarks.warn(std::string("interrupted by ") + name +
                    (kept ? "; what was measured is in " + partial.string() + ": the same command with --resume goes on"
                          : "; nothing had been measured yet"));
    return signal == SIGINT ? exit_code::interrupted : exit_code::terminated;
}

/// What is added to a side's measurements when all sessions are done: the preflight, and the limits of the device as
/// its own results show them.
inline void finish_side(side& of, const preflight_outcome& before) {
    keep_preflight(of.made, before);
    for (const auto& [name, limit] : measure::ceilings(of.made.results)) of.made.device.ceilings[name] = limit;
}

/// Preflight and sessions of a plan on one device: the part that bench, --baseline and --compare share. Nothing but
/// FILE.partial is written.
[[nodiscard]] inline measured_run measure_on(const context& in, const target_device& device, const measure_plan& plan) {
    std::vector<side> sides;
    sides.push_back(detail::make_side(in, device, plan));
    // A baseline is what others are measured by, so it begins by asking whether the device works at all.
    const std::vector<std::string> checked =
        in.how.what == action::baseline ? check_ids(in) : std::vector<std::string>{};
    const preflight_outcome before = preflight(in, device, checked, plan.target);
    if (const std::optional<int> signal = in.signals.taken()) return {sides[0].made, signal, plan.target};
    const std::optional<int> signal = run_campaign(in, device, sides, plan, before.start_s, false);
    finish_side(sides[0], before);
    result::baseline& made = sides[0].made;
    return {std::move(made), signal, json::partial_path(plan.target)};
}

/// The person a baseline's history names: $USER, as given.
[[nodiscard]] inline std::string user_name(const context& in) {
    for (const char* name : {"PLUMBLINE_USER", "USER", "LOGNAME"}) {
        const auto at = in.variables.find(name);
        if (at != in.variables.end() && !at->second.empty()) return valid_utf8(at->second);
    }
    return "unknown";
}

/// Colours and width of the place the report goes to.
[[nodiscard]] inline report::options report_options(const context& in) {
    report::options look;
    report::suit(look, in.how.output.empty() ? STDOUT_FILENO : -1);
    return look;
}

/// The report of a run without comparison, in the format asked for.
[[nodiscard]] inline std::string results_report(const context& in, const result::baseline& made) {
    if (in.how.format == output_format::json) return json::dump(made) + "\n";
    if (in.how.format == output_format::google) return json::dump_google_benchmark(made, in.settings.name);
    std::ostringstream text;
    report::write_results(text, made, report_options(in));
    return text.str();
}

/// Keeps what a device did for the comparison with its siblings.
inline void note_finished(const context& in, const target_device& device, const std::filesystem::path& file,
                          const result::baseline& made) {
    if (in.finished == nullptr) return;
    in.finished->push_back({"device " + std::to_string(device.number) + " (" + file.filename().string() + ")", made});
}

/// Where the baseline of this call lies, and which of the three ways to write it was chosen. A file that exists
/// without a choice is a usage_error that names them.
[[nodiscard]] inline std::filesystem::path baseline_target(const context& in, const target_device& device) {
    const std::filesystem::path path = in.how.file.empty() ? baseline_path(in.folder(), device.device) : in.how.file;
    if (std::filesystem::is_directory(path)) throw file_error(path.string(), "is a folder; name a file in it");
    const bool exists = std::filesystem::exists(path);
    if (exists && !in.how.append && !in.how.replace) {
        throw usage_error(path.string() +
                          " exists and is never overwritten: --append adds sessions to it, "
                          "--compare=" +
                          path.string() +
                          " compares with it, --replace --reason=TEXT replaces it "
                          "(the old one is kept)");
    }
    if (!exists && in.how.append) {
        throw usage_error("--append: there is no baseline " + path.string() + "; make it with --baseline first");
    }
    return path;
}

/// Where a run that is no baseline is kept: --save, the unfinished run that --resume means, or the folder runs/.
[[nodiscard]] inline std::filesystem::path run_target(const context& in, const target_device& device) {
    if (in.how.save.empty()) {
        (void)runs_to_keep(in.variables); // a wrong number is said before anything is measured
        if (!in.how.resume) return run_path(in.folder(), device.device, std::time(nullptr));
        const std::filesystem::path unfinished = unfinished_run(in.folder(), device.device);
        if (unfinished.empty()) {
            throw usage_error("--resume: there is no unfinished run in " + (in.folder() / "runs").string() +
                              "; leave --resume out");
        }
        return unfinished;
    }
    if (!std::filesystem::exists(in.how.save)) return in.how.save;
    if (!json::load(in.how.save).history.empty()) {
        throw usage_error(in.how.save.string() +
                          " is a baseline and is never overwritten by --save; choose another "
                          "file, or use --baseline=" +
                          in.how.save.string() + " --replace --reason=TEXT");
    }
    return in.how.save;
}

/// Keeps runs/ from growing without bound, after a run was added to it.
inline void forget_old_runs(const context& in, const target_device& device) {
    if (in.how.save.empty()) remove_old_runs(in.folder(), device.device, runs_to_keep(in.variables));
}

/// Writes a finished baseline with what happened to it; a replaced one is kept beside it.
inline void store_baseline(const context& in, const std::filesystem::path& target, result::baseline& made) {
    const std::time_t now = std::time(nullptr);
    const char* what = in.how.append ? "appended" : in.how.replace ? "replaced" : "created";
    if (in.how.replace && std::filesystem::exists(target)) {
        const std::filesystem::path kept = replaced_path(target, now);
        json::write_atomically(kept, json::read_file(target));
        try {
            made.history = json::load(target).history;
        } catch (const error&) {
            // A broken file may be replaced too; it has no history to go on with.
        }
        in.remarks.note("the old baseline is kept as " + kept.string());
    }
    made.history.push_back({utc_text(now), what, user_name(in), in.how.reason, {}});
    json::save(target, made);
}

/// `bench` and `bench --baseline` on one device.
[[nodiscard]] inline exit_code measure_command(const context& in, const target_device& device) {
    const bool baseline = in.how.what == action::baseline;
    measure_plan plan;
    plan.target = baseline ? baseline_target(in, device) : run_target(in, device);
    if (in.how.append) {
        plan.existing = json::load(plan.target);
        plan.what = select(ids_of(*plan.existing), plan.existing->selected.suite, in.how.filter);
        plan.what.selected = plan.existing->selected;
    } else {
        plan.what = choose_benchmarks(in, "standard");
    }
    plan.budget_s = default_budget_s(plan.what.selected.suite);
    plan.sessions = in.how.sessions.value_or(baseline ? 5 : 3);
    check_outputs(in, plan.target);
    const file_lock lock(plan.target);
    measured_run run = measure_on(in, device, plan);
    if (run.signal) return say_interrupted(in, *run.signal, plan.target);
    if (baseline) {
        store_baseline(in, plan.target, run.made);
        if (!in.how.save.empty()) json::save(in.how.save, run.made);
    } else {
        json::save(plan.target, run.made);
        forget_old_runs(in, device);
    }
    remove_leftovers(plan.target);
    write_report(in, results_report(in, run.made));
    if (!in.how.google_output.empty()) {
        json::write_atomically(in.how.google_output, json::dump_google_benchmark(run.made, in.settings.name));
    }
    note_finished(in, device, plan.target, run.made);
    in.remarks.note((baseline ? "baseline: " : "kept as ") + plan.target.string());
    return code_of(run.made);
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
