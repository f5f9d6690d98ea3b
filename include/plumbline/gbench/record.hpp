// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_GBENCH_RECORD_HPP
#define PLUMBLINE_GBENCH_RECORD_HPP

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/gbench/version.hpp"
#include "plumbline/result/result.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace gbench {

/// What one process measured under Google Benchmark: one result for each (id, metric), with one session.
///
/// Benchmarks of plumbline's kernels come with all their samples. The program's other benchmarks are kept as Google
/// Benchmark reports them, one sample for each repetition, under the id "gbench/NAME": Google Benchmark keeps
/// only the mean of a repetition.
class record {
public:
    /// Adds what the engine measured. A benchmark that ran before (--benchmark_repetitions) gets more samples.
    void add(std::vector<result::result> measured) {
        for (result::result& each : measured) add(std::move(each));
    }
    void add(result::result measured) {
        note_order(measured.what.id);
        result::result* known = find(measured.what.id, measured.what.metric);
        if (known == nullptr) {
            results_.push_back(std::move(measured));
        } else if (measured.status != result::result_status::ok) {
            known->status = measured.status;
            known->reason = measured.reason;
        } else if (known->status == result::result_status::ok) {
            append(known->sessions.front(), measured.sessions.front());
        }
    }

    /// Adds one repetition of a benchmark that is not plumbline's: "time" is the time Google Benchmark was told to
    /// measure (real, manual), "cpu_time" the CPU time. Aggregates are left out.
    void add_foreign(const ::benchmark::BenchmarkReporter::Run& run) {
        if (run.run_type != ::benchmark::BenchmarkReporter::Run::RT_Iteration) return;
        const double iterations = static_cast<double>(std::max<decltype(run.iterations)>(run.iterations, 1));
        add_foreign_metric(run, "time", run.real_accumulated_time / iterations);
        add_foreign_metric(run, "cpu_time", run.cpu_accumulated_time / iterations);
    }

    /// Registers an id of ours, so that the reporter can tell it from the program's other benchmarks.
    void own(const std::string& id) { own_.push_back(id); }
    [[nodiscard]] bool is_own(const std::string& id) const {
        return std::find(own_.begin(), own_.end(), id) != own_.end();
    }

    [[nodiscard]] const std::vector<result::result>& results() const noexcept { return results_; }
    [[nodiscard]] std::vector<result::result>& results() noexcept { return results_; }

    /// Ids in the order in which they first ran.
    [[nodiscard]] const std::vector<std::string>& order() const noexcept { return order_; }

    /// Whether any benchmark failed; a skipped one did not.
    [[nodiscard]] bool failed() const {
        return std::any_of(results_.begin(), results_.end(),
                           [](const auto& each) { return each.status == result::result_status::failed; });
    }

private:
    [[nodiscard]] result::result* find(const std::string& id, const std::string& metric) {
        const auto at = std::find_if(results_.begin(), results_.end(), [&](const result::result& each) {
            return each.what.id == id && each.what.metric == metric;
        });
        return at == results_.end() ? nullptr : &*at;
    }

    void note_order(const std::string& id) {
        if (std::find(order_.begin(), order_.end(), id) == order_.end()) order_.push_back(id);
    }

    /// Appends the samples of a repetition. `clean` and `cycles` are one for each sample or empty, on both sides.
    static void append(result::session_result& to, const result::session_result& from) {
        if (!to.clean.empty() || !from.clean.empty()) {
            to.clean.resize(to.samples.size(), true);
            const std::vector<bool> all(from.samples.size(), true);
            const std::vector<bool>& more = from.clean.empty() ? all : from.clean;
            to.clean.insert(to.clean.end(), more.begin(), more.end());
        }
        if (to.cycles.size() == to.samples.size() && from.cycles.size() == from.samples.size()) {
            to.cycles.insert(to.cycles.end(), from.cycles.begin(), from.cycles.end());
        } else {
            to.cycles.clear();
        }
        to.samples.insert(to.samples.end(), from.samples.begin(), from.samples.end());
        for (const std::string& flag : from.flags) {
            if (std::find(to.flags.begin(), to.flags.end(), flag) == to.flags.end()) to.flags.push_back(flag);
        }
    }

    void add_foreign_metric(const ::benchmark::BenchmarkReporter::Run& run, const char* metric, double seconds) {
        result::result made;
        made.what.id = "gbench/" + run.run_name.function_name;
        if (!run.run_name.args.empty()) made.what.id += "/" + run.run_name.args;
        made.what.family = "gbench";
        made.what.params = {{"name", run.run_name.str()}};
        made.what.kind = benchmark_class::imported;
        made.what.metric = metric;
        made.backend = "cpu"; // what the benchmark does is not known; its clock is the host's
        const detail::run_end end = detail::end_of(run);
        if (end != detail::run_end::normal) {
            made.status =
                end == detail::run_end::error ? result::result_status::failed : result::result_status::skipped;
            made.reason = detail::message_of(run);
        }
        result::session_result session;
        if (end == detail::run_end::normal) session.samples.push_back(seconds * 1e9);
        made.sessions.push_back(std::move(session));
        add(std::move(made));
    }

    std::vector<result::result> results_;
    std::vector<std::string> order_;
    std::vector<std::string> own_;
};

} // namespace gbench

PLUMBLINE_NAMESPACE_END

#endif
