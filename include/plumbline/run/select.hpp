// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_SELECT_HPP
#define PLUMBLINE_RUN_SELECT_HPP

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/core/nearest.hpp"
#include "plumbline/json/suite.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/workload/modes.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// The ids a run is asked to measure, and what its baseline says about the choice.
struct chosen {
    std::vector<std::string> ids;
    result::selection selected;
};

/// Whether an id passes a filter: a regular expression searched for in the id, as in Google Benchmark; with a leading
/// '-', ids that do not match. Throws usage_error for what is not a regular expression.
class id_filter {
public:
    explicit id_filter(const std::string& text) : negative_(!text.empty() && text[0] == '-'), all_(text.empty()) {
        try {
            if (!all_) pattern_ = std::regex(text.substr(negative_ ? 1 : 0));
        } catch (const std::regex_error& e) {
            throw usage_error("--filter='" + text + "' is not a regular expression (" + e.what() +
                              "); write one such as 'gemm/(fp32|bf16)'");
        }
    }

    [[nodiscard]] bool operator()(const std::string& id) const {
        return all_ || std::regex_search(id, pattern_) != negative_;
    }

private:
    bool negative_;
    bool all_;
    std::regex pattern_;
};

/// The suite that `--suite` names: a built-in one by its name, else a file. Throws usage_error for a name that is
/// neither, file_error and schema_error for the file.
[[nodiscard]] inline workload::suite find_suite(const std::string& name,
                                                const std::map<std::string, std::string>& built_in) {
    const auto at = built_in.find(name);
    if (at != built_in.end()) return json::parse_suite(at->second, "built-in suite " + name);
    if (std::filesystem::exists(name)) return json::load_suite(name);
    std::string known;
    std::vector<std::string> names;
    for (const auto& each : built_in) {
        known += (known.empty() ? "" : ", ") + each.first;
        names.push_back(each.first);
    }
    const std::string meant = nearest(name, names);
    throw usage_error("no suite and no file is called '" + name + "'" +
                      (meant.empty() ? "" : "; did you mean '" + meant + "'?") + " (built in: " + known +
                      "; a file's path works too)");
}

/// Applies the filter to ids and writes down what it left out. Nothing left is plumbline::error with exit code 4.
[[nodiscard]] inline chosen select(const std::vector<std::string>& ids, const std::string& suite,
                                   const std::string& filter) {
    const id_filter passes(filter);
    chosen made;
    made.selected.suite = suite;
    made.selected.filter = filter;
    for (const std::string& id : ids) (passes(id) ? made.ids : made.selected.left_out).push_back(id);
    if (made.ids.empty()) {
        throw error(ids.empty() ? "there is nothing to run in " + suite +
                                      ": it lists no benchmark for this backend; choose another "
                                      "--suite or --backend"
                                : "nothing matched: none of the " + std::to_string(ids.size()) + " benchmarks of " +
                                      suite + " passes --filter='" + filter + "' (--list shows them)",
                    exit_code::incomplete);
    }
    return made;
}

/// Adds to `to`, behind each benchmark that times the library's own choice, the one that times the best plan, where
/// `has_plans` says that there are plans (--search). Sustained ones are left alone.
template <class HasPlans>
void add_searches(chosen& to, HasPlans has_plans) {
    std::vector<std::string> all;
    for (const std::string& id : to.ids) {
        all.push_back(id);
        const workload::modes mode = workload::split_modes(id).mode;
        if (mode.plan != workload::plan_choice::heuristic || mode.sustained || !has_plans(id)) continue;
        const std::string best = workload::with_plan(id, workload::plan_choice::best);
        if (std::find(to.ids.begin(), to.ids.end(), best) == to.ids.end()) all.push_back(best);
    }
    to.ids = std::move(all);
}

/// The ids of a stored baseline, in the order of its results, each once: what --compare and --append run.
[[nodiscard]] inline std::vector<std::string> ids_of(const result::baseline& of) {
    std::vector<std::string> ids;
    std::map<std::string, bool> seen;
    for (const result::result& each : of.results) {
        if (!seen[each.what.id]) ids.push_back(each.what.id);
        seen[each.what.id] = true;
    }
    return ids;
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
