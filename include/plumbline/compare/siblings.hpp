// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_SIBLINGS_HPP
#define PLUMBLINE_COMPARE_SIBLINGS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/compare/gate.hpp"
#include "plumbline/compare/policy.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// One machine among machines of its kind.
struct sibling {
    std::string name;      ///< as given: a file name
    std::size_t rank = 0;  ///< 1 is the fastest
    std::size_t pairs = 0; ///< results it shares with at least one other
    double ratio = 1;      ///< geometric mean of its cost over the median of the others; above 1 is slower
    bool odd = false;      ///< stands apart from the others by more than their spread and policy::board_factor_limit
    bool subject = false;  ///< the machine that is being judged
    /// Results in which it stands apart by more than the others' spread and the margin, worst first: id (and metric
    /// if it is not the time), cost over the median of the others.
    std::vector<std::pair<std::string, double>> outstanding;
};

/// Machines of one kind, fastest first, and those left out with the reason.
struct ranking {
    std::vector<sibling> machines;
    std::vector<std::pair<std::string, std::string>> left_out;
};

namespace detail {

/// Cost (y, in base units of the dimension) and margin of one result on one machine.
struct sibling_value {
    double cost = 0;
    double margin = 0; ///< ln(1 + m)
};

/// The usable results of a machine by id, metric and workload: only equal work is ranked.
[[nodiscard]] inline std::map<std::string, sibling_value> sibling_values(const result::baseline& of,
                                                                         const policy& rules) {
    std::map<std::string, sibling_value> values;
    for (const auto& r : of.results) {
        const auto in = find_unit(r.what.unit);
        if (!in || r.status != result::result_status::ok || !faults(r, of, "", rules).empty()) continue;
        const rule own = rules_for(rules, r.what.id, r.what.metric);
        const double margin = own.margin.value_or(class_rules(rules, class_name(r)).margin);
        values[noise_key(r.what.id, r.what.metric) + '\n' + r.what.hash()] = {
            stats::median(costs(observe(r, of, in->factor))), std::log1p(margin)};
    }
    return values;
}

/// How far `value` is from the others, and whether that is more than their robust spread (three times 1.4826 MAD) and
/// `margin`. With a single other nobody can say which of the two is odd.
[[nodiscard]] inline std::pair<double, bool> apart(double value, const std::vector<double>& others, double margin) {
    const double distance = value - stats::median(others);
    const double spread = 3 * 1.4826 * stats::mad(others);
    return {distance, others.size() >= 2 && std::abs(distance) > std::max(margin, spread)};
}

/// Compares machine `i` with all others, result by result.
[[nodiscard]] inline sibling judge(std::size_t i, const std::vector<std::map<std::string, sibling_value>>& values) {
    sibling found;
    double sum = 0;
    for (const auto& [name, mine] : values[i]) {
        std::vector<double> others;
        for (std::size_t j = 0; j < values.size(); ++j) {
            const auto at = values[j].find(name);
            if (j != i && at != values[j].end()) others.push_back(at->second.cost);
        }
        if (others.empty()) continue;
        const auto [distance, stands_apart] = apart(mine.cost, others, mine.margin);
        sum += distance;
        ++found.pairs;
        if (stands_apart) found.outstanding.emplace_back(name.substr(0, name.find('\n')), std::exp(distance));
    }
    if (found.pairs > 0) found.ratio = std::exp(sum / static_cast<double>(found.pairs));
    std::sort(found.outstanding.begin(), found.outstanding.end(),
              [](const auto& a, const auto& b) { return a.second > b.second; });
    return found;
}

} // namespace detail

/// Ranks `subject` among its siblings, each by its own numbers: machines are never pooled. Machines of other hardware
/// and machines without a common result are left out and named.
[[nodiscard]] inline ranking rank_siblings(const std::vector<std::pair<std::string, result::baseline>>& others,
                                           const std::pair<std::string, result::baseline>& subject,
                                           const policy& rules = {}) {
    ranking found;
    std::vector<std::string> names{subject.first};
    std::vector<std::map<std::string, detail::sibling_value>> values{detail::sibling_values(subject.second, rules)};
    for (const auto& [name, machine] : others) {
        const auto different = detail::hardware_differences(subject.second, machine);
        if (!different.empty()) {
            found.left_out.emplace_back(name, "other hardware: " + different.front());
            continue;
        }
        names.push_back(name);
        values.push_back(detail::sibling_values(machine, rules));
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
        sibling machine = detail::judge(i, values);
        machine.name = names[i];
        machine.subject = i == 0;
        if (machine.pairs == 0) {
            found.left_out.emplace_back(names[i], "no result in common with another machine");
        } else {
            found.machines.push_back(std::move(machine));
        }
    }
    std::stable_sort(found.machines.begin(), found.machines.end(),
                     [](const sibling& a, const sibling& b) { return a.ratio < b.ratio; });
    for (std::size_t i = 0; i < found.machines.size(); ++i) {
        std::vector<double> rest;
        for (std::size_t j = 0; j < found.machines.size(); ++j) {
            if (j != i) rest.push_back(std::log(found.machines[j].ratio));
        }
        auto& machine = found.machines[i];
        machine.rank = i + 1;
        if (rest.empty()) continue;
        machine.odd = detail::apart(std::log(machine.ratio), rest, std::log1p(rules.board_factor_limit)).second;
    }
    return found;
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
