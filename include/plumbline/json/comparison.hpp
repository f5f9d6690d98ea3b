// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_COMPARISON_HPP
#define PLUMBLINE_JSON_COMPARISON_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/compare/comparison.hpp"
#include "plumbline/compare/siblings.hpp"
#include "plumbline/json/fingerprint.hpp"
#include "plumbline/json/policy.hpp"
#include "plumbline/json/print.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

/// What `schema` of a comparison says.
inline constexpr const char* comparison_schema_name = "plumbline/comparison";
inline constexpr std::uint64_t comparison_schema_version = 1;

namespace detail {

/// A number, or null where there is none: an effect that no number of sessions would show is infinite.
[[nodiscard]] inline writable number_or_null(double value) {
    return std::isfinite(value) ? writable(value) : writable();
}
[[nodiscard]] inline writable number_or_null(const std::optional<double>& value) {
    return value ? number_or_null(*value) : writable();
}

[[nodiscard]] inline writable to_writable(const compare::reason& from) {
    return {{"code", compare::to_string(from.code)}, {"text", from.text}};
}

[[nodiscard]] inline writable to_writable(const compare::side& from) {
    writable implementations = writable::array();
    for (const compare::implementation& each : from.implementations) {
        implementations.push_back(
            {{"name", each.name}, {"sessions", each.sessions}, {"value", number_or_null(each.value)}});
    }
    writable modes = writable::array();
    for (const compare::mode& each : from.modes) {
        modes.push_back({{"value", number_or_null(each.value)},
                         {"sessions", each.sessions},
                         {"clock_mhz", number_or_null(each.clock_mhz)},
                         {"implementations", each.implementations}});
    }
    return {{"value", number_or_null(from.value)},
            {"sessions", from.sessions},
            {"epochs", from.epochs},
            {"spread", number_or_null(from.spread)},
            {"implementations", std::move(implementations)},
            {"modes", std::move(modes)}};
}

[[nodiscard]] inline writable to_writable(const compare::estimate& from) {
    writable object = {{"hl", number_or_null(from.hl)},
                       {"hl_low", number_or_null(from.hl_low)},
                       {"hl_high", number_or_null(from.hl_high)},
                       {"delta", number_or_null(from.delta)},
                       {"se", number_or_null(from.se)},
                       {"df", number_or_null(from.df)},
                       {"low90", number_or_null(from.low90)},
                       {"high90", number_or_null(from.high90)},
                       {"low95", number_or_null(from.low95)},
                       {"high95", number_or_null(from.high95)},
                       {"p_regressed", number_or_null(from.p_regressed)},
                       {"p_improved", number_or_null(from.p_improved)},
                       {"adjusted_regressed", number_or_null(from.adjusted_regressed)},
                       {"adjusted_improved", number_or_null(from.adjusted_improved)},
                       {"rank_regressed", number_or_null(from.rank_regressed)},
                       {"rank_improved", number_or_null(from.rank_improved)},
                       {"smallest_detectable", number_or_null(from.smallest_detectable)},
                       {"sessions_needed", nullptr},
                       {"occupancy_p", number_or_null(from.occupancy_p)}};
    if (from.sessions_needed) object["sessions_needed"] = *from.sessions_needed;
    return object;
}

[[nodiscard]] inline writable to_writable(const std::optional<compare::split>& from) {
    if (!from) return nullptr;
    return {{"clock", number_or_null(from->clock)}, {"cycles", number_or_null(from->cycles)}};
}

[[nodiscard]] inline writable to_writable(const compare::yardstick& from) {
    return {{"class", from.class_name},
            {"s0", number_or_null(from.s0)},
            {"s_e", number_or_null(from.s_e)},
            {"d0", number_or_null(from.d0)},
            {"d_e", number_or_null(from.d_e)},
            {"floor", number_or_null(from.floor)},
            {"margin", number_or_null(from.margin)},
            {"resolution", number_or_null(from.resolution)}};
}

[[nodiscard]] inline writable to_writable(const compare::raised_alarm& from) {
    return {{"code", from.what.code},
            {"text", from.what.text},
            {"sessions", from.what.sessions},
            {"in_base", from.in_base}};
}

[[nodiscard]] inline writable to_writable(const compare::finding& from) {
    writable alarms = writable::array();
    for (const compare::raised_alarm& each : from.alarms) alarms.push_back(to_writable(each));
    writable reasons = writable::array();
    for (const compare::reason& each : from.reasons) reasons.push_back(to_writable(each));
    writable markers = writable::array();
    for (const compare::marker each : from.markers) markers.push_back(compare::to_string(each));
    return {{"id", from.id},
            {"metric", from.metric},
            {"unit", from.unit},
            {"better", from.better == direction::lower ? "lower" : "higher"},
            {"verdict", compare::to_string(from.outcome)},
            {"reasons", std::move(reasons)},
            {"markers", std::move(markers)},
            {"alarms", std::move(alarms)},
            {"ratio", number_or_null(from.ratio)},
            {"base", to_writable(from.base)},
            {"candidate", to_writable(from.candidate)},
            {"effect", from.effect ? to_writable(*from.effect) : writable()},
            {"parts", to_writable(from.parts)},
            {"residual", number_or_null(from.residual)},
            {"fraction_of_limit", number_or_null(from.fraction_of_limit)},
            {"yardstick", to_writable(from.used)}};
}

[[nodiscard]] constexpr const char* name_of(environment::difference_kind how) noexcept {
    switch (how) {
    case environment::difference_kind::changed:
        return "changed";
    case environment::difference_kind::became_known:
        return "became_known";
    case environment::difference_kind::became_unknown:
        return "became_unknown";
    }
    return "unknown";
}

[[nodiscard]] constexpr const char* name_of(result::attribute_class kind) noexcept {
    switch (kind) {
    case result::attribute_class::identity:
        return "identity";
    case result::attribute_class::config:
        return "config";
    case result::attribute_class::state:
        return "state";
    }
    return "unknown";
}

[[nodiscard]] inline writable to_writable(const environment::difference& from) {
    return {{"name", from.name},
            {"link", from.link},
            {"class", name_of(from.kind)},
            {"source", from.source},
            {"how", name_of(from.how)},
            {"from", reading_to_writable(from.from)},
            {"to", reading_to_writable(from.to)}};
}

[[nodiscard]] inline writable to_writable(const std::optional<compare::common_mode>& from) {
    if (!from) return nullptr;
    return {{"shift", number_or_null(from->shift)},
            {"share", number_or_null(from->share)},
            {"pairs", from->pairs},
            {"parts", to_writable(from->parts)}};
}

[[nodiscard]] inline writable to_writable(const std::optional<compare::board_factor>& from) {
    if (!from) return nullptr;
    return {{"base_board", from->base_board}, {"candidate_board", from->candidate_board},
            {"canary", from->canary},         {"shift", number_or_null(from->shift)},
            {"se", number_or_null(from->se)}, {"red", from->red},
            {"problem", from->problem}};
}

[[nodiscard]] inline writable to_writable(const compare::trial& from) {
    return {{"result", compare::to_string(from.result)},
            {"text", from.text},
            {"recovered", from.recovered},
            {"tried", from.tried}};
}

[[nodiscard]] inline writable to_writable(const compare::cause& from) {
    writable changes = writable::array(), covers = writable::array(), signs = writable::array();
    for (const environment::difference& each : from.changes) changes.push_back(to_writable(each));
    for (const compare::covered_result& each : from.covers) {
        covers.push_back({{"id", each.id}, {"metric", each.metric}, {"share", number_or_null(each.share)}});
    }
    for (const compare::sign& each : from.signs) {
        signs.push_back({{"mechanism", compare::to_string(each.what)}, {"text", each.text}, {"results", each.results}});
    }
    return {{"name", from.name},
            {"link", from.link},
            {"strength", compare::to_string(from.how_sure)},
            {"changes", std::move(changes)},
            {"through", from.through ? to_writable(*from.through) : writable()},
            {"covers", std::move(covers)},
            {"signs", std::move(signs)},
            {"effect", from.effect},
            {"remedy", from.remedy},
            {"experiment", from.experiment},
            {"sources", from.sources},
            {"trial", from.tried ? to_writable(*from.tried) : writable()},
            {"set_aside", from.set_aside}};
}

[[nodiscard]] inline writable to_writable(const compare::explanation& from) {
    writable causes = writable::array(), set_aside = writable::array(), unexplained = writable::array();
    for (const compare::cause& each : from.causes) causes.push_back(to_writable(each));
    for (const compare::cause& each : from.set_aside) set_aside.push_back(to_writable(each));
    for (const auto& [id, metric] : from.unexplained) unexplained.push_back({{"id", id}, {"metric", metric}});
    return {{"canary", compare::to_string(from.canary)},
            {"canary_text", from.canary_text},
            {"causes", std::move(causes)},
            {"set_aside", std::move(set_aside)},
            {"unexplained", std::move(unexplained)},
            {"conclusion", from.conclusion}};
}

/// Names of the causes that cover a finding, the most credible first.
[[nodiscard]] inline writable causes_of(const compare::explanation& why, const compare::finding& of) {
    writable names = writable::array();
    for (const compare::cause& each : why.causes) {
        const auto covers = [&](const auto& one) { return one.id == of.id && one.metric == of.metric; };
        if (std::any_of(each.covers.begin(), each.covers.end(), covers)) names.push_back(each.name);
    }
    return names;
}

} // namespace detail

/// The comparison with everything that went into it: all numbers, the policy, the files and the version. Effects are
/// in ln units of cost (positive is worse), fractions and values in the units they name; what is not known is null.
/// `base` and `candidate` are the files of the two sides.
[[nodiscard]] inline std::string dump(const compare::comparison& from, const compare::policy& rules,
                                      const std::vector<std::string>& base, const std::vector<std::string>& candidate) {
    writable counts = writable::object();
    for (const compare::verdict each : compare::all_verdicts) counts[compare::to_string(each)] = from.count(each);
    writable differences = writable::array();
    for (const auto& each : from.environment) differences.push_back(detail::to_writable(each));
    detail::document_printer to;
    to.member("schema", {{"name", comparison_schema_name}, {"version", comparison_schema_version}});
    to.member("tool", {{"name", "plumbline"}, {"version", PLUMBLINE_VERSION}});
    to.member("base", base);
    to.member("candidate", candidate);
    to.member("exit_code", static_cast<int>(from.exit));
    to.member("counts", counts);
    to.member("tests", from.tests);
    to.member("interleaved", from.interleaved);
    to.member("geometric_mean", {{"ratio", detail::number_or_null(from.overall.ratio)}, {"pairs", from.overall.pairs}});
    to.member("machine_wide", detail::to_writable(from.machine_wide));
    to.member("board", detail::to_writable(from.board));
    to.member("explanation", detail::to_writable(from.why));
    to.member("notes", from.notes);
    to.member("environment", differences);
    to.member("policy", to_writable(rules));
    to.list("findings", from.findings, [&](const compare::finding& each) {
        writable object = detail::to_writable(each);
        object["causes"] = detail::causes_of(from.why, each);
        return object;
    });
    return to.take();
}

/// The differences of two environments as JSON.
[[nodiscard]] inline std::string dump(const std::vector<environment::difference>& from) {
    detail::document_printer to;
    to.member("schema", {{"name", "plumbline/environment-difference"}, {"version", 1}});
    to.member("tool", {{"name", "plumbline"}, {"version", PLUMBLINE_VERSION}});
    to.list("environment", from, [](const environment::difference& each) { return detail::to_writable(each); });
    return to.take();
}

/// The ranking of machines of one kind as JSON.
[[nodiscard]] inline std::string dump(const compare::ranking& from) {
    detail::document_printer to;
    to.member("schema", {{"name", "plumbline/ranking"}, {"version", 1}});
    to.member("tool", {{"name", "plumbline"}, {"version", PLUMBLINE_VERSION}});
    to.list("machines", from.machines, [](const compare::sibling& each) {
        writable outstanding = writable::array();
        for (const auto& [what, ratio] : each.outstanding) {
            outstanding.push_back({{"result", what}, {"ratio", detail::number_or_null(ratio)}});
        }
        return writable{{"name", each.name},
                        {"rank", each.rank},
                        {"pairs", each.pairs},
                        {"ratio", detail::number_or_null(each.ratio)},
                        {"odd", each.odd},
                        {"subject", each.subject},
                        {"outstanding", std::move(outstanding)}};
    });
    to.list("left_out", from.left_out, [](const auto& each) {
        return writable{{"name", each.first}, {"reason", each.second}};
    });
    return to.take();
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
