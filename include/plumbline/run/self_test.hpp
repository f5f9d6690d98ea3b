// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_SELF_TEST_HPP
#define PLUMBLINE_RUN_SELF_TEST_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/compare/compare.hpp"
#include "plumbline/compare/merge.hpp"
#include "plumbline/run/compare_command.hpp"
#include "plumbline/run/self_test_summary.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

namespace detail {

/// The sides of a self-test, all of this program: two with a spin of no length, which must not differ, then one for
/// each planted slowdown.
inline constexpr double self_test_shares[] = {0, 0, 0.01, 0.02, 0.05};

[[nodiscard]] inline std::vector<side> self_test_sides(const context& in, const target_device& device,
                                                       const measure_plan& plan) {
    std::vector<side> sides;
    const std::string stem = (plan.target.parent_path() / plan.target.stem()).string();
    for (std::size_t i = 0; i < std::size(self_test_shares); ++i) {
        measure_plan each = plan;
        if (i > 0) each.target = stem + ".side" + std::to_string(i + 1) + ".json";
        sides.push_back(make_side(in, device, each, i == 0));
        sides.back().how.planted = self_test_shares[i];
    }
    return sides;
}

/// Both halves of the A/A experiment as one baseline: with at least ten sessions it carries measured noise.
[[nodiscard]] inline result::baseline pooled(const side& a, const side& b) {
    std::vector<result::baseline> parts{a.made, b.made};
    for (result::baseline& part : parts) {
        for (result::session& each : part.sessions) each.control.clear();
    }
    return compare::merge(parts);
}

/// Puts measured noise into the device's baseline, where there is one; its results stay as they are.
inline void store_noise(const context& in, const target_device& device, const result::baseline& measured) {
    const std::filesystem::path path = baseline_path(in.folder(), device.device);
    if (measured.noise.empty() || !std::filesystem::exists(path)) return;
    const file_lock lock(path);
    result::baseline stored = json::load(path);
    for (const auto& [id, noise] : measured.noise) {
        result::noise& into = stored.noise[id];
        into.s0 = noise.s0;
        into.d0 = noise.d0;
        into.sessions = noise.sessions;
    }
    stored.history.push_back({utc_text(std::time(nullptr)), "noise", user_name(in), "measured by --self-test", {}});
    json::save(path, stored);
    in.remarks.note("noise figures are in " + path.string());
}

/// All comparisons of a self-test in one document: {"same": comparison, "planted": [{"share", "comparison"}, ...]}.
[[nodiscard]] inline std::string self_test_json(const compare::comparison& same,
                                                const std::vector<std::pair<double, compare::comparison>>& planted) {
    const compare::policy rules;
    std::string text = "{\"same\": " + json::dump(same, rules, {"A"}, {"B"}) + ",\n\"planted\": [";
    for (std::size_t i = 0; i < planted.size(); ++i) {
        text += (i == 0 ? "\n" : ",\n") + std::string("{\"share\": ") + to_string(scalar(planted[i].first)) +
                ", \"comparison\": " + json::dump(planted[i].second, rules, {"A"}, {"planted"}) + "}";
    }
    return text + "]}\n";
}

} // namespace detail

/// `bench --self-test` on one device: measures the same program against itself and against itself with planted
/// slowdowns, all interleaved, and prints what this machine's noise allows. Exit code 4 when two equal halves were
/// told apart.
[[nodiscard]] inline exit_code self_test_command(const context& in, const target_device& device) {
    measure_plan plan;
    plan.what = choose_benchmarks(in, "quick");
    plan.target = run_target(in, device);
    plan.budget_s = default_budget_s("quick");
    plan.sessions = in.how.sessions.value_or(5);
    check_outputs(in, plan.target);
    const file_lock lock(plan.target);
    std::vector<side> sides = detail::self_test_sides(in, device, plan);
    const preflight_outcome before = preflight(in, device, {}, plan.target);
    if (const auto signal = in.signals.taken()) return say_interrupted(in, *signal, plan.target);
    if (const auto signal = run_campaign(in, device, sides, plan, true)) {
        return say_interrupted(in, *signal, plan.target);
    }
    result::baseline both = detail::pooled(sides[0], sides[1]);
    // What this machine's own noise allows is the question, so it replaces the policy's assumptions where it is known.
    for (side& each : sides) each.made.noise = both.noise;
    std::vector<std::pair<double, compare::comparison>> planted;
    for (std::size_t i = 2; i < sides.size(); ++i) {
        planted.emplace_back(detail::self_test_shares[i], compare::compare(sides[0].made, sides[i].made));
    }
    const compare::comparison same = compare::compare(sides[0].made, sides[1].made);
    keep_preflight(both, before);
    json::save(plan.target, both);
    for (const side& each : sides) remove_leftovers(each.target);
    detail::store_noise(in, device, both);
    const self_test_summary summary = summarise_self_test(same, planted);
    write_report(in, in.how.format == output_format::json ? detail::self_test_json(same, planted)
                                                          : self_test_text(summary));
    in.remarks.note("the sessions without a slowdown are kept as " + plan.target.string());
    return worse(code_of(both), summary.false_alarms > 0 ? exit_code::incomplete : exit_code::ok);
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
