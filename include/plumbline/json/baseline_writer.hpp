// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_BASELINE_WRITER_HPP
#define PLUMBLINE_JSON_BASELINE_WRITER_HPP

#include <string>
#include <utility>

#include "plumbline/json/baseline_rules.hpp"
#include "plumbline/json/fingerprint.hpp"
#include "plumbline/result/alarm.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

namespace detail {

[[nodiscard]] inline writable to_writable(const result::selection& from) {
    return {{"suite", from.suite}, {"filter", from.filter}, {"left_out", from.left_out}};
}

[[nodiscard]] inline writable to_writable(const result::device& from) {
    return {{"backend", from.backend},
            {"model", from.model},
            {"uuid", from.uuid},
            {"properties", json::to_writable(from.properties)},
            {"ceilings", from.ceilings}};
}

[[nodiscard]] inline writable to_writable(const result::noise& from) {
    writable object = writable::object();
    if (from.s0) object["s0"] = *from.s0;
    if (from.s_e) object["s_e"] = *from.s_e;
    object["d0"] = from.d0;
    object["sessions"] = from.sessions;
    object["epochs"] = from.epochs;
    return object;
}

[[nodiscard]] inline writable to_writable(const result::session& from) {
    return {{"started", from.started},
            {"seconds", from.seconds},
            {"seed", from.seed},
            {"epoch", {{"boot", from.when.boot}, {"day", from.when.day}, {"board", from.when.board}}},
            {"failed", from.failed},
            {"reason", from.reason},
            {"control", from.control},
            {"state", json::to_writable(from.state)},
            {"order", from.order}};
}

[[nodiscard]] inline writable to_writable(const result::session_result& from) {
    return {{"session", from.session},
            {"samples", from.samples},
            {"cycles", from.cycles},
            {"clean", from.clean},
            {"flags", from.flags},
            {"evidence",
             {{"implementation", from.ran.implementation},
              {"parts", json::to_writable(from.ran.parts)},
              {"kernels", from.ran.kernels}}},
            {"state", json::to_writable(from.state)}};
}

[[nodiscard]] constexpr const char* name_of(result::result_status status) noexcept {
    switch (status) {
    case result::result_status::ok:
        return "ok";
    case result::result_status::failed:
        return "failed";
    case result::result_status::skipped:
        return "skipped";
    }
    return "unknown";
}

/// What is wrong with a result by its own evidence. It follows from the rest of the file, so readers pass over it.
[[nodiscard]] inline writable alarms_of(const result::result& from, const result::device& on) {
    writable list = writable::array();
    for (const result::alarm& each : result::alarms(from, on)) {
        list.push_back({{"code", each.code}, {"text", each.text}, {"sessions", each.sessions}});
    }
    return list;
}

[[nodiscard]] inline writable to_writable(const result::result& from, const result::device& on) {
    writable object = {{"id", from.what.id},
                       {"metric", from.what.metric},
                       {"unit", from.what.unit},
                       {"better", from.what.better == direction::lower ? "lower" : "higher"},
                       {"status", name_of(from.status)},
                       {"reason", from.reason},
                       {"backend", from.backend},
                       {"verified", from.verified},
                       {"workload",
                        {{"family", from.what.family},
                         {"class", to_string(from.what.kind)},
                         {"params", json::to_writable(from.what.params)},
                         {"hash", from.what.hash()},
                         {"flop", from.what.flop},
                         {"bytes", from.what.bytes}}},
                       {"sessions", writable::array()}};
    if (writable alarms = alarms_of(from, on); !alarms.empty()) object["alarms"] = std::move(alarms);
    for (const result::session_result& each : from.sessions) object["sessions"].push_back(to_writable(each));
    return object;
}

[[nodiscard]] inline writable to_writable(const result::event& from) {
    return {{"when", from.when}, {"what", from.what}, {"who", from.who}, {"reason", from.reason}, {"ids", from.ids}};
}

} // namespace detail

/// The baseline as a JSON document of schema version 1 (baselines/schema/baseline-1.json), numbers in full precision.
/// schema_error with the JSON pointer the value would have when the baseline breaks a rule of the schema (a number that
/// is not finite, two results of one id and metric, a session index out of range); error on text that is not UTF-8.
[[nodiscard]] inline std::string dump(const result::baseline& from) {
    const std::string name = "the baseline to be written";
    detail::baseline_rules(from, name).check();
    detail::document_printer to;
    to.member("schema",
              {{"name", baseline_schema_name}, {"version", baseline_schema_version}, {"minor", baseline_schema_minor}});
    to.member("created", from.created);
    to.member("tool", to_writable(from.tool));
    to.member("labels", to_writable(from.labels));
    to.member("selection", detail::to_writable(from.selected));
    to.member("fingerprint", to_writable(from.environment));
    to.member("device", detail::to_writable(from.device));
    to.map("noise", from.noise, [](const result::noise& each) { return detail::to_writable(each); });
    to.member("checks", to_writable(from.checks));
    to.list("history", from.history, [](const result::event& each) { return detail::to_writable(each); });
    to.list("sessions", from.sessions, [](const result::session& each) { return detail::to_writable(each); });
    to.list("results", from.results,
            [&](const result::result& each) { return detail::to_writable(each, from.device); });
    return to.take();
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
