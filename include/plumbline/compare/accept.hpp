// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_ACCEPT_HPP
#define PLUMBLINE_COMPARE_ACCEPT_HPP

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "plumbline/compare/compare.hpp"
#include "plumbline/compare/merge.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

namespace detail {

/// The results that an acceptance moves; throws usage_error for an id that cannot be moved, and for a choice that
/// would let a baseline ratchet on lucky runs.
[[nodiscard]] inline std::set<key> choose_accepted(const comparison& found, const std::vector<std::string>& ids) {
    const std::set<std::string> wanted(ids.begin(), ids.end());
    std::set<std::string> unknown = wanted;
    std::set<key> chosen;
    bool improvement = false;
    bool anything_else = false;
    std::string left_behind;
    for (const auto& f : found.findings) {
        unknown.erase(f.id);
        const bool movable = is_tested(f.outcome) || f.outcome == verdict::new_benchmark;
        const bool asked = wanted.count(f.id) != 0;
        if (asked && !movable) {
            throw usage_error("'" + f.id + "' cannot be accepted: it is " + to_string(f.outcome) +
                              (f.reasons.empty() ? std::string() : " (" + f.reasons.front().text + ")"));
        }
        if (movable && (asked || wanted.empty())) {
            chosen.insert({f.id, f.metric});
            (f.outcome == verdict::improved ? improvement : anything_else) = true;
        } else if (f.outcome == verdict::regressed) {
            left_behind = f.id;
        }
    }
    if (!unknown.empty())
        throw usage_error("no result '" + *unknown.begin() + "' in either file; bench-compare lists them");
    if (chosen.empty())
        throw usage_error("nothing can be accepted: the files have no comparable result; compare them to see why");
    if (!wanted.empty() && improvement && (!anything_else || !left_behind.empty())) {
        throw usage_error("improvements alone are not accepted" +
                          (left_behind.empty() ? std::string() : " while '" + left_behind + "' regressed") +
                          ": a baseline that only ever gets faster makes the next ordinary run a regression; accept "
                          "the whole run");
    }
    return chosen;
}

} // namespace detail

/// Moves the results of `accepted` into `base`: those named by `ids`, or all that can be compared and the new ones
/// when `ids` is empty. The moved results bring their sessions along, the others keep theirs, sessions that nobody
/// needs any more are dropped, and an event "accepted" with the moved ids records who, when and why (`why`; its `what`
/// and `ids` are set here). When nothing of the old base is left, environment, tool, labels and checks move too.
/// Throws usage_error without a reason, for baselines of different devices, for an id that cannot be moved, and when
/// `ids` names improvements only or leaves a regression behind.
[[nodiscard]] inline result::baseline accept(const result::baseline& base, const result::baseline& accepted,
                                             const std::vector<std::string>& ids, result::event why,
                                             const policy& rules = {}) {
    if (why.reason.empty()) throw usage_error("accepting needs a reason: say --reason=TEXT");
    detail::require_same_device(base, accepted);
    const auto chosen = detail::choose_accepted(compare(base, accepted, rules), ids);
    result::baseline into = base;
    into.sessions.clear();
    into.results.clear();
    detail::session_mover old_sessions(into, base);
    detail::session_mover new_sessions(into, accepted);
    bool old_left = false;
    for (const auto& r : base.results) {
        if (chosen.count({r.what.id, r.what.metric}) != 0) continue;
        into.results.push_back(old_sessions.move(r));
        old_left = true;
    }
    std::set<std::string> moved;
    for (const auto& r : accepted.results) {
        if (chosen.count({r.what.id, r.what.metric}) == 0) continue;
        into.results.push_back(new_sessions.move(r));
        into.noise.erase(noise_key(r.what.id, r.what.metric)); // it was that of the old sessions
        moved.insert(r.what.id);
    }
    for (const auto& [name, noise] : estimate_noise(into, rules)) into.noise[name] = noise;
    if (!old_left) {
        into.environment = accepted.environment;
        into.tool = accepted.tool;
        into.labels = accepted.labels;
        into.checks = accepted.checks;
    }
    why.what = "accepted";
    why.ids.assign(moved.begin(), moved.end());
    into.history.push_back(std::move(why));
    return into;
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
