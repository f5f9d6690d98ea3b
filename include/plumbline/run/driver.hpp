// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_DRIVER_HPP
#define PLUMBLINE_RUN_DRIVER_HPP

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/environment/host.hpp"
#include "plumbline/measure/engine.hpp"
#include "plumbline/measure/self_test.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/workload/id.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// What a backend's runtime answers to the question whether it can start, asked in a child process.
struct start_report {
    std::optional<int> error;   ///< its error code; 0 is success; empty where there is no such question
    std::string error_name;     ///< "cudaErrorInsufficientDriver"
    std::optional<int> devices; ///< devices it sees
};

/// Names of what backend_entry::inspect reads: the PCIe link under load, and what went wrong in an all-reduce over
/// all devices ("" when nothing did).
namespace inspection {
inline constexpr const char* link_generation = "link_generation";
inline constexpr const char* link_width = "link_width";
inline constexpr const char* link_max_generation = "link_max_generation";
inline constexpr const char* link_max_width = "link_max_width";
inline constexpr const char* all_reduce = "all_reduce";
} // namespace inspection

/// A backend as a program puts it in: everything run/ needs to know of B. Functions with "may be empty" in their
/// comment have a default. Only `open`, `start`, `describe` and what takes a B& may touch the device: they are
/// called in session children alone. The others are called in the parent, which never opens a device.
template <measure::backend B>
struct backend_entry {
    std::string name; ///< "cuda", "cpu", ...; what --backend= takes and every result carries

    /// What this backend can make benchmarks of. `data` is what --data names, or empty; throws file_error when it
    /// cannot be used. Called in the parent too.
    std::function<std::vector<measure::family<B>>(const std::filesystem::path& data)> families;

    /// Answers when this program started itself for one step of a measurement (a cold start): the exit code, or nothing
    /// for an ordinary start. Called before anything else of the program. May be empty.
    std::function<std::optional<int>(int argc, char** argv)> serve;

    /// Opens device number `device` of this backend; throws environment_error with the diagnosis if it cannot start.
    std::function<std::unique_ptr<B>(int device)> open;

    /// Asks the runtime without opening a device. May be empty.
    std::function<start_report(int device)> start;

    /// The device for file names and epochs: backend, model, hashed UUID. `machine` is that of machine().
    std::function<result::device(const environment::host& machine, int device)> identify;

    /// Numbers of all devices, for --device=all. May be empty: device 0 alone.
    std::function<std::vector<int>(const environment::host& machine)> devices;

    /// The machine as this backend's readers see it, its device chosen. May be empty: environment::this_machine.
    std::function<environment::host(int device)> machine;

    /// Properties and datasheet limits of an opened device. May be empty.
    std::function<void(B&, result::device&)> describe;

    /// Adds readings through the backend's own libraries, after they were used. May be empty.
    std::function<void(B&, const environment::host& machine, result::fingerprint&)> read;

    /// Readings for checks that need work on the device (names of namespace inspection); `full` asks for the slow ones
    /// too. It may hang: it runs last in a child under the watchdog. May be empty.
    std::function<scalar_map(B&, const environment::host& machine, bool full)> inspect;

    /// Whether `predict` can say anything about a benchmark of this family and kind. May be empty: about none.
    std::function<bool(const workload::description&)> predicts;

    /// What this process's libraries would run for a benchmark on a device that a baseline describes, without that
    /// device: called in the parent. unsupported_error when they would not run it, environment_error when the device
    /// is not described. May be empty.
    std::function<result::evidence(const result::device& described, const std::string& id)> predict;

    /// What the engine calls between benchmarks (telemetry, foreign load). May be empty.
    std::function<measure::hooks(B&, const environment::host& machine)> hooks;
};

/// An opened backend with its types erased: what a session child works with.
struct opened_backend {
    /// Measures a benchmark; `planted` is the share of each sample added as a spin, if one is. Never throws for a
    /// benchmark that fails; usage_error for an id this backend cannot make.
    std::function<std::vector<result::result>(const std::string& id, const measure::options&,
                                              const std::optional<double>& planted)>
        measure;
    std::function<void(std::vector<result::result>&)> settle;
    std::function<scalar_map()> state;
    std::function<void(result::device&)> describe;
    std::function<void(const environment::host&, result::fingerprint&)> read;
    std::function<scalar_map(const environment::host&, bool full)> inspect;
    std::function<measure::hooks(const environment::host&)> hooks;

    /// Hands over the plan recorded for a benchmark (its id without "pinned"); does nothing where none can be replayed.
    std::function<void(const std::string& id, const result::evidence& plan)> pin;
};

/// The description of a benchmark by its id.
using finder = std::function<workload::description(const std::string& id)>;

/// A backend with its types erased.
struct driver {
    std::string name;

    /// A function that gives the description of an id when the user's data are `data` (may be empty; file_error when
    /// they cannot be used). It throws usage_error when the id's family is known here and it does not parse, and
    /// unsupported_error when this backend has no such family.
    std::function<finder(const std::filesystem::path& data)> find;
    std::function<opened_backend(int device, const std::filesystem::path& data)> open;

    /// Whether the library offers several plans for a benchmark (measure::benchmark::plans).
    std::function<bool(const std::string& id)> has_plans;

    /// Makes what benchmarks need on disk (measure::family::prepare) and returns what could not be made.
    std::function<std::vector<std::string>(const std::filesystem::path& data, const std::vector<std::string>& ids,
                                           const measure::listener& to)>
        prepare;
    std::function<start_report(int device)> start;
    std::function<result::device(const environment::host&, int device)> identify;
    std::function<std::vector<int>(const environment::host&)> devices;
    std::function<environment::host(int device)> machine;       ///< empty: environment::this_machine
    std::function<bool(const workload::description&)> predicts; ///< empty with predict
    std::function<result::evidence(const result::device& described, const std::string&)> predict; ///< may be empty
};

namespace detail {

template <measure::backend B>
[[nodiscard]] measure::benchmark<B> make_by_id(const std::vector<measure::family<B>>& families,
                                               const std::string& backend, const std::string& id) {
    const std::string wanted = workload::family_of(id);
    std::string known;
    for (const measure::family<B>& each : families) {
        if (each.name == wanted) return each.make(id);
        known += (known.empty() ? "" : ", ") + each.name;
    }
    throw unsupported_error("the " + backend + " backend has no family '" + wanted + "' (it has " + known + ")");
}

/// Owns an opened device with the engine that runs on it.
template <measure::backend B>
struct open_device {
    std::unique_ptr<B> on;
    measure::engine<B> engine;
    std::vector<measure::family<B>> families;

    open_device(std::unique_ptr<B> opened, std::vector<measure::family<B>> made)
        : on(std::move(opened)), engine(*on), families(std::move(made)) {}
};

template <measure::backend B>
[[nodiscard]] std::vector<result::result> measure_by_id(open_device<B>& device, const std::string& backend,
                                                        const std::string& id, const measure::options& how,
                                                        const std::optional<double>& planted) {
    measure::benchmark<B> made = make_by_id(device.families, backend, id);
    if (planted) {
        if constexpr (measure::spinner<B>) {
            if (made.prepare) {
                made = measure::plant_slowdown(std::move(made), *planted);
            } else if (*planted > 0) {
                throw unsupported_error(id + " is a procedure: a slowdown can be planted into kernels only");
            }
        } else {
            throw unsupported_error("the " + backend + " backend cannot plant slowdowns");
        }
    }
    return device.engine.measure(made, how);
}

template <measure::backend B>
[[nodiscard]] std::vector<std::string> prepare_all(const std::vector<measure::family<B>>& families,
                                                   const std::vector<std::string>& ids, const measure::listener& to) {
    std::vector<std::string> problems;
    for (const measure::family<B>& each : families) {
        std::vector<std::string> own;
        std::copy_if(ids.begin(), ids.end(), std::back_inserter(own),
                     [&](const std::string& id) { return workload::family_of(id) == each.name; });
        if (!each.prepare || own.empty()) continue;
        try {
            each.prepare(own, to);
        } catch (const error& e) {
            problems.emplace_back(e.what());
        }
    }
    return problems;
}

template <measure::backend B>
[[nodiscard]] opened_backend open_erased(const backend_entry<B>& entry, int number, const std::filesystem::path& data) {
    auto device = std::make_shared<open_device<B>>(entry.open(number), entry.families(data));
    opened_backend made;
    made.measure = [device, name = entry.name](const std::string& id, const measure::options& how,
                                               const std::optional<double>& planted) {
        return measure_by_id(*device, name, id, how, planted);
    };
    made.settle = [device](std::vector<result::result>& results) { device->engine.settle(results); };
    made.state = [device] { return device->engine.state(); };
    made.describe = [device, describe = entry.describe](result::device& into) {
        if (describe) describe(*device->on, into);
    };
    made.read = [device, read = entry.read](const environment::host& machine, result::fingerprint& into) {
        if (read) read(*device->on, machine, into);
    };
    made.inspect = [device, inspect = entry.inspect](const environment::host& machine, bool full) {
        return inspect ? inspect(*device->on, machine, full) : scalar_map{};
    };
    made.pin = [device](const std::string& id, const result::evidence& plan) {
        if constexpr (requires(B & b) { b.pin(id, plan); }) device->on->pin(id, plan);
        static_cast<void>(device); // where B replays nothing
        static_cast<void>(id);
        static_cast<void>(plan);
    };
    made.hooks = [device, hooks = entry.hooks](const environment::host& machine) {
        return hooks ? hooks(*device->on, machine) : measure::hooks{};
    };
    return made;
}

} // namespace detail

/// Erases the type of a backend: the one place where run/ meets B.
template <measure::backend B>
[[nodiscard]] driver erase(backend_entry<B> entry) {
    driver made;
    made.name = entry.name;
    made.identify = entry.identify;
    made.machine = entry.machine;
    made.predicts = entry.predicts;
    made.predict = entry.predict;
    made.devices = entry.devices ? entry.devices : [](const environment::host&) { return std::vector<int>{0}; };
    made.start = entry.start ? entry.start : [](int) { return start_report{}; };
    made.find = [families = entry.families, name = entry.name](const std::filesystem::path& data) -> finder {
        return [all = families(data), name](const std::string& id) { return detail::make_by_id(all, name, id).what; };
    };
    made.has_plans = [families = entry.families, name = entry.name](const std::string& id) {
        try {
            return detail::make_by_id(families({}), name, id).plans;
        } catch (const error&) {
            return false; // another backend's family, or data that are not at hand
        }
    };
    made.prepare = [families = entry.families](const std::filesystem::path& data, const std::vector<std::string>& ids,
                                               const measure::listener& to) {
        return detail::prepare_all(families(data), ids, to);
    };
    made.open = [entry = std::move(entry)](int device, const std::filesystem::path& data) {
        return detail::open_erased(entry, device, data);
    };
    return made;
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
