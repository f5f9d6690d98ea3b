// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_MERGE_HPP
#define PLUMBLINE_RUN_MERGE_HPP

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/result/append.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// The first attribute whose known value differs between two environments of one class, "" when there is none.
[[nodiscard]] inline std::string first_difference(const result::fingerprint& a, const result::fingerprint& b,
                                                  result::attribute_class kind) {
    for (const auto& [name, left] : a.attributes) {
        const result::attribute* right = b.find(name);
        if (left.kind != kind || right == nullptr || !left.read.known() || !right->read.known()) continue;
        if (left.read.value != right->read.value) {
            return name + ": " + to_string(left.read.value) + " -> " + to_string(right->read.value);
        }
    }
    return {};
}

/// Number of sessions in which a benchmark was measured: its metric with the most.
[[nodiscard]] inline std::map<std::string, std::size_t> sessions_by_id(const result::baseline& of) {
    std::map<std::string, std::size_t> counts;
    for (const result::result& each : of.results) {
        std::size_t& count = counts[each.what.id];
        // A skip is an answer too: asking again in every session would only cost time. A lack of time is none.
        const bool skipped = each.status == result::result_status::skipped && !result::lacked_time(each);
        const std::size_t answers = skipped ? of.sessions.size() : each.sessions.size();
        count = std::max(count, answers);
    }
    return counts;
}

namespace detail {

/// Adds one session's result to the same benchmark's. Failed once is failed: a wrong result in one session of five is
/// a wrong result. Skipped gives way to anything measured.
inline void merge_result(result::result& into, result::result part) {
    using result::result_status;
    const bool first = into.sessions.empty() && into.status != result_status::failed;
    into.verified = part.verified && (into.verified || first);
    if (part.status == result_status::failed && into.status != result_status::failed) {
        into.status = result_status::failed;
        into.reason = part.reason;
    } else if (part.status == result_status::ok && into.status == result_status::skipped) {
        into.status = result_status::ok;
        into.reason.clear();
        into.what = part.what;
    }
    if (into.backend.empty()) into.backend = part.backend;
    std::move(part.sessions.begin(), part.sessions.end(), std::back_inserter(into.sessions));
}

} // namespace detail

/// Adds the sessions of `part` to `into`, with its results; environment and device are taken where `into` has none
/// yet. Both must be of one device; who calls has made sure of it.
inline void merge(result::baseline& into, result::baseline part) {
    if (into.environment.attributes.empty()) into.environment = std::move(part.environment);
    if (into.device.backend.empty()) into.device = part.device;
    // Who starts the sessions does not open the device, so it knows its name and nothing else.
    for (const auto& [name, value] : part.device.properties) into.device.properties.emplace(name, value);
    if (into.created.empty()) into.created = part.created;
    if (into.tool.empty()) into.tool = std::move(part.tool);
    for (const auto& [name, value] : part.labels) into.labels.emplace(name, value);
    for (const auto& [name, value] : part.checks) into.checks.emplace(name, value);
    if (into.sessions.size() + part.sessions.size() > 1) {
        for (result::result& each : part.results) {
            if (each.status != result::result_status::failed) continue;
            each.reason = "in session " + std::to_string(into.sessions.size() + 1) + ": " + each.reason;
        }
    }
    result::append_sessions(into, std::move(part), detail::merge_result);
}

/// Puts results into the order of `ids`, so that a file does not show the shuffled order of its first session.
/// Results of other ids keep their order behind them.
inline void order_results(result::baseline& of, const std::vector<std::string>& ids) {
    std::map<std::string, std::size_t> rank;
    for (std::size_t i = 0; i < ids.size(); ++i) rank.emplace(ids[i], i);
    const auto rank_of = [&](const result::result& each) {
        const auto at = rank.find(each.what.id);
        return at == rank.end() ? ids.size() : at->second;
    };
    std::stable_sort(of.results.begin(), of.results.end(),
                     [&](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); });
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
