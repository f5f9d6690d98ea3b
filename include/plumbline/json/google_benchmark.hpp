// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_GOOGLE_BENCHMARK_HPP
#define PLUMBLINE_JSON_GOOGLE_BENCHMARK_HPP

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/core/unit.hpp"
#include "plumbline/json/print.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

namespace detail {

/// The members that all of Google's entries of a benchmark share.
[[nodiscard]] inline writable google_entry(const std::string& name, const std::string& run_name, std::size_t family,
                                           std::size_t repetitions) {
    return {{"name", name},         {"family_index", family},  {"per_family_instance_index", 0},
            {"run_name", run_name}, {"run_type", "iteration"}, {"repetitions", repetitions}};
}

/// Nanoseconds in one of the unit; empty for what is no time.
[[nodiscard]] inline std::optional<double> nanoseconds_in(const std::string& name) {
    const auto found = find_unit(name);
    if (!found || found->dimension != "s") return std::nullopt;
    return found->factor * 1e9;
}

/// The rates that Google calls counters: what one launch does, by its time.
inline void add_google_counters(writable& entry, const workload::description& what, double seconds) {
    if (what.flop > 0) entry["flop_per_second"] = what.flop / seconds;
    if (what.bytes > 0) entry["bytes_per_second"] = what.bytes / seconds;
}

/// One entry for each session, a repetition in Google's words, then mean, median, stddev and cv over them.
inline void add_google_times(writable& list, const result::result& from, const std::string& name, std::size_t family,
                             double factor) {
    std::vector<double> values;
    for (const result::session_result& one : from.sessions) {
        if (one.samples.empty()) continue;
        values.push_back(stats::median(one.samples) * factor);
        writable entry = google_entry(name, name, family, from.sessions.size());
        entry["repetition_index"] = values.size() - 1;
        entry["threads"] = 1;
        entry["iterations"] = one.samples.size();
        entry["real_time"] = values.back();
        entry["cpu_time"] = values.back();
        entry["time_unit"] = "ns";
        add_google_counters(entry, from.what, values.back() * 1e-9);
        list.push_back(std::move(entry));
    }
    if (values.size() < 2) return;
    const double mean = stats::mean(values);
    const double spread = stats::standard_deviation(values);
    const std::pair<const char*, double> aggregates[]{
        {"mean", mean}, {"median", stats::median(values)}, {"stddev", spread}, {"cv", spread / mean}};
    for (const auto& [kind, value] : aggregates) {
        writable entry = google_entry(name + "_" + kind, name, family, from.sessions.size());
        entry["run_type"] = "aggregate";
        entry["threads"] = 1;
        entry["aggregate_name"] = kind;
        entry["aggregate_unit"] = std::string(kind) == "cv" ? "percentage" : "time";
        entry["iterations"] = values.size();
        entry["real_time"] = value;
        entry["cpu_time"] = value;
        entry["time_unit"] = "ns";
        list.push_back(std::move(entry));
    }
}

[[nodiscard]] inline std::string text_of(const result::fingerprint& environment, const std::string& name) {
    const result::attribute* found = environment.find(name);
    return found != nullptr && found->read.known() ? to_string(found->read.value) : std::string();
}

} // namespace detail

/// The results in the JSON format of Google Benchmark 1.8, for tools that read it (compare.py, dashboards). Sessions
/// become repetitions; cpu_time repeats real_time, because what is timed is the device. Results that failed or were
/// skipped have error_occurred; metrics that are no time have no place in the format beside an error entry that says
/// so.
[[nodiscard]] inline std::string dump_google_benchmark(const result::baseline& from, const std::string& executable) {
    writable list = writable::array();
    for (std::size_t i = 0; i < from.results.size(); ++i) {
        const result::result& each = from.results[i];
        const bool time = each.what.metric == "time";
        const std::string name = time ? each.what.id : each.what.id + ":" + each.what.metric;
        const auto factor = detail::nanoseconds_in(each.what.unit);
        if (each.status == result::result_status::ok && factor && !each.sessions.empty()) {
            detail::add_google_times(list, each, name, i, *factor);
            continue;
        }
        writable entry = detail::google_entry(name, name, i, 1);
        const bool ok = each.status == result::result_status::ok;
        entry["error_occurred"] = true;
        entry["error_message"] = ok ? "is in " + each.what.unit + ", not a time" : each.reason;
        list.push_back(std::move(entry));
    }
    const writable document = {{"context",
                                {{"date", from.created},
                                 {"executable", executable},
                                 {"library_version", std::string("plumbline ") + PLUMBLINE_VERSION},
                                 {"library_build_type", "release"},
                                 {"device", from.device.model},
                                 {"backend", from.device.backend},
                                 {"cpu", detail::text_of(from.environment, "cpu.model")},
                                 {"comparability_hash", from.environment.comparability_hash()},
                                 {"provenance_hash", from.environment.provenance_hash()}}},
                               {"benchmarks", std::move(list)}};
    std::string text;
    print(text, document);
    return text + "\n";
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
