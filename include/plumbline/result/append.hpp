// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RESULT_APPEND_HPP
#define PLUMBLINE_RESULT_APPEND_HPP

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace result {

/// Adds sessions and results of `part` behind those of `into`: session indices are moved, a result of an (id, metric)
/// that `into` has goes to `unite(there, part's)`, any other is added as it is. The largest ceilings win. Whether the
/// two may be put together, and everything else a baseline has, is for the caller.
template <class Unite>
void append_sessions(baseline& into, baseline part, Unite&& unite) {
    const std::size_t offset = into.sessions.size();
    std::move(part.sessions.begin(), part.sessions.end(), std::back_inserter(into.sessions));
    for (const auto& [name, value] : part.device.ceilings) {
        double& best = into.device.ceilings[name];
        best = std::max(best, value);
    }
    std::map<std::pair<std::string, std::string>, std::size_t> places;
    for (std::size_t i = 0; i < into.results.size(); ++i) {
        places.emplace(std::pair(into.results[i].what.id, into.results[i].what.metric), i);
    }
    for (result& each : part.results) {
        for (session_result& one : each.sessions) one.session += offset;
        const auto at = places.find({each.what.id, each.what.metric});
        if (at != places.end()) {
            unite(into.results[at->second], std::move(each));
        } else {
            into.results.push_back(std::move(each));
        }
    }
}

} // namespace result

PLUMBLINE_NAMESPACE_END

#endif
