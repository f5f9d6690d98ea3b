// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_SELF_TEST_SUMMARY_HPP
#define PLUMBLINE_RUN_SELF_TEST_SUMMARY_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/compare/comparison.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// What became of one planted slowdown of one benchmark.
struct planted_outcome {
    double share = 0;                                     ///< planted, as a fraction
    std::optional<double> seen;                           ///< measured, as a fraction; empty where there is no pair
    bool proven = false;                                  ///< its 95 % interval excludes no change
    compare::verdict verdict = compare::verdict::invalid; ///< with the margin of its class
};

/// One benchmark of a self-test.
struct self_test_row {
    std::string id;
    std::string metric;
    double spread = 0;              ///< sd of ln(value) between sessions, the larger of the two halves
    double smallest_detectable = 0; ///< fraction, with 80 % power; 0 where there is no estimate
    compare::verdict same = compare::verdict::invalid; ///< of the two equal halves
    std::vector<planted_outcome> planted;
};

/// What a self-test has shown.
struct self_test_summary {
    std::vector<self_test_row> rows; ///< in the order of the comparison of the equal halves
    std::size_t false_alarms = 0;    ///< rows whose equal halves were called regressed or improved
    std::size_t equivalent = 0;
};

namespace detail {

[[nodiscard]] inline const compare::finding* find_finding(const compare::comparison& in, const self_test_row& row) {
    for (const compare::finding& each : in.findings) {
        if (each.id == row.id && each.metric == row.metric) return &each;
    }
    return nullptr;
}

[[nodiscard]] inline planted_outcome planted_outcome_of(double share, const compare::finding* found) {
    planted_outcome made;
    made.share = share;
    if (found == nullptr) return made;
    made.verdict = found->outcome;
    if (!found->effect) return made;
    made.seen = std::expm1(found->effect->hl);
    made.proven = found->effect->low95 > 0;
    return made;
}

} // namespace detail

/// Draws the table of a self-test from the comparison of its equal halves and those with planted slowdowns.
[[nodiscard]] inline self_test_summary
summarise_self_test(const compare::comparison& same,
                    const std::vector<std::pair<double, compare::comparison>>& planted) {
    self_test_summary made;
    for (const compare::finding& each : same.findings) {
        self_test_row row;
        row.id = each.id;
        row.metric = each.metric;
        row.spread = std::max(each.base.spread, each.candidate.spread);
        if (each.effect) row.smallest_detectable = compare::smallest_reported(each);
        row.same = each.outcome;
        for (const auto& [share, comparison] : planted) {
            row.planted.push_back(detail::planted_outcome_of(share, detail::find_finding(comparison, row)));
        }
        using compare::verdict;
        if (row.same == verdict::regressed || row.same == verdict::improved) ++made.false_alarms;
        if (row.same == verdict::equivalent) ++made.equivalent;
        made.rows.push_back(std::move(row));
    }
    return made;
}

/// The table for people: spread, smallest detectable change, verdict of the equal halves, and for each planted
/// slowdown what was measured ('*': the 95 % interval excludes no change; 'R': called a regression).
[[nodiscard]] inline std::string self_test_text(const self_test_summary& from) {
    char line[200];
    std::snprintf(line, sizeof line, "%-44s %8s %10s  %-13s", "benchmark", "spread", "detectable", "A/A");
    std::string text = line;
    if (!from.rows.empty()) {
        for (const planted_outcome& each : from.rows.front().planted) {
            std::snprintf(line, sizeof line, " %9.1f %%", each.share * 100);
            text += line;
        }
    }
    text += "\n";
    std::vector<std::pair<double, std::size_t>> proven;
    for (const self_test_row& row : from.rows) {
        const std::string name = row.id + (row.metric == "time" ? "" : ":" + row.metric);
        std::snprintf(line, sizeof line, "%-44s %6.2f %% %8.2f %%  %-13s", name.c_str(), row.spread * 100,
                      row.smallest_detectable * 100, compare::to_string(row.same));
        text += line;
        for (std::size_t i = 0; i < row.planted.size(); ++i) {
            const planted_outcome& each = row.planted[i];
            if (proven.size() <= i) proven.emplace_back(each.share, 0);
            if (each.proven) ++proven[i].second;
            const char* mark = each.verdict == compare::verdict::regressed ? "R" : each.proven ? "*" : " ";
            if (each.seen) std::snprintf(line, sizeof line, " %+8.2f %%%s", *each.seen * 100, mark);
            if (!each.seen) std::snprintf(line, sizeof line, " %11s", "-");
            text += line;
        }
        text += "\n";
    }
    const std::string all = std::to_string(from.rows.size());
    text += "equal halves: " + std::to_string(from.equivalent) + " of " + all + " equivalent, " +
            std::to_string(from.false_alarms) + " told apart wrongly\n";
    for (const auto& [share, count] : proven) {
        std::snprintf(line, sizeof line,
                      "planted %.1f %%: seen in %zu of %s (*: 95 %% interval excludes no change, "
                      "R: beyond the margin, called regressed)\n",
                      share * 100, count, all.c_str());
        text += line;
    }
    return text;
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
