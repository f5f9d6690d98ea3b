// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_BASELINE_RULES_HPP
#define PLUMBLINE_JSON_BASELINE_RULES_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

/// What `schema` of a baseline says. A new major version may change anything and is refused by older readers; a new
/// minor version only adds members, which older readers pass over.
inline constexpr const char* baseline_schema_name = "plumbline/baseline";
inline constexpr std::uint64_t baseline_schema_version = 1;
inline constexpr std::uint64_t baseline_schema_minor = 1;

namespace detail {

/// Whether `text` has the shape of `pattern`, in which 'd' stands for a digit.
[[nodiscard]] inline bool has_shape(std::string_view text, std::string_view pattern) {
    if (text.size() != pattern.size()) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool digit = text[i] >= '0' && text[i] <= '9';
        if (pattern[i] == 'd' ? !digit : text[i] != pattern[i]) return false;
    }
    return true;
}

/// A day as policies and epochs have it, 2026-11-30; a month or a day that no year has is none.
[[nodiscard]] inline bool is_date(std::string_view text) {
    if (!has_shape(text, "dddd-dd-dd")) return false;
    const auto two = [&](std::size_t at) { return 10 * (text[at] - '0') + (text[at + 1] - '0'); };
    const int month = two(5);
    const int last = month == 2 ? 29 : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
    return month >= 1 && month <= 12 && two(8) >= 1 && two(8) <= last;
}

/// UTC in ISO 8601: 2026-11-30T20:15:00Z, with or without a fraction of a second.
[[nodiscard]] inline bool is_timestamp(std::string_view text) {
    constexpr std::string_view seconds = "dddd-dd-ddTdd:dd:dd";
    if (text.size() <= seconds.size() || text.back() != 'Z' || !has_shape(text.substr(0, seconds.size()), seconds)) {
        return false;
    }
    const std::string_view fraction = text.substr(seconds.size(), text.size() - seconds.size() - 1);
    return fraction.empty() || (fraction.size() > 1 && fraction.size() <= 10 && fraction[0] == '.' &&
                                fraction.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

/// The rules of a baseline that its types do not say. They hold for what is read and for what is written alike; a
/// breach is a schema_error with the JSON pointer it has, or would have, in the file.
class baseline_rules {
public:
    baseline_rules(const result::baseline& what, const std::string& name) : what_(what), name_(name) {}

    void check() const {
        timestamp(what_.created, "/created");
        finite(what_.tool, "/tool");
        finite(what_.labels, "/labels");
        finite(what_.device.properties, "/device/properties");
        for (const auto& [key, value] : what_.device.ceilings) finite(value, "/device/ceilings", key);
        for (const auto& [key, entry] : what_.environment.attributes) {
            if (const double* value = std::get_if<double>(&entry.read.value)) finite(*value, "/fingerprint", key);
        }
        for (const auto& [key, entry] : what_.noise) check_noise(entry, key);
        for (std::size_t i = 0; i < what_.sessions.size(); ++i) check_session(i);
        std::set<std::pair<std::string_view, std::string_view>> keys;
        for (std::size_t i = 0; i < what_.results.size(); ++i) {
            const auto& [id, metric] =
                std::pair(std::string_view(what_.results[i].what.id), std::string_view(what_.results[i].what.metric));
            if (!keys.emplace(id, metric).second) {
                fail(result_at(i), "the benchmark \"" + std::string(id) + "\" has two results of the metric \"" +
                                       std::string(metric) + "\"; keep one of them");
            }
            check_result(i);
        }
        for (std::size_t i = 0; i < what_.history.size(); ++i) {
            timestamp(what_.history[i].when, "/history/" + std::to_string(i) + "/when");
        }
        finite(what_.checks, "/checks");
    }

private:
    [[noreturn]] void fail(const std::string& pointer, const std::string& problem) const {
        throw schema_error(name_, pointer, problem);
    }
    [[nodiscard]] static std::string result_at(std::size_t i) { return "/results/" + std::to_string(i); }

    void timestamp(const std::string& text, const std::string& pointer) const {
        if (!is_timestamp(text)) fail(pointer, "must be a UTC time such as 2026-11-30T20:15:00Z, is \"" + text + '"');
    }
    void finite(double value, const std::string& object, const std::string& key) const {
        if (!std::isfinite(value)) fail(object + '/' + key, "must be a finite number");
    }
    void finite(const scalar_map& values, const std::string& object) const {
        for (const auto& [key, value] : values) {
            if (const double* number = std::get_if<double>(&value)) finite(*number, object, key);
        }
    }
    void not_empty(const std::string& text, const std::string& pointer) const {
        if (text.empty()) fail(pointer, "must not be empty");
    }

    /// The bounds keep every square of them, and so every verdict, a number: a logarithm of a double is below 746.
    void check_noise(const result::noise& entry, const std::string& key) const {
        for (const double value : {entry.s0.value_or(0), entry.s_e.value_or(0)}) {
            if (!(value >= 0 && value <= 1000)) {
                fail("/noise/" + key, "must have standard deviations of ln(value), from 0 to 1000");
            }
        }
        if (!(entry.d0 > 0 && entry.d0 <= 1e6)) {
            fail("/noise/" + key + "/d0", "must be degrees of freedom, more than 0 and at most 1000000");
        }
    }

    void check_session(std::size_t i) const {
        const result::session& entry = what_.sessions[i];
        const std::string at = "/sessions/" + std::to_string(i);
        timestamp(entry.started, at + "/started");
        if (!std::isfinite(entry.seconds) || entry.seconds < 0) fail(at + "/seconds", "must be 0 or more");
        if (!entry.when.day.empty() && !is_date(entry.when.day)) {
            fail(at + "/epoch/day", "must be a date such as 2026-11-30, is \"" + entry.when.day + '"');
        }
        finite(entry.state, at + "/state");
    }

    void check_result(std::size_t i) const {
        const result::result& entry = what_.results[i];
        // Pointers are made only for a breach: there may be millions of samples.
        const auto at = [i](const char* member) { return result_at(i) + member; };
        if (entry.what.id.empty()) not_empty(entry.what.id, at("/id"));
        if (entry.what.metric.empty()) not_empty(entry.what.metric, at("/metric"));
        if (entry.what.unit.empty()) not_empty(entry.what.unit, at("/unit"));
        if (entry.backend.empty()) not_empty(entry.backend, at("/backend"));
        if (!std::isfinite(entry.what.flop) || entry.what.flop < 0) fail(at("/workload/flop"), "must be 0 or more");
        if (!std::isfinite(entry.what.bytes) || entry.what.bytes < 0) fail(at("/workload/bytes"), "must be 0 or more");
        finite(entry.what.params, at("/workload/params"));
        std::vector<bool> seen(what_.sessions.size());
        for (std::size_t j = 0; j < entry.sessions.size(); ++j) {
            check_session_result(entry.sessions[j], at("/sessions/") + std::to_string(j), seen);
        }
    }

    void check_session_result(const result::session_result& entry, const std::string& at,
                              std::vector<bool>& seen) const {
        if (entry.session >= seen.size()) {
            fail(at + "/session", "must be an index into /sessions, which has " + std::to_string(seen.size()) +
                                      ", is " + std::to_string(entry.session));
        }
        if (seen[entry.session]) {
            fail(at + "/session", "session " + std::to_string(entry.session) + " occurs twice; keep one of them");
        }
        seen[entry.session] = true;
        one_per_sample(entry.cycles.size(), entry, at + "/cycles");
        one_per_sample(entry.clean.size(), entry, at + "/clean");
        for (const auto* values : {&entry.samples, &entry.cycles}) {
            for (std::size_t k = 0; k < values->size(); ++k) {
                if (std::isfinite((*values)[k])) continue;
                fail(at + (values == &entry.samples ? "/samples/" : "/cycles/") + std::to_string(k),
                     "must be a finite number");
            }
        }
        finite(entry.ran.parts, at + "/evidence/parts");
        finite(entry.state, at + "/state");
    }
    void one_per_sample(std::size_t count, const result::session_result& entry, const std::string& at) const {
        if (count == 0 || count == entry.samples.size()) return;
        fail(at, "must be empty or have one value for each of the " + std::to_string(entry.samples.size()) +
                     " samples, has " + std::to_string(count));
    }

    const result::baseline& what_;
    const std::string& name_;
};

} // namespace detail

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
