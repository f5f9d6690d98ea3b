// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_BOARD_HPP
#define PLUMBLINE_COMPARE_BOARD_HPP

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plumbline/compare/estimate.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// Whether a benchmark's speed follows the board's compute factor (clock under matrix load): by its FLOP per byte, or
/// as the policy's rules say.
[[nodiscard]] inline bool is_compute_bound(const workload::description& what, std::optional<bool> by_rule,
                                           const policy& rules) {
    if (by_rule) return *by_rule;
    if (what.flop <= 0) return false;
    return what.flop >= rules.compute_intensity * what.bytes;
}

namespace detail {

/// The boards that the sessions of a baseline ran on; unknown ones are left out.
[[nodiscard]] inline std::set<std::string> boards(const result::baseline& of) {
    std::set<std::string> found;
    for (const auto& s : of.sessions) {
        if (!s.when.board.empty()) found.insert(s.when.board);
    }
    return found;
}

/// True when both sides know their boards and have none in common.
[[nodiscard]] inline bool on_other_board(const result::baseline& base, const result::baseline& candidate) {
    const auto before = boards(base);
    const auto after = boards(candidate);
    if (before.empty() || after.empty()) return false;
    return std::none_of(after.begin(), after.end(), [&](const auto& board) { return before.count(board) != 0; });
}

/// The machine code a benchmark ran, as its evidence says it; empty when unknown or not the same in all sessions.
[[nodiscard]] inline std::string code_hash(const observations& side) {
    std::string hash;
    for (const auto& o : side) {
        const auto at = o.measured->ran.parts.find("code_hash");
        if (at == o.measured->ran.parts.end()) return {};
        const std::string text = plumbline::to_string(at->second);
        if (!hash.empty() && text != hash) return {};
        hash = text;
    }
    return hash;
}

/// Whether a pair is the compute canary of the policy.
[[nodiscard]] inline bool is_canary(const candidate_pair& pair, const policy& rules) {
    return pair.found.metric == "time" && glob_matches(rules.compute_canary, pair.found.id);
}

/// Estimates how much slower the candidate's board computes, from the library-free canary. Boards of one H200 model
/// differ by 1.1 to 1.4 % in dense matrix work and not at all in memory-bound work.
[[nodiscard]] inline board_factor estimate_board_factor(const std::vector<candidate_pair>& pairs,
                                                        const result::baseline& base, const result::baseline& candidate,
                                                        const policy& rules) {
    board_factor factor;
    factor.base_board = *boards(base).begin();
    factor.candidate_board = *boards(candidate).begin();
    const auto canary = std::find_if(pairs.begin(), pairs.end(),
                                     [&](const auto& pair) { return pair.testable && is_canary(pair, rules); });
    if (canary == pairs.end()) {
        factor.problem = "no benchmark " + rules.compute_canary +
                         " in both files: compute-bound results of two boards " +
                         "are compared with the spread between boards in their error";
        return factor;
    }
    const std::string before = code_hash(canary->base);
    const std::string after = code_hash(canary->candidate);
    if (before.empty() || before != after) {
        factor.problem =
            canary->found.id + " is not known to be the same machine code in both files and cannot be " + "the measure";
        return factor;
    }
    const auto yb = costs(canary->base);
    const auto yc = costs(canary->candidate);
    bool measured = false;
    const yardstick used = choose_yardstick(*canary->base_result, base, stats::median(all_values(canary->base)),
                                            canary->in, false, {}, rules, measured);
    factor.canary = canary->found.id;
    factor.shift = stats::hodges_lehmann(yb, yc).shift;
    factor.se = stats::moderated_shift(yb, yc, prior_of(used)).se;
    factor.red = factor.shift > std::log1p(rules.board_factor_limit);
    return factor;
}

} // namespace detail

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
