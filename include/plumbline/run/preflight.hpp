// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_PREFLIGHT_HPP
#define PLUMBLINE_RUN_PREFLIGHT_HPP

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/environment/checks.hpp"
#include "plumbline/environment/presence.hpp"
#include "plumbline/environment/python_probe.hpp"
#include "plumbline/json/python_probe.hpp"
#include "plumbline/json/suite.hpp"
#include "plumbline/run/child.hpp"
#include "plumbline/run/context.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// A session that was run to look at the machine rather than to time it.
struct probe {
    session_end session;
    scalar_map state;                ///< of the session: inspection readings among others
    std::optional<double> start_s{}; ///< what the session took beside its benchmarks and the inspection

    /// Whether the device was opened; a session that died later has still shown that.
    [[nodiscard]] bool started() const { return state.count(start_state::opened) != 0; }
    [[nodiscard]] const result::fingerprint& environment() const { return session.measured.environment; }

    /// A whole number among the readings.
    [[nodiscard]] std::optional<int> number(const char* name) const {
        const auto at = state.find(name);
        if (at == state.end() || !std::holds_alternative<std::int64_t>(at->second)) return std::nullopt;
        return static_cast<int>(std::get<std::int64_t>(at->second));
    }
    [[nodiscard]] std::string text(const char* name) const {
        const auto at = state.find(name);
        return at == state.end() ? std::string() : to_string(at->second);
    }
};

/// The benchmarks that checks look at: the suite "check" for this backend, none where there is no such suite.
[[nodiscard]] inline std::vector<std::string> check_ids(const context& in) {
    const auto at = in.settings.suites.find("check");
    if (at == in.settings.suites.end()) return {};
    const workload::suite suite = json::parse_suite(at->second, "built-in suite check");
    const auto ids = suite.ids.find(in.on.name);
    return ids == suite.ids.end() ? std::vector<std::string>{} : ids->second;
}

/// Seconds a benchmark of a check may take: enough to see whether it works, not to time it well.
inline constexpr double probe_budget_s = 0.3;

/// Runs a session over `ids` (none: it only opens the device and reads the environment) and adds what Python says of
/// the frameworks. `inspect` as in child_options. Never throws for a device that does not open: see require_started.
[[nodiscard]] inline probe run_probe(const context& in, const target_device& device,
                                     const std::vector<std::string>& ids, const std::string& inspect,
                                     const std::filesystem::path& beside) {
    result::baseline plan;
    plan.created = utc_text(std::time(nullptr));
    plan.tool = tool_identity();
    plan.device.backend = in.on.name;
    result::session session;
    session.started = plan.created;
    session.order = ids;
    plan.sessions.push_back(session);
    probe made;
    launcher how = launcher_for(in, device.number, probe_budget_s);
    how.inspect = inspect;
    const auto began = std::chrono::steady_clock::now();
    double beside_start = 0;
    made.session = run_session(how, plan, beside, in.signals, [&](const session_event& event) {
        if (event.begins) in.remarks.step("checking: " + event.id);
        beside_start += event.seconds;
    });
    const double whole = detail::seconds_since(began);
    in.remarks.clear();
    if (made.session.measured.sessions.empty()) return made;
    made.state = made.session.measured.sessions.front().state;
    if (const auto at = made.state.find(start_state::inspection_s); at != made.state.end()) {
        beside_start += std::get<double>(at->second);
    }
    if (!made.session.failed) made.start_s = whole - beside_start;
    json::add_python_probe(made.session.measured.environment, environment::run_python_probe(device.machine));
    return made;
}

/// Throws environment_error (exit code 6), with the diagnosis, when the probe's session could not open its device.
inline void require_started(const context& in, const target_device& device, const probe& tried) {
    if (tried.started() || tried.session.interrupted) return;
    const std::optional<int> start_error = tried.number(start_state::error);
    if (in.on.name == "cuda" && start_error.value_or(0) != 0) {
        const std::string name = tried.text(start_state::error_name);
        throw environment_error("cuda", environment::diagnose_cuda(device.machine, start_error, name).text());
    }
    throw error(tried.session.reason, tried.session.code.value_or(exit_code::precondition));
}

/// Runs the checks of a set on what a probe has seen.
[[nodiscard]] inline std::vector<environment::check_outcome>
check_machine(const context& in, const target_device& device, const probe& seen, environment::extent set) {
    environment::check_context look;
    look.machine = &device.machine;
    look.fingerprint = &seen.environment();
    look.measured = seen.session.measured.results.empty() ? nullptr : &seen.session.measured;
    look.cuda_expected = in.on.name == "cuda";
    look.cuda_error = seen.number(start_state::error);
    look.cuda_error_name = seen.text(start_state::error_name);
    look.cuda_devices = seen.number(start_state::devices);
    if (const auto generation = seen.number(inspection::link_generation)) {
        look.link_under_load = [&seen, generation] {
            return std::optional<environment::link_reading>({*generation,
                                                             seen.number(inspection::link_width).value_or(0),
                                                             seen.number(inspection::link_max_generation).value_or(0),
                                                             seen.number(inspection::link_max_width).value_or(0)});
        };
    }
    if (seen.state.count(inspection::all_reduce) != 0) {
        look.nccl_all_reduce = [&seen] { return seen.text(inspection::all_reduce); };
    } else if (seen.started() && seen.session.failed) {
        look.nccl_all_reduce = [&seen] { return seen.session.reason; }; // it hangs rather than fails
    }
    return environment::run_checks(look, set);
}

/// One outcome in one line: what is wrong, what was expected, what to do.
[[nodiscard]] inline std::string outcome_line(const environment::check_outcome& outcome) {
    std::string line = std::string(environment::to_string(outcome.status)) + "  " + outcome.name + ": " + outcome.seen;
    const bool bad =
        outcome.status == environment::check_status::fail || outcome.status == environment::check_status::warn;
    if (bad && !outcome.expected.empty()) line += "; expected " + outcome.expected;
    if (bad && !outcome.remedy.empty()) line += "; " + outcome.remedy;
    return line;
}

/// What a baseline keeps of the checks.
[[nodiscard]] inline scalar_map checks_for_file(const std::vector<environment::check_outcome>& outcomes, bool forced) {
    scalar_map kept;
    for (const environment::check_outcome& each : outcomes) {
        std::string text = environment::to_string(each.status);
        if (each.status == environment::check_status::fail && forced) text = "forced";
        if (each.status != environment::check_status::ok) text += ": " + each.seen;
        kept[each.name] = text;
    }
    return kept;
}

/// What a preflight leaves for the file of its run.
struct preflight_outcome {
    scalar_map checks;               ///< what the file keeps of the checks
    result::fingerprint frameworks;  ///< what Python said, which no session asks again
    std::optional<double> start_s{}; ///< see probe
};

/// The check before measuring: the quick set, over a session that runs `ids`. Warnings and failures are shown; a
/// failure ends the run by an error with its exit code (6 precondition, 4 fault) unless `--force` was given, which is
/// recorded.
[[nodiscard]] inline preflight_outcome preflight(const context& in, const target_device& device,
                                                 const std::vector<std::string>& ids,
                                                 const std::filesystem::path& beside) {
    const probe seen = run_probe(in, device, ids, "quick", beside);
    if (seen.session.interrupted) return {};
    require_started(in, device, seen);
    const std::vector<environment::check_outcome> outcomes =
        check_machine(in, device, seen, environment::extent::quick);
    const environment::check_outcome* failed = nullptr;
    for (const environment::check_outcome& each : outcomes) {
        if (each.status == environment::check_status::warn) in.remarks.note(outcome_line(each));
        if (each.status != environment::check_status::fail) continue;
        if (failed == nullptr) failed = &each;
        in.remarks.note(outcome_line(each));
    }
    if (failed != nullptr && !in.how.force) {
        throw error("preflight: " + failed->name + ": " + failed->seen + "; " + failed->remedy +
                        " (--force measures all the same and records it)",
                    environment::code_of(outcomes));
    }
    preflight_outcome made;
    made.checks = checks_for_file(outcomes, in.how.force);
    made.frameworks = seen.environment();
    made.start_s = seen.start_s;
    return made;
}

/// Puts a preflight's outcome into what was measured after it. Attributes that sessions read themselves stay.
inline void keep_preflight(result::baseline& into, const preflight_outcome& from) {
    for (const auto& [name, outcome] : from.checks) into.checks[name] = outcome;
    for (const auto& [name, entry] : from.frameworks.attributes) into.environment.attributes.emplace(name, entry);
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
