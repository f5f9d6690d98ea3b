// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_OBSERVATION_HPP
#define PLUMBLINE_COMPARE_OBSERVATION_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plumbline/compare/comparison.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/stats/bimodality.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// A session's value: the median of its samples, in the result's unit; NaN without samples.
[[nodiscard]] inline double session_value(const result::session_result& of) {
    return stats::median(of.samples);
}

/// A number among readings, whole or not; absent when it was not read or is no number.
[[nodiscard]] inline std::optional<double> number(const scalar_map& readings, const std::string& name) {
    const auto at = readings.find(name);
    if (at == readings.end()) return std::nullopt;
    if (const auto* whole = std::get_if<std::int64_t>(&at->second)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&at->second)) return *real;
    return std::nullopt;
}

[[nodiscard]] inline bool has_flag(const result::session_result& of, const char* flag) {
    return std::find(of.flags.begin(), of.flags.end(), flag) != of.flags.end();
}

namespace detail {

/// What one session says about one benchmark. The pointers go into the baseline that is being compared.
struct observation {
    double value = 0;                 ///< in the finding's unit
    double cost = 0;                  ///< y: ln(value), negated where higher is better
    std::optional<double> log_cycles; ///< ln of the median cycles, where the backend counts them
    const result::session_result* measured = nullptr;
    const result::session* session = nullptr;
};

using observations = std::vector<observation>;

[[nodiscard]] inline std::vector<double> costs(const observations& side) {
    std::vector<double> y;
    y.reserve(side.size());
    for (const auto& o : side) y.push_back(o.cost);
    return y;
}

[[nodiscard]] inline std::vector<double> all_values(const observations& side) {
    std::vector<double> values;
    values.reserve(side.size());
    for (const auto& o : side) values.push_back(o.value);
    return values;
}

/// The sessions of a result as observations; `factor` converts its unit to the finding's.
[[nodiscard]] inline observations observe(const result::result& from, const result::baseline& in, double factor) {
    observations side;
    side.reserve(from.sessions.size());
    for (const auto& measured : from.sessions) {
        observation o;
        o.value = session_value(measured) * factor;
        o.cost = from.what.better == direction::lower ? std::log(o.value) : -std::log(o.value);
        if (!measured.cycles.empty() && measured.cycles.size() == measured.samples.size()) {
            const double cycles = stats::median(measured.cycles);
            if (cycles > 0) o.log_cycles = std::log(cycles);
        }
        o.measured = &measured;
        o.session = &in.sessions[measured.session];
        side.push_back(o);
    }
    return side;
}

/// Distinct epochs (boot, day, board) of a side.
[[nodiscard]] inline std::size_t count_epochs(const observations& side) {
    std::set<result::epoch> seen;
    for (const auto& o : side) seen.insert(o.session->when);
    return seen.size();
}

/// The implementations of a side, most sessions first, with the median value of each.
[[nodiscard]] inline std::vector<implementation> implementations(const observations& side) {
    std::vector<implementation> found;
    std::vector<std::vector<double>> values;
    for (const auto& o : side) {
        const std::string& name = o.measured->ran.implementation;
        if (name.empty()) continue;
        const auto at = std::find_if(found.begin(), found.end(), [&](const auto& i) { return i.name == name; });
        const auto index = static_cast<std::size_t>(at - found.begin());
        if (at == found.end()) {
            found.push_back({name, 0, 0});
            values.emplace_back();
        }
        ++found[index].sessions;
        values[index].push_back(o.value);
    }
    for (std::size_t i = 0; i < found.size(); ++i) found[i].value = stats::median(values[i]);
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.sessions > b.sessions; });
    return found;
}

/// The clock inside a session's samples in MHz: cycles over time, or what the session read. `factor` converts the
/// value to seconds; 0 where it is no time.
[[nodiscard]] inline std::optional<double> clock_mhz(const observation& o, double seconds_per_unit) {
    if (o.log_cycles && seconds_per_unit > 0) return std::exp(*o.log_cycles) / (o.value * seconds_per_unit) / 1e6;
    return number(o.measured->state, "sm_clock_mhz");
}

/// The two groups of a bimodal side with their clocks and implementations.
[[nodiscard]] inline std::vector<mode> describe_modes(const observations& side, const stats::two_modes& split,
                                                      double seconds_per_unit) {
    std::vector<mode> modes;
    for (const bool upper : {false, true}) {
        mode m;
        observations members;
        std::vector<double> clocks;
        for (const auto& o : side) {
            if ((o.cost >= split.threshold) != upper) continue;
            members.push_back(o);
            if (const auto clock = clock_mhz(o, seconds_per_unit)) clocks.push_back(*clock);
        }
        m.sessions = members.size();
        m.value = stats::median(all_values(members));
        if (!clocks.empty()) m.clock_mhz = stats::median(clocks);
        for (auto& i : implementations(members)) m.implementations.push_back(i.name);
        modes.push_back(std::move(m));
    }
    return modes;
}

/// What a finding shows of a side.
[[nodiscard]] inline side summarise(const observations& from) {
    side s;
    if (from.empty()) return s;
    s.value = stats::median(all_values(from));
    s.sessions = from.size();
    s.epochs = count_epochs(from);
    if (from.size() > 1) s.spread = stats::standard_deviation(costs(from));
    s.implementations = implementations(from);
    return s;
}

} // namespace detail

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
