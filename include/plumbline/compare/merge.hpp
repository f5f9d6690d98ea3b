// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_MERGE_HPP
#define PLUMBLINE_COMPARE_MERGE_HPP

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/compare/gate.hpp"
#include "plumbline/compare/graft.hpp"
#include "plumbline/compare/noise.hpp"
#include "plumbline/compare/policy.hpp"
#include "plumbline/core/error.hpp"
#include "plumbline/result/append.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

namespace detail {

/// Throws usage_error unless both baselines are about one and the same device.
inline void require_same_device(const result::baseline& a, const result::baseline& b) {
    if (!a.device.uuid.empty() && !b.device.uuid.empty() && a.device.uuid != b.device.uuid) {
        throw usage_error("the baselines are of two devices (" + a.device.uuid + " and " + b.device.uuid +
                          "): devices are never pooled; compare them, or rank them with --siblings");
    }
    const auto different = hardware_differences(a, b);
    if (!different.empty()) throw usage_error("the baselines are of different hardware: " + different.front());
}

/// Throws usage_error when a session is there already: counted twice it would look like new evidence.
inline void require_new_sessions(const result::baseline& into, const result::baseline& from) {
    for (const auto& s : from.sessions) {
        const bool known = std::any_of(into.sessions.begin(), into.sessions.end(),
                                       [&](const result::session& other) { return same_session(s, other); });
        if (known) throw usage_error("the session of " + s.started + " is in both baselines: give each file once");
    }
}

/// Unites one result of a part with what the pool has of it.
inline void unite(result::result& into, result::result from) {
    // What was skipped, or failed early, has no sessions and may have no description either.
    const bool both = !into.sessions.empty() && !from.sessions.empty();
    const bool alike = !both || (into.what.hash() == from.what.hash() && into.what.unit == from.what.unit &&
                                 into.what.better == from.what.better);
    if (!alike || into.backend != from.backend) {
        throw usage_error("'" + from.what.id + "' with metric '" + from.what.metric +
                          "' is another workload, unit, direction or backend in another baseline: measure again");
    }
    if (both) {
        into.verified = into.verified && from.verified;
    } else if (into.sessions.empty()) {
        into.what = from.what;
        into.verified = from.verified;
    }
    const auto rank = [](result::result_status s) { // failed anywhere is failed; measured anywhere is not skipped
        return s == result::result_status::failed ? 2 : s == result::result_status::ok ? 1 : 0;
    };
    if (rank(from.status) > rank(into.status)) {
        into.status = from.status;
        into.reason = from.reason;
    }
    std::move(from.sessions.begin(), from.sessions.end(), std::back_inserter(into.sessions));
}

/// Adds a baseline to a pool of the same device.
inline void add_part(result::baseline& pool, const result::baseline& part) {
    require_same_device(pool, part);
    require_new_sessions(pool, part);
    result::append_sessions(pool, part, unite);
    pool.history.insert(pool.history.end(), part.history.begin(), part.history.end());
    pool.environment = part.environment;
    pool.tool = part.tool;
    pool.checks = part.checks;
    for (const auto& [name, value] : part.labels) pool.labels[name] = value;
    for (const auto& [name, value] : part.device.properties) pool.device.properties[name] = value;
    for (const auto& [name, value] : part.noise) pool.noise[name] = value;
    const auto still_out = [&](const std::string& id) {
        const auto& other = part.selected.left_out;
        return std::find(other.begin(), other.end(), id) != other.end();
    };
    auto& left_out = pool.selected.left_out;
    left_out.erase(std::remove_if(left_out.begin(), left_out.end(), [&](const auto& id) { return !still_out(id); }),
                   left_out.end());
}

} // namespace detail

/// Pools baselines of one device as sessions and epochs of one side: sessions are appended in the order given,
/// results united by (id, metric), the environment is that of the last one. A result that failed anywhere is failed;
/// one that was skipped in some and measured in others keeps what was measured. Noise is estimated anew wherever the
/// pool has enough sessions and epochs. Throws usage_error for an empty list, for baselines of different devices or
/// hardware, for a session that is given twice, and where an id stands for different workloads, units, directions or
/// backends.
[[nodiscard]] inline result::baseline merge(const std::vector<result::baseline>& parts, const policy& rules = {}) {
    if (parts.empty()) throw usage_error("no baseline was given: name at least one file");
    result::baseline pool = parts.front();
    for (std::size_t i = 1; i < parts.size(); ++i) detail::add_part(pool, parts[i]);
    if (parts.size() > 1) {
        for (const auto& [name, noise] : estimate_noise(pool, rules)) pool.noise[name] = noise;
    }
    return pool;
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
