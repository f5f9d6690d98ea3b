// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_GBENCH_SESSION_HPP
#define PLUMBLINE_GBENCH_SESSION_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/core/utc.hpp"
#include "plumbline/environment/collect.hpp"
#include "plumbline/environment/epoch.hpp"
#include "plumbline/gbench/record.hpp"
#include "plumbline/measure/engine.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/stats/descriptive.hpp"
#include "plumbline/workload/id.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace gbench {

/// What a program tells a session beside the backend. Everything has a default.
struct about {
    std::optional<environment::host> machine;       ///< as the readers see it; default: environment::this_machine
    result::device device;                          ///< model, uuid, properties; default: read from the machine
    std::function<void(result::fingerprint&)> read; ///< adds readings through the backend's own libraries
    scalar_map labels;                              ///< what the process cannot see: image digest, ticket
    measure::options how;                           ///< rules of sampling and time for each benchmark
};

/// The benchmarks of one backend in one process, registered with Google Benchmark and sampled by plumbline's engine.
///
///     cpu::backend backend;
///     gbench::session session(backend);
///     session.add<my_kernel>({.rows = 4096});
///     return gbench::main(argc, argv, session);
///
/// Google Benchmark calls each benchmark once with one iteration; inside it the engine takes as many samples as its
/// stop rule wants, and the benchmark reports their median as manual time and their number as iterations. The backend
/// must outlive the session, and the session the last run of a benchmark.
template <measure::backend B>
class session {
public:
    explicit session(B& on, about more = {})
        : on_(&on), about_(std::move(more)), engine_(on),
          machine_(about_.machine ? *about_.machine : environment::this_machine(std::string(on.name()))) {}
    session(const session&) = delete; // registered benchmarks refer to it
    session& operator=(const session&) = delete;

    /// Registers kernel K with one set of parameters. Returns Google Benchmark's handle, for ->Unit() and the like; its
    /// iterations and its manual time are the session's.
    template <class K>
        requires measure::kernel<K, B>
    auto* add(const typename K::params& params) { return add(measure::make_benchmark<K, B>(params)); }

    /// Registers a benchmark whose types are erased already.
    auto* add(measure::benchmark<B> what) {
        record_.own(what.what.id);
        const std::string id = what.what.id;
        return ::benchmark::RegisterBenchmark(
                   id.c_str(), [this, one = std::move(what)](::benchmark::State& state) { run(state, one); })
            ->UseManualTime()
            ->Iterations(1)
            ->Unit(::benchmark::kMicrosecond);
    }

    /// Registers a benchmark of a catalogue by its id (cpu::catalogue(), cuda::catalogue()); usage_error for an id
    /// whose family the catalogue does not have or that does not parse.
    auto* add(const std::vector<measure::family<B>>& catalogue, const std::string& id) {
        const std::string wanted = workload::family_of(id);
        std::string known;
        for (const measure::family<B>& each : catalogue) {
            if (each.name == wanted) return add(each.make(id));
            known += (known.empty() ? "" : ", ") + each.name;
        }
        throw usage_error("benchmark '" + id + "': the " + std::string(on_->name()) + " backend has no family '" +
                          wanted + "', it has " + known);
    }

    [[nodiscard]] record& measured() noexcept { return record_; }
    [[nodiscard]] const record& measured() const noexcept { return record_; }

    /// Called after each benchmark, when its results are in the record. Replaces the function set before.
    void after_each(std::function<void()> tell) { tell_ = std::move(tell); }

    /// What was measured so far as a baseline of one session, with the environment as it is now: libraries load their
    /// parts late, so this is read after their use.
    [[nodiscard]] result::baseline baseline() {
        engine_.settle(record_.results());
        result::baseline made;
        made.created = utc_text(started_);
        made.tool = {{"name", "plumbline gbench"}, {"version", PLUMBLINE_VERSION}, {"compiler", __VERSION__}};
        made.labels = about_.labels;
        made.environment = environment::collect(machine_);
        if (about_.read) about_.read(made.environment);
        made.environment.attributes["build.google_benchmark"] = {result::attribute_class::config, 3, "build",
                                                                 result::reading::of(library_version())};
        result::session one;
        one.started = made.created;
        one.seconds = std::chrono::duration<double>(measure::steady_now() - begin_).count();
        one.order = record_.order();
        one.when = environment::current_epoch(machine_);
        one.state = engine_.state();
        made.device = device(made.environment, one.when);
        made.sessions.push_back(std::move(one));
        made.results = record_.results();
        made.history.push_back({made.created, "created", "", "run under Google Benchmark", {}});
        return made;
    }

private:
    /// One call by Google Benchmark: measures, records, and reports.
    void run(::benchmark::State& state, const measure::benchmark<B>& what) {
        measure::options how = about_.how;
        how.session = 0;
        std::vector<result::result> measured = engine_.measure(what, how);
        for (result::result& each : measured) each.backend = std::string(on_->name());
        record_.add(measured);
        report(state, measured);
        if (tell_) tell_();
    }

    static void report(::benchmark::State& state, const std::vector<result::result>& measured) {
        for (const result::result& each : measured) {
            if (each.status == result::result_status::failed) return detail::stop_with_error(state, each.reason);
            if (each.status == result::result_status::skipped) return detail::skip(state, each.reason);
        }
        double median_ns = 0;
        std::size_t samples = 1;
        for (const result::result& each : measured) {
            if (each.sessions.empty() || each.sessions.front().samples.empty()) continue;
            const result::session_result& ran = each.sessions.front();
            const double median = stats::median(ran.samples);
            if (each.what.unit == "ns" && median_ns == 0) {
                median_ns = median;
                samples = ran.samples.size();
                describe(state, each, median);
            } else {
                state.counters[each.what.metric] = median;
            }
        }
        // One batch of `samples` iterations that took that many medians: "Time" shows the median.
        while (state.KeepRunningBatch(static_cast<::benchmark::IterationCount>(samples))) {
            state.SetIterationTime(median_ns * 1e-9 * static_cast<double>(samples));
        }
    }

    /// Counters beside the time: rates by formula, the share of undisturbed samples, and the implementation as label.
    static void describe(::benchmark::State& state, const result::result& timed, double median_ns) {
        const result::session_result& ran = timed.sessions.front();
        if (timed.what.flop > 0) state.counters["FLOPS"] = timed.what.flop / (median_ns * 1e-9);
        if (timed.what.bytes > 0) state.counters["bytes_per_second"] = timed.what.bytes / (median_ns * 1e-9);
        const auto clean = std::count(ran.clean.begin(), ran.clean.end(), true);
        state.counters["clean"] =
            ran.clean.empty() ? 1.0 : static_cast<double>(clean) / static_cast<double>(ran.clean.size());
        if (!ran.ran.implementation.empty()) state.SetLabel(ran.ran.implementation);
    }

    /// The device as the program says, completed by what the machine says.
    [[nodiscard]] result::device device(const result::fingerprint& environment, const result::epoch& when) const {
        result::device made = about_.device;
        made.backend = std::string(on_->name());
        if (made.uuid.empty()) made.uuid = when.board;
        for (const char* name : {"gpu.name", "cpu.model"}) {
            if (!made.model.empty() || (made.backend == "cpu") != (std::string(name) == "cpu.model")) continue;
            const result::attribute* model = environment.find(name);
            if (model != nullptr && model->read.known()) made.model = to_string(model->read.value);
        }
        return made;
    }

    B* on_;
    about about_;
    measure::engine<B> engine_;
    environment::host machine_;
    record record_;
    std::function<void()> tell_;
    std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
    std::chrono::nanoseconds begin_ = measure::steady_now();
};

} // namespace gbench

PLUMBLINE_NAMESPACE_END

#endif
