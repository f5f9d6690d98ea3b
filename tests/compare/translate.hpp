// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_COMPARE_TRANSLATE_HPP
#define PLUMBLINE_TESTS_COMPARE_TRANSLATE_HPP

// From the compact form of tests/data/comparator_cases.json to baselines and a policy.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "plumbline/compare/policy.hpp"
#include "plumbline/result/baseline.hpp"

namespace translate {

using nlohmann::json;
namespace result = plumbline::result;
namespace compare = plumbline::compare;

inline plumbline::scalar scalar_of(const json& value) {
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (value.is_number()) return value.get<double>();
    return value.get<std::string>();
}

/// Attributes by what they mean: the GPU and the schema identify, the driver configures, measured clocks are state.
inline void set_environment(result::baseline& into, const json& env) {
    for (const auto& [name, value] : env.items()) {
        if (name == "state") continue;
        result::attribute entry;
        if (name == "gpu" || name == "workload_schema") entry.kind = result::attribute_class::identity;
        if (name == "cpu_mhz_measured") entry.kind = result::attribute_class::state;
        entry.read = result::reading::of(scalar_of(value));
        into.environment.attributes[name] = entry;
    }
}

/// Index of the session number `k` of a file, made when it is new. All sessions of the cases are of one epoch.
inline std::size_t session(result::baseline& into, std::size_t k) {
    while (into.sessions.size() <= k) into.sessions.emplace_back();
    return k;
}

inline result::result result_of(result::baseline& into, const json& benchmark, bool foreign_load) {
    result::result r;
    r.what.id = benchmark["id"];
    r.what.family = "case";
    r.what.kind = plumbline::benchmark_class::imported;
    r.what.params["hash"] = benchmark.value("workload_hash", "");
    r.what.unit = benchmark["unit"];
    r.what.better = benchmark["direction"] == "lower" ? plumbline::direction::lower : plumbline::direction::higher;
    r.backend = "cuda";
    const std::string status = benchmark.value("status", "ok");
    if (status == "error") r.status = result::result_status::failed;
    if (status == "skipped") r.status = result::result_status::skipped;
    r.reason = benchmark.value("error", "");
    std::size_t k = 0;
    for (const auto& values : benchmark["sessions"]) {
        result::session_result s;
        s.session = session(into, k++);
        for (const auto& v : values) {
            s.samples.push_back(v.is_null() ? std::numeric_limits<double>::quiet_NaN() : v.get<double>());
        }
        if (foreign_load) s.flags.push_back(result::flag::foreign_load);
        if (!s.samples.empty()) r.sessions.push_back(std::move(s));
    }
    return r;
}

inline result::baseline baseline_of(const json& file) {
    result::baseline b;
    b.created = "2026-11-30T00:00:00Z";
    b.device.backend = "cuda";
    const json env = file.value("env", json::object());
    set_environment(b, env);
    const bool foreign = env.contains("state") && env["state"].value("other_gpu_processes", 0) > 0;
    for (const auto& benchmark : file.value("benchmarks", json::array())) {
        b.results.push_back(result_of(b, benchmark, foreign));
    }
    return b;
}

/// `generate` stands for many equal benchmarks: base values, and a factor on them for the candidate.
inline std::pair<json, json> generated(const json& test) {
    const auto& g = test["baseline"]["generate"];
    const double factor = test["candidate"]["generate"]["factor"];
    json base = {{"benchmarks", json::array()}};
    json candidate = base;
    for (int i = 0; i < g["benchmarks"].get<int>(); ++i) {
        json b = {
            {"id", "b" + std::to_string(i)}, {"unit", g["unit"]}, {"direction", "lower"}, {"sessions", json::array()}};
        json c = b;
        for (const auto& v : g["baseline"]) {
            b["sessions"].push_back({v});
            c["sessions"].push_back({v.get<double>() * factor});
        }
        base["benchmarks"].push_back(b);
        candidate["benchmarks"].push_back(c);
    }
    return {base, candidate};
}

/// Interleaved rounds, base candidate candidate base, as sessions of both sides that name their round.
inline std::pair<result::baseline, result::baseline> interleaved(const json& test) {
    std::pair<result::baseline, result::baseline> sides{baseline_of(test["baseline"]), baseline_of(test["candidate"])};
    const auto add = [](result::baseline& side, double value, std::size_t round) {
        result::session s;
        s.control = "round " + std::to_string(round);
        side.sessions.push_back(s);
        result::session_result r;
        r.session = side.sessions.size() - 1;
        r.samples = {value};
        side.results.at(0).sessions.push_back(r);
    };
    sides.first.sessions.clear();
    sides.second.sessions.clear();
    std::size_t round = 0;
    for (const auto& values : test["baseline"]["benchmarks"][0]["rounds"]) {
        add(sides.first, values[0], round);
        add(sides.second, values[1], round);
        add(sides.second, values[2], round);
        add(sides.first, values[3], round);
        ++round;
    }
    return sides;
}

/// The cases' own defaults are those of the class "imported"; their names differ from the policy's.
inline compare::policy policy_of(const json& overrides) {
    compare::policy p;
    auto& imported = p.classes["imported"];
    imported.s0 = overrides.value("s0", imported.s0);
    imported.s_e = overrides.value("s_epoch", imported.s_e);
    p.resolution_s = overrides.value("abs_min", p.resolution_s);
    p.allow_hardware_diff = overrides.value("allow_hardware_diff", false);
    return p;
}

} // namespace translate

#endif
