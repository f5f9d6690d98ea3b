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
[[nodiscard]] inline std::vector<double> self_test_shares(const options& how) {
    std::vector<double> shares{0, 0};
    shares.insert(shares.end(), how.planted.begin(), how.planted.end());
    return shares;
}

/// The file of one side beside the file of the whole self-test: "FILE.side1.json" and so on.
[[nodiscard]] inline std::filesystem::path side_path(const std::filesystem::path& target, std::size_t index) {
    const std::string stem = (target.parent_path() / target.stem()).string();
    return stem + ".side" + std::to_string(index + 1) + ".json";
}

[[nodiscard]] inline std::vector<side> self_test_sides(const context& in, const target_device& device,
                                                       const measure_plan& plan) {
    std::vector<side> sides;
    const std::vector<double> shares = self_test_shares(in.how);
    for (std::size_t i = 0; i < shares.size(); ++i) {
        measure_plan each = plan;
        if (i > 0) each.target = side_path(plan.target, i);
        sides.push_back(make_side(in, device, each, i == 0));
        sides.back().how.planted = shares[i];
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
/// told apart. With --save the sessions of each side are kept too, as FILE.side1.json, ...: without a slowdown twice,
/// then one for each.
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
    if (const auto signal = run_campaign(in, device, sides, plan, before.start_s, true)) {
        return say_interrupted(in, *signal, plan.target);
    }
    result::baseline both = detail::pooled(sides[0], sides[1]);
    // What this machine's own noise allows is the question, so it replaces the policy's assumptions where it is known.
    for (side& each : sides) each.made.noise = both.noise;
    std::vector<std::pair<double, compare::comparison>> planted;
    for (std::size_t i = 2; i < sides.size(); ++i) {
        planted.emplace_back(sides[i].how.planted.value_or(0), compare::compare(sides[0].made, sides[i].made));
    }
    const compare::comparison same = compare::compare(sides[0].made, sides[1].made);
    keep_preflight(both, before);
    json::save(plan.target, both);
    for (std::size_t i = 0; i < sides.size(); ++i) {
        remove_leftovers(sides[i].target);
        if (!in.how.save.empty()) json::save(detail::side_path(plan.target, i), sides[i].made);
    }
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
