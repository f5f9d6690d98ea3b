// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_CHILD_HPP
#define PLUMBLINE_RUN_CHILD_HPP

#include <chrono>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/core/utf8.hpp"
#include "plumbline/environment/collect.hpp"
#include "plumbline/environment/epoch.hpp"
#include "plumbline/json/store.hpp"
#include "plumbline/measure/regret.hpp"
#include "plumbline/run/driver.hpp"
#include "plumbline/run/options.hpp"
#include "plumbline/run/paths.hpp"
#include "plumbline/run/process.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// The program that makes files, for baseline::tool.
[[nodiscard]] inline scalar_map tool_identity() {
    return {{"name", std::string("plumbline")},
            {"version", std::string(PLUMBLINE_VERSION)},
            {"compiler", std::string(__VERSION__)}};
}

/// Names of readings in session::state that the child leaves for the checks of its parent.
namespace start_state {
inline constexpr const char* error = "start_error";
inline constexpr const char* error_name = "start_error_name";
inline constexpr const char* devices = "start_devices";
inline constexpr const char* opened = "device_opened";            ///< true once the device is open
inline constexpr const char* inspection_s = "inspection_seconds"; ///< what backend_entry::inspect took
} // namespace start_state

/// Where the engine leaves the hash of a kernel's output in a session's result.
inline constexpr const char* output_hash_state = "output_hash";

namespace detail {

[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Outputs that the first session verified, by id: with the same implementation and the same hash a later session
/// need not verify again.
[[nodiscard]] inline std::map<std::string, measure::known_output> known_outputs(const result::baseline& plan) {
    std::map<std::string, measure::known_output> known;
    for (const result::result& each : plan.results) {
        if (!each.verified || each.status != result::result_status::ok || each.sessions.empty()) continue;
        const result::session_result& first = each.sessions.front();
        const auto hash = first.state.find(output_hash_state);
        if (hash == first.state.end()) continue;
        known[each.what.id] = {first.ran.implementation, to_string(hash->second)};
    }
    return known;
}

/// The plans that "pinned" benchmarks of this session replay, by the id of the benchmark that recorded them.
[[nodiscard]] inline std::map<std::string, result::evidence> recorded_plans(const result::baseline& plan) {
    std::map<std::string, result::evidence> known;
    for (const result::result& each : plan.results) {
        if (workload::split_modes(each.what.id).mode.plan != workload::plan_choice::pinned) continue;
        if (each.sessions.empty()) continue;
        const std::string id = workload::with_plan(each.what.id, workload::plan_choice::heuristic);
        known.emplace(id, each.sessions.front().ran);
    }
    return known;
}

/// Launches per sample of earlier sessions, by id.
[[nodiscard]] inline std::map<std::string, std::size_t> known_launches(const result::baseline& plan) {
    std::map<std::string, std::size_t> known;
    for (const result::result& each : plan.results) {
        if (each.sessions.empty()) continue;
        const auto& state = each.sessions.front().state;
        const auto at = state.find("launches_per_sample");
        const auto* count = at == state.end() ? nullptr : std::get_if<std::int64_t>(&at->second);
        if (count != nullptr && *count > 0) known[each.what.id] = static_cast<std::size_t>(*count);
    }
    return known;
}

/// States of this run's first session, by id; not those of a baseline that is compared with.
[[nodiscard]] inline std::map<std::string, scalar_map> earlier_states(const result::baseline& plan) {
    std::map<std::string, scalar_map> states;
    for (const result::result& each : plan.results) {
        if (each.verified && !each.sessions.empty()) states.emplace(each.what.id, each.sessions.front().state);
    }
    return states;
}

} // namespace detail

/// One session: opens the device, measures what the plan says in the order it says, and keeps the one-session
/// baseline on disk up to date after each benchmark, so that whatever ends this process loses one benchmark at most.
class session_child {
public:
    session_child(const driver& on, const options& how, environment::host machine)
        : driver_(on), how_(how), machine_(std::move(machine)), plan_(json::load(how.child.plan)) {}

    /// Runs it. Lines to the parent: "begin ID", "done STATUS SECONDS ID", "note TEXT". Throws what opening the device
    /// throws.
    void run() {
        prepare();
        make_data();
        opened_backend device = driver_.open(how_.device.value_or(0), how_.data);
        device.describe(made_.device);
        session().state[start_state::opened] = true;
        measure::hooks hooks = device.hooks(machine_);
        for (const auto& [id, plan] : detail::recorded_plans(plan_)) device.pin(id, plan);
        const auto known = detail::known_outputs(plan_);
        const auto launches = detail::known_launches(plan_);
        const auto states = detail::earlier_states(plan_);
        const std::vector<std::string> order = plan_.sessions.at(0).order;
        for (const std::string& id : order) {
            if (!made_.results.empty() && how_.child.finish_s && detail::seconds_since(begin_) > *how_.child.finish_s) {
                session().reason = "the time budget was spent before all benchmarks had begun";
                break;
            }
            measure::options asked;
            asked.time.total = std::chrono::nanoseconds(static_cast<std::int64_t>(how_.child.budget_s * 1e9));
            asked.host_model = host_model_;
            asked.call = hooks;
            const auto at = known.find(id);
            if (at != known.end()) asked.known = at->second;
            if (const auto seen = states.find(id); seen != states.end()) asked.time.earlier = seen->second;
            if (const auto count = launches.find(id); count != launches.end()) asked.launches = count->second;
            measure_one(device, id, asked);
            // Libraries load their parts late, so the fingerprint is read after their first use.
            if (id == order.front()) read_environment(&device);
        }
        device.settle(made_.results);
        std::vector<result::result> costs = measure::regrets(made_.results);
        std::move(costs.begin(), costs.end(), std::back_inserter(made_.results));
        for (const auto& [name, value] : device.state()) session().state[name] = value;
        read_environment(&device);
        save();
        inspect(device);
    }

private:
    [[nodiscard]] result::session& session() { return made_.sessions.front(); }

    /// All that can be said before the device is opened: saved, so that a device that does not open leaves it.
    void prepare() {
        made_.created = utc_text(std::time(nullptr));
        made_.tool = tool_identity();
        made_.device = driver_.identify(machine_, how_.device.value_or(0));
        made_.device.backend = driver_.name;
        const result::session& planned = plan_.sessions.at(0);
        result::session mine;
        mine.started = utc_now();
        mine.seed = planned.seed;
        mine.control = planned.control;
        mine.when = environment::current_epoch(machine_);
        const start_report start = driver_.start(how_.device.value_or(0));
        if (start.error) mine.state[start_state::error] = std::int64_t{*start.error};
        if (!start.error_name.empty()) mine.state[start_state::error_name] = start.error_name;
        if (start.devices) mine.state[start_state::devices] = std::int64_t{*start.devices};
        made_.sessions.push_back(std::move(mine));
        read_environment(nullptr);
        save();
    }

    /// Data that benchmarks read, before the device is opened. What cannot be made is the failure of the benchmarks
    /// that need it, and said there.
    void make_data() const {
        const int fd = how_.child.progress_fd;
        const measure::listener parent{[fd](const std::string& text) { tell_parent(fd, "begin " + text); },
                                       [fd](const std::string& text) { tell_parent(fd, "note " + text); }};
        (void)driver_.prepare(how_.data, plan_.sessions.at(0).order, parent);
    }

    /// Reads the environment anew. State stays what it was before the device was opened: what this session itself
    /// does to clocks, memory and temperature is not the machine's state.
    void read_environment(opened_backend* device) {
        result::fingerprint now = environment::collect(machine_);
        if (device != nullptr) device->read(machine_, now);
        for (const auto& [name, entry] : made_.environment.attributes) {
            if (entry.kind == result::attribute_class::state && entry.read.known()) now.attributes[name] = entry;
        }
        made_.environment = std::move(now);
        const result::attribute* model = made_.environment.find("cpu.model");
        if (model != nullptr && model->read.known()) host_model_ = to_string(model->read.value);
    }

    /// Readings for checks, last because they may hang.
    void inspect(opened_backend& device) {
        if (how_.child.inspect.empty()) return;
        tell_parent(how_.child.progress_fd, "begin inspection of the device");
        const auto began = std::chrono::steady_clock::now();
        for (const auto& [name, value] : device.inspect(machine_, how_.child.inspect == "full")) {
            session().state[name] = value;
        }
        session().state[start_state::inspection_s] = detail::seconds_since(began);
        save();
    }

    void measure_one(opened_backend& device, const std::string& id, const measure::options& asked) {
        tell_parent(how_.child.progress_fd, "begin " + id);
        session().order.push_back(id);
        const auto began = std::chrono::steady_clock::now();
        std::vector<result::result> results = ask(device, id, asked);
        const double seconds = detail::seconds_since(began);
        std::string status = "skipped";
        for (result::result& each : results) {
            each.backend = driver_.name;
            each.reason = valid_utf8(each.reason); // it may name a file
            if (each.status == result::result_status::failed) status = "failed";
            if (each.status == result::result_status::ok && status != "failed") status = "ok";
            for (result::session_result& one : each.sessions) one.session = 0;
        }
        keep(std::move(results), id);
        tell_parent(how_.child.progress_fd, "done " + status + " " + std::to_string(seconds) + " " + id);
    }

    /// Adds results and saves. What the file cannot hold (a number that is not finite, text that is not UTF-8) is that
    /// benchmark's failure and not the session's.
    void keep(std::vector<result::result> results, const std::string& id) {
        const std::size_t before = made_.results.size();
        std::move(results.begin(), results.end(), std::back_inserter(made_.results));
        try {
            save();
        } catch (const file_error&) {
            throw;
        } catch (const error& e) {
            made_.results.resize(before);
            made_.results.push_back(refused(id, result::result_status::failed, e.what()));
            made_.results.back().backend = driver_.name;
            save();
        }
    }

    [[nodiscard]] static result::result refused(const std::string& id, result::result_status how,
                                                const std::string& why) {
        result::result made;
        made.what.id = id;
        made.what.family = workload::family_of(id);
        made.status = how;
        made.reason = why;
        return made;
    }

    /// What the backend measures, or one skipped result when it does not know the benchmark.
    [[nodiscard]] std::vector<result::result> ask(opened_backend& device, const std::string& id,
                                                  const measure::options& asked) const {
        try {
            return device.measure(id, asked, how_.child.planted);
        } catch (const unsupported_error& e) {
            return {refused(id, result::result_status::skipped, e.what())};
        } catch (const error& e) {
            return {refused(id, result::result_status::failed, e.what())};
        }
    }

    void save() {
        session().seconds = detail::seconds_since(begin_);
        json::save(how_.child.result, made_);
    }

    const driver& driver_;
    const options& how_;
    environment::host machine_;
    result::baseline plan_;
    result::baseline made_;
    std::string host_model_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The whole life of a session process; the program returns its value. What goes wrong is told to the parent as
/// "error CODE MESSAGE".
[[nodiscard]] inline exit_code run_child(const driver& on, const options& how, environment::host machine) noexcept {
    std::string problem;
    exit_code code = exit_code::incomplete;
    try {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL); // also where a script stands between the parent and this process
        session_child(on, how, std::move(machine)).run();
        return exit_code::ok;
    } catch (const error& e) {
        problem = e.what();
        code = e.code();
    } catch (const std::exception& e) {
        problem = e.what();
    }
    for (char& c : problem) {
        if (c == '\n') c = ' ';
    }
    tell_parent(how.child.progress_fd, "error " + std::to_string(static_cast<int>(code)) + " " + problem);
    return code;
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
