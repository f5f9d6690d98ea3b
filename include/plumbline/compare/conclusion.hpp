// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_CONCLUSION_HPP
#define PLUMBLINE_COMPARE_CONCLUSION_HPP

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "plumbline/compare/comparison.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare::detail {

/// What is left to say when causes do not cover everything; `asked` verdicts wanted an explanation.
[[nodiscard]] inline std::string what_remains(const explanation& so_far, const comparison& from, std::size_t asked) {
    if (so_far.unexplained.empty()) return {};
    const bool changed = std::any_of(from.environment.begin(), from.environment.end(), [](const auto& d) {
        return d.changed() && d.kind == result::attribute_class::config;
    });
    const std::string which = so_far.unexplained.size() == asked
                                  ? std::string()
                                  : " for " + std::to_string(so_far.unexplained.size()) + " of them";
    std::string text = changed ? "nothing that changed explains it" + which : "nothing recorded changed" + which;
    if (so_far.canary == canary_state::unchanged) {
        // Code without any library is as fast as before on this very device: it is not the node.
        text += ", and the device itself runs as before: suspect other work on the host and what no fingerprint sees";
    } else {
        text += changed ? ": suspect the node or what no fingerprint sees" : ": suspect the node";
    }
    return text + "; run it on a sibling, then bench-compare --siblings DIR NEW";
}

/// Finds the verdicts that no cause covers, among those that any speaks of and those unexplained so far, and says what
/// remains to be said about them.
inline void settle_unexplained(explanation& why, const comparison& from) {
    std::set<std::pair<std::string, std::string>> asked(why.unexplained.begin(), why.unexplained.end()), covered;
    for (const cause& each : why.set_aside) {
        for (const covered_result& one : each.covers) asked.emplace(one.id, one.metric);
    }
    for (const cause& each : why.causes) {
        for (const covered_result& one : each.covers) covered.emplace(one.id, one.metric);
    }
    asked.insert(covered.begin(), covered.end());
    why.unexplained.clear();
    for (const finding& each : from.findings) {
        const std::pair name(each.id, each.metric);
        if (asked.count(name) != 0 && covered.count(name) == 0) why.unexplained.push_back(name);
    }
    why.conclusion = what_remains(why, from, asked.size());
}

} // namespace compare::detail

PLUMBLINE_NAMESPACE_END

#endif
