// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_REPLAY_HPP
#define PLUMBLINE_COMPARE_REPLAY_HPP

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/compare/comparison.hpp"
#include "plumbline/compare/observation.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/workload/modes.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Pinned replay: a comparison that times the baseline's very plan again beside today's choice can tell a library that
/// chose otherwise from kernels, a driver or a machine that became slower.
namespace compare {

/// What the base would say about "pinned" benchmarks, had it had them: each of its results whose plan is `which`, under
/// the pinned id, with the sessions that ran the plan most of its sessions ran. The plan is their evidence. Results
/// without evidence of a plan are left out.
[[nodiscard]] inline std::vector<result::result> recorded_plans(const result::baseline& base,
                                                                workload::plan_choice which) {
    std::vector<result::result> found;
    for (const result::result& each : base.results) {
        const auto parts = workload::split_modes(each.what.id);
        const bool planned = each.what.params.count("plan") != 0 && parts.mode.plan == which;
        if (!planned || each.status != result::result_status::ok || each.what.metric != "time") continue;
        const auto all = detail::implementations(detail::observe(each, base, 1));
        if (all.empty()) continue;
        result::result pinned = each;
        pinned.what.id = workload::with_plan(each.what.id, workload::plan_choice::pinned);
        pinned.what.params["plan"] = std::string("pinned");
        pinned.sessions.clear();
        for (const result::session_result& one : each.sessions) {
            const bool usual = one.ran.implementation == all.front().name && !one.ran.parts.empty();
            if (usual) pinned.sessions.push_back(one);
        }
        if (!pinned.sessions.empty()) found.push_back(std::move(pinned));
    }
    return found;
}

/// Puts the recorded plans beside the base's own results, and takes away what could not be replayed: that is no fault
/// of the candidate. Returns a remark for each of those.
[[nodiscard]] inline std::vector<std::string> add_replayed(result::baseline& base, result::baseline& candidate,
                                                           const std::vector<result::result>& recorded) {
    std::vector<std::string> remarks;
    for (const result::result& each : recorded) {
        const auto of = [&](const result::result& r) { return r.what.id == each.what.id; };
        const auto measured = std::find_if(candidate.results.begin(), candidate.results.end(), of);
        const bool has_own = std::any_of(base.results.begin(), base.results.end(), of);
        if (measured == candidate.results.end() || has_own) continue;
        if (measured->status != result::result_status::skipped) {
            base.results.push_back(each);
            continue;
        }
        remarks.push_back("not replayed: " + measured->reason);
        candidate.results.erase(measured);
    }
    return remarks;
}

/// What the replayed plans say about today's, as notes of the comparison: for each regressed benchmark whose recorded
/// plan was timed again, whether that is slower too.
inline void note_replays(comparison& found, workload::plan_choice which) {
    std::map<std::string, const finding*> by_id;
    for (const finding& each : found.findings) {
        if (each.metric == "time") by_id[each.id] = &each;
    }
    for (const auto& [id, pinned] : by_id) {
        if (workload::split_modes(id).mode.plan != workload::plan_choice::pinned) continue;
        const std::string today = workload::with_plan(id, which);
        const auto chosen = by_id.find(today);
        if (chosen == by_id.end() || chosen->second->outcome != verdict::regressed) continue;
        if (pinned->outcome == verdict::equivalent || pinned->outcome == verdict::improved) {
            found.notes.push_back(today +
                                  ": the baseline's own plan is as fast as before: the library's choice is what "
                                  "became slower");
        } else if (pinned->outcome == verdict::regressed) {
            found.notes.push_back(today + ": the baseline's own plan is slower too: kernels, driver or machine, not "
                                          "the library's choice");
        }
    }
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
