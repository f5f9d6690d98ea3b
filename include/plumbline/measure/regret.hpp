// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_REGRET_HPP
#define PLUMBLINE_MEASURE_REGRET_HPP

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/measure/tally.hpp"
#include "plumbline/result/result.hpp"
#include "plumbline/stats/descriptive.hpp"
#include "plumbline/workload/modes.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// The metric of what a search is for.
inline constexpr const char* regret_metric = "heuristic_regret";

/// The heuristic regret of each benchmark that one session measured with the library's own choice and with the best
/// plan: time of the one over time of the other, as a result of its own beside the best plan's. 1 is a perfect choice;
/// the noise of both is in it, so a little less is possible. An update that raises it changed the library's choice; one
/// that raises the best's time changed kernels.
[[nodiscard]] inline std::vector<result::result> regrets(const std::vector<result::result>& session) {
    using workload::plan_choice;
    std::map<std::string, const result::result*> times;
    for (const result::result& each : session) {
        const bool usable = each.status == result::result_status::ok && each.sessions.size() == 1;
        if (usable && each.what.metric == "time" && !each.sessions[0].samples.empty()) times[each.what.id] = &each;
    }
    std::vector<result::result> found;
    for (const auto& [id, best] : times) {
        if (workload::split_modes(id).mode.plan != plan_choice::best) continue;
        const auto chosen = times.find(workload::with_plan(id, plan_choice::heuristic));
        if (chosen == times.end()) continue;
        const result::session_result& own = chosen->second->sessions[0];
        const result::session_result& searched = best->sessions[0];
        result::result regret = *best;
        regret.what.metric = regret_metric;
        regret.what.unit = "1";
        regret.what.better = direction::lower;
        regret.what.flop = regret.what.bytes = 0;
        regret.verified = best->verified && chosen->second->verified;
        result::session_result ratio;
        ratio.session = searched.session;
        ratio.samples = {stats::median(own.samples) / stats::median(searched.samples)};
        const bool same = own.ran.implementation == searched.ran.implementation;
        ratio.ran.implementation = own.ran.implementation + (same ? "" : " over " + searched.ran.implementation);
        ratio.ran.parts = {{"chosen", own.ran.implementation}, {"best", searched.ran.implementation}};
        for (const result::session_result* each : {&own, &searched}) {
            for (const std::string& flag : each->flags) {
                if (flag == result::flag::throttled || flag == result::flag::foreign_load) add_flag(ratio, flag);
            }
        }
        regret.sessions = {std::move(ratio)};
        found.push_back(std::move(regret));
    }
    return found;
}

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
