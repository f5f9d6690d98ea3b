// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_TRIAL_HPP
#define PLUMBLINE_COMPARE_TRIAL_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/compare/comparison.hpp"
#include "plumbline/compare/conclusion.hpp"
#include "plumbline/compare/observation.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// A result by name: id and metric.
using result_name = std::pair<std::string, std::string>;

/// What one session of an experiment measured: ln of the cost of each result that gave a number.
using leg = std::map<result_name, double>;

/// The numbers of a session, as costs: ln(value), negated where higher is better.
[[nodiscard]] inline leg read_leg(const result::baseline& from) {
    leg made;
    for (const result::result& each : from.results) {
        if (each.status != result::result_status::ok || each.sessions.empty()) continue;
        const double value = session_value(each.sessions.front());
        if (!(value > 0) || !std::isfinite(value)) continue;
        made[{each.what.id, each.what.metric}] =
            each.what.better == direction::lower ? std::log(value) : -std::log(value);
    }
    return made;
}

/// An experiment on one cause, once or more often: sessions as things are now, as they were, and as they are now.
struct alternation {
    leg before; ///< as now
    leg old;    ///< with the old setting
    leg after;  ///< as now again
};

namespace detail {

/// Whether a result got at least half of its slowdown back under the old setting and lost it again, in each round.
/// What could not run counts as lost, what runs again as recovered.
[[nodiscard]] inline bool came_and_went(const std::vector<alternation>& rounds, const result_name& name, double share) {
    return !rounds.empty() && std::all_of(rounds.begin(), rounds.end(), [&](const alternation& round) {
        const auto old = round.old.find(name);
        if (old == round.old.end()) return false;
        for (const leg* now : {&round.before, &round.after}) {
            const auto at = now->find(name);
            if (at != now->end() && (share <= 0 || at->second - old->second < share / 2)) return false;
        }
        return true;
    });
}

/// How far a result moved between the two settings, on average: positive is faster with the old one.
[[nodiscard]] inline double mean_gain(const std::vector<alternation>& rounds, const result_name& name) {
    double sum = 0;
    std::size_t count = 0;
    for (const alternation& round : rounds) {
        const auto old = round.old.find(name), before = round.before.find(name), after = round.after.find(name);
        if (old == round.old.end() || before == round.before.end() || after == round.after.end()) continue;
        sum += (before->second + after->second) / 2 - old->second;
        ++count;
    }
    return count == 0 ? 0 : sum / static_cast<double>(count);
}

} // namespace detail

/// Judges an experiment on a cause. `tried` are the results it covers that were run; `sentinels` others that it does
/// not touch and that had not changed: if they move with the setting by half as much as the results, it was the machine
/// that moved. Recovered and lost again in most of the results: proven. In none: cleared. Else undecided, and also
/// where nothing recovered while something else held the sessions back: `disturbed` says what, or is empty.
[[nodiscard]] inline trial judge(const std::vector<alternation>& rounds, const std::vector<covered_result>& tried,
                                 const std::vector<result_name>& sentinels, const std::string& disturbed = {}) {
    trial made;
    made.tried = tried.size();
    double smallest = 0;
    std::size_t moved = 0;
    for (const covered_result& each : tried) {
        const result_name name{each.id, each.metric};
        made.recovered += detail::came_and_went(rounds, name, each.share);
        if (each.share > 0 && (smallest == 0 || each.share < smallest)) smallest = each.share;
        moved += each.share > 0 && detail::mean_gain(rounds, name) > each.share / 4;
    }
    const auto restless = std::count_if(sentinels.begin(), sentinels.end(), [&](const result_name& name) {
        return smallest > 0 && std::abs(detail::mean_gain(rounds, name)) > smallest / 2;
    });
    const std::string score = std::to_string(made.recovered) + " of " + std::to_string(made.tried);
    const std::string others =
        sentinels.empty() ? "" : "; " + std::to_string(sentinels.size()) + " unaffected beside it did not move";
    if (rounds.empty() || tried.empty()) {
        made.result = trial::outcome::not_tried;
        made.text = "not tried: nothing it covers could be run";
    } else if (restless > 0) {
        made.result = trial::outcome::undecided;
        made.text = "set back and forth: " + std::to_string(restless) + " of " + std::to_string(sentinels.size()) +
                    " unaffected results moved too, so the machine is not steady enough to prove anything";
    } else if (3 * made.recovered >= 2 * made.tried && made.recovered > 0) {
        made.result = trial::outcome::proven;
        made.text = "set back and forth: " + score +
                    " recovered with the old setting and were lost again with the new" + others;
    } else if (made.recovered == 0 && moved == 0 && !disturbed.empty()) {
        made.result = trial::outcome::undecided;
        made.text =
            "set back: nothing recovered (0 of " + std::to_string(made.tried) + "), which proves nothing: " + disturbed;
    } else if (made.recovered == 0 && moved == 0) {
        made.result = trial::outcome::cleared;
        made.text = "set back: nothing recovered (0 of " + std::to_string(made.tried) + ")";
    } else {
        made.result = trial::outcome::undecided;
        made.text = "set back and forth: only " + score + " recovered and were lost again, which proves nothing";
    }
    return made;
}

/// Puts the outcome of experiments into an explanation: what was proven comes first, what recovered nothing is no
/// longer blamed, and a mere association gives way to a proof that covers the same. What then remains unexplained is
/// said anew.
inline void conclude_trials(comparison& found) {
    explanation& why = found.why;
    std::vector<cause> proven, open, aside;
    for (auto* list : {&why.causes, &why.set_aside}) {
        for (cause& each : *list) {
            const auto outcome = each.tried ? each.tried->result : trial::outcome::not_tried;
            if (outcome == trial::outcome::proven) {
                each.how_sure = strength::confirmed;
                each.set_aside.clear();
                proven.push_back(std::move(each));
            } else if (outcome == trial::outcome::cleared) {
                each.how_sure = strength::associated;
                each.set_aside = each.tried->text;
                aside.push_back(std::move(each));
            } else {
                (list == &why.causes ? open : aside).push_back(std::move(each));
            }
        }
    }
    why.causes = std::move(proven);
    const std::size_t proofs = why.causes.size();
    for (cause& each : open) {
        const cause* better = nullptr;
        for (std::size_t i = 0; i < proofs && each.how_sure == strength::associated; ++i) {
            const auto& theirs = why.causes[i].covers;
            const bool all = std::all_of(each.covers.begin(), each.covers.end(), [&](const covered_result& mine) {
                return std::any_of(theirs.begin(), theirs.end(), [&](const covered_result& other) {
                    return other.id == mine.id && other.metric == mine.metric && other.share >= 0.7 * mine.share;
                });
            });
            if (all) better = &why.causes[i];
        }
        if (better != nullptr) each.set_aside = "it fits, but " + better->name + " is proven to be the cause";
        if (better != nullptr)
            aside.push_back(std::move(each));
        else
            why.causes.push_back(std::move(each));
    }
    why.set_aside = std::move(aside);
    detail::settle_unexplained(why, found);
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
