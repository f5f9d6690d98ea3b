// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_READINGS_HPP
#define PLUMBLINE_REPORT_READINGS_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plumbline/core/scalar.hpp"
#include "plumbline/report/format.hpp"
#include "plumbline/result/result.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

namespace detail {

/// One value a session: the median of its samples; sessions without any are left out.
[[nodiscard]] inline std::vector<double> session_values(const result::result& from) {
    std::vector<double> values;
    for (const result::session_result& each : from.sessions) {
        if (!each.samples.empty()) values.push_back(stats::median(each.samples));
    }
    return values;
}

/// The median over the sessions in which `map` of a session has `name` as a number.
template <class Map>
[[nodiscard]] std::optional<double> median_number(const result::result& from, const std::string& name, Map map) {
    std::vector<double> values;
    for (const result::session_result& each : from.sessions) {
        const scalar_map& readings = map(each);
        const auto at = readings.find(name);
        if (at == readings.end()) continue;
        if (const auto* const real = std::get_if<double>(&at->second)) values.push_back(*real);
        if (const auto* const whole = std::get_if<std::int64_t>(&at->second))
            values.push_back(static_cast<double>(*whole));
    }
    if (values.empty()) return std::nullopt;
    return stats::median(std::move(values));
}

/// The median over the sessions in which a reading of their state is a number.
[[nodiscard]] inline std::optional<double> median_reading(const result::result& from, const std::string& name) {
    return median_number(from, name, [](const auto& session) -> const scalar_map& { return session.state; });
}

/// The median over the sessions in which a part of the evidence is a number.
[[nodiscard]] inline std::optional<double> median_part(const result::result& from, const std::string& name) {
    return median_number(from, name, [](const auto& session) -> const scalar_map& { return session.ran.parts; });
}

/// A reading of a session as text, "" where it has none.
[[nodiscard]] inline std::string reading_text(const result::session_result& from, const std::string& name) {
    const auto at = from.state.find(name);
    return at == from.state.end() ? std::string() : printable(to_string(at->second));
}

} // namespace detail

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
