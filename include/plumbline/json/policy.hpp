// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_POLICY_HPP
#define PLUMBLINE_JSON_POLICY_HPP

#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/compare/policy.hpp"
#include "plumbline/json/baseline_rules.hpp"
#include "plumbline/json/cursor.hpp"
#include "plumbline/json/file.hpp"
#include "plumbline/json/print.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

namespace detail {

/// What a number of a policy may be; `hint` is added to the refusal.
struct bounds {
    double low;
    double high;
    bool low_itself = true; ///< whether `low` is allowed
    const char* hint = "";
};
inline constexpr double unbounded = std::numeric_limits<double>::max();
inline constexpr bounds fraction{0, 1, false, " (a fraction: 0.03 is 3 %)"};
inline constexpr bounds deviation{0, 1, false, " (a standard deviation in ln units: 0.01 is about 1 %)"};
inline constexpr bounds probability{0, 1, false, " (a probability)"};
inline constexpr bounds positive{0, unbounded, false};
inline constexpr bounds not_negative{0, unbounded};
inline constexpr bounds above_one{1, unbounded, false, " (a factor)"};

/// The fields of the policy structs: f(name, member) or f(name, member, bounds) for each. Reading, writing and the list
/// of known names are all made from these, so that a new field is one line.
template <class Class, class F>
void class_fields(Class& c, F&& f) {
    f("s0", c.s0, deviation);
    f("s0_short", c.s0_short, deviation);
    f("s_e", c.s_e, bounds{0, 1, true, deviation.hint});
    f("s_e_board", c.s_e_board, bounds{0, 1, true, deviation.hint});
    f("margin", c.margin, fraction);
    f("margin_interleaved", c.margin_interleaved, fraction);
    f("advisory", c.advisory);
}

template <class Rule, class F>
void rule_fields(Rule& r, F&& f) {
    f("match", r.match);
    f("metric", r.metric);
    f("margin", r.margin, fraction);
    f("s0", r.s0, deviation);
    f("s_e", r.s_e, bounds{0, 1, true, deviation.hint});
    f("resolution", r.resolution, not_negative);
    f("required", r.required);
    f("advisory", r.advisory);
    f("compute_bound", r.compute_bound);
}

template <class Acceptance, class F>
void acceptance_fields(Acceptance& a, F&& f) {
    f("match", a.match);
    f("metric", a.metric);
    f("up_to", a.up_to, positive);
    f("until", a.until);
    f("reason", a.reason);
    f("who", a.who);
}

template <class Policy, class F>
void policy_fields(Policy& p, F&& f) {
    f("short_below_ns", p.short_below_ns, not_negative);
    f("d0", p.d0, positive);
    f("floor", p.floor, deviation);
    f("q", p.q, probability);
    f("alpha_equivalence", p.alpha_equivalence, bounds{0, 0.5, false, probability.hint});
    f("alpha_rank", p.alpha_rank, probability);
    f("rank_minimum", p.rank_minimum);
    f("resolution_s", p.resolution_s, not_negative);
    f("suspicious_speedup", p.suspicious_speedup, above_one);
    f("limit_tolerance", p.limit_tolerance, above_one);
    f("board_factor_limit", p.board_factor_limit, fraction);
    f("board_spread", p.board_spread, deviation);
    f("compute_intensity", p.compute_intensity, not_negative);
    f("compute_canary", p.compute_canary);
    f("common_mode_share", p.common_mode_share, bounds{0.5, 1, true, " (a share of the pairs)"});
    f("common_mode_minimum", p.common_mode_minimum);
    f("foreign_load_is_invalid", p.foreign_load_is_invalid);
    f("throttled_is_invalid", p.throttled_is_invalid);
    f("allow_hardware_diff", p.allow_hardware_diff);
    f("strict", p.strict);
    f("today", p.today);
}

/// Overwrites the fields that an object has and remembers every name there is.
class field_reader {
public:
    explicit field_reader(const cursor& object) : object_(object) {}

    void operator()(const char* name, double& into, const bounds& allowed) {
        if (const auto found = find(name)) into = number(*found, allowed);
    }
    void operator()(const char* name, std::optional<double>& into, const bounds& allowed) {
        if (const auto found = find(name)) into = number(*found, allowed);
    }
    void operator()(const char* name, bool& into) {
        if (const auto found = find(name)) into = found->boolean();
    }
    void operator()(const char* name, std::optional<bool>& into) {
        if (const auto found = find(name)) into = found->boolean();
    }
    void operator()(const char* name, std::size_t& into) {
        if (const auto found = find(name)) into = static_cast<std::size_t>(found->count(1'000'000));
    }
    void operator()(const char* name, std::string& into) {
        if (const auto found = find(name)) into = found->text();
    }
    /// A member that is read elsewhere.
    [[nodiscard]] std::optional<cursor> find(const char* name) {
        known_.push_back(name);
        return object_.find(name);
    }
    void refuse_others() const { object_.allow(known_); }

private:
    [[nodiscard]] static double number(const cursor& from, const bounds& allowed) {
        const double value = from.number();
        if (value > allowed.low && value <= allowed.high) return value;
        if (value == allowed.low && allowed.low_itself) return value;
        std::string expected = std::string(allowed.low_itself ? "at least " : "more than ") + to_string(allowed.low);
        if (allowed.high < unbounded) expected += " and at most " + to_string(allowed.high);
        from.fail("must be " + expected + allowed.hint + ", is " + to_string(value));
    }

    const cursor& object_;
    std::vector<std::string_view> known_;
};

/// Adds the fields that are set.
struct field_writer {
    writable& object;

    void operator()(const char* name, const std::string& value) const {
        if (!value.empty()) object[name] = value;
    }
    template <class T>
    void operator()(const char* name, const std::optional<T>& value, const bounds& = fraction) const {
        if (value) object[name] = *value;
    }
    template <class T>
    void operator()(const char* name, const T& value, const bounds& = fraction) const {
        object[name] = value;
    }
};

inline void require_text(const cursor& object, std::string_view key, const char* example) {
    const cursor value = object.at(key);
    if (value.text().empty()) value.fail(std::string("must not be empty; for example ") + example);
}

[[nodiscard]] inline compare::rule read_rule(const cursor& from) {
    compare::rule rule;
    field_reader fields(from);
    rule_fields(rule, fields);
    fields.refuse_others();
    require_text(from, "match", "\"gemm/*\"");
    return rule;
}

/// An acceptance must say until when and why: one without an end would hide every later change.
[[nodiscard]] inline compare::acceptance read_acceptance(const cursor& from) {
    compare::acceptance entry;
    field_reader fields(from);
    acceptance_fields(entry, fields);
    fields.refuse_others();
    require_text(from, "match", "\"gemm/*\"");
    require_text(from, "reason", "\"cuDNN 9.20 picks another engine, see OPS-7\"");
    const cursor until = from.at("until");
    if (entry.until == "never")
        entry.until.clear();
    else if (!is_date(entry.until)) {
        until.fail("must be the last day it holds, such as \"2026-12-31\", or \"never\", is \"" + entry.until + '"');
    }
    return entry;
}

} // namespace detail

/// A policy from a JSON object in which `//` and `/* */` comments are allowed; what it does not name keeps its default,
/// and a class it names keeps the defaults of the fields it does not name. schema_error with the JSON pointer for an
/// unknown name (with the nearest known one), a wrong type or a number out of its range.
[[nodiscard]] inline compare::policy parse_policy(std::string_view text, const std::string& name) {
    const nlohmann::json document = parse_document(text, name, comments::allowed);
    const std::string at;
    const cursor top(document, name, at);
    compare::policy into;
    detail::field_reader fields(top);
    detail::policy_fields(into, fields);
    if (const auto classes = fields.find("classes")) {
        std::vector<std::string_view> known;
        for (const auto& entry : into.classes) known.push_back(entry.first);
        classes->allow(known);
        classes->members([&](const std::string& class_name, const cursor& entry) {
            detail::field_reader class_reader(entry);
            detail::class_fields(into.classes[class_name], class_reader);
            class_reader.refuse_others();
        });
    }
    if (const auto rules = fields.find("rules")) {
        rules->elements([&](std::size_t, const cursor& each) { into.rules.push_back(detail::read_rule(each)); });
    }
    if (const auto accepted = fields.find("accepted")) {
        accepted->elements(
            [&](std::size_t, const cursor& each) { into.accepted.push_back(detail::read_acceptance(each)); });
    }
    fields.refuse_others();
    if (!into.today.empty() && !detail::is_date(into.today)) {
        const cursor today = top.at("today");
        today.fail("must be a date such as \"2026-11-30\", is \"" + into.today + '"');
    }
    return into;
}

/// parse_policy of a file's contents; file_error when it cannot be read.
[[nodiscard]] inline compare::policy load_policy(const std::filesystem::path& path) {
    return parse_policy(read_file(path), path.string());
}

/// The whole policy, defaults included, as an object that parse_policy reads back.
[[nodiscard]] inline writable to_writable(const compare::policy& from) {
    writable object = writable::object();
    detail::policy_fields(from, detail::field_writer{object});
    object["classes"] = writable::object();
    for (const auto& [name, entry] : from.classes) {
        writable fields = writable::object();
        detail::class_fields(entry, detail::field_writer{fields});
        object["classes"][name] = std::move(fields);
    }
    object["rules"] = writable::array();
    for (const compare::rule& each : from.rules) {
        writable fields = writable::object();
        detail::rule_fields(each, detail::field_writer{fields});
        object["rules"].push_back(std::move(fields));
    }
    object["accepted"] = writable::array();
    for (const compare::acceptance& each : from.accepted) {
        writable fields = writable::object();
        detail::acceptance_fields(each, detail::field_writer{fields});
        if (each.until.empty()) fields["until"] = "never";
        object["accepted"].push_back(std::move(fields));
    }
    return object;
}

/// The policy as JSON text.
[[nodiscard]] inline std::string dump(const compare::policy& from) {
    std::string text;
    print(text, to_writable(from));
    return text + '\n';
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
