// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_PLAN_SEARCH_HPP
#define PLUMBLINE_MEASURE_PLAN_SEARCH_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/measure/burst.hpp"
#include "plumbline/measure/concepts.hpp"
#include "plumbline/measure/settings.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// The fastest of several plans.
struct search_outcome {
    std::size_t index = 0;
    double first_over_best = 1; ///< time of plan 0 over that of the fastest: what trusting the first costs
};

namespace detail {

/// Median device time of one launch of a plan, ns: cold samples of at least 200 us, after 3 launches, in bursts short
/// enough for the power cap with rests between them; the first sample of a burst is not taken.
template <backend B>
[[nodiscard]] double time_plan(B& on, const launch& one, std::size_t slots, std::size_t samples,
                               const settings& rules) {
    recording_request how{1, slots, true};
    std::vector<double> first;
    typename B::recording probe = on.record(one, how);
    for (const sample& each : on.play(probe, 3)) first.push_back(each.elapsed_ns);
    const double launch_ns = stats::median(std::move(first));
    const double shortest = static_cast<double>(rules.min_sample.count());
    how.launches = static_cast<std::size_t>(std::clamp(std::ceil(shortest / launch_ns), 1.0, 256.0));
    typename B::recording tape = on.record(one, how);
    const double sample_ns = launch_ns * static_cast<double>(how.launches);
    const std::size_t burst = std::max<std::size_t>(1, samples_of_burst(sample_ns, rules));
    std::vector<double> times;
    while (times.size() < samples) {
        on.idle(rules.pause);
        const std::vector<sample> taken = on.play(tape, rules.lead_in + std::min(burst, samples - times.size()));
        for (std::size_t i = rules.lead_in; i < taken.size(); ++i) {
            times.push_back(taken[i].elapsed_ns / static_cast<double>(how.launches));
        }
    }
    return stats::median(std::move(times));
}

} // namespace detail

/// Times `count` plans and picks the fastest: each with 10 samples, then the two best and the first once more with 30.
/// `run(which, slot)` enqueues one launch. A plan that turns out not to run, or not to be captured, is passed over;
/// when none runs, the failure of the first is thrown. A failed device ends the search. The device rests before each
/// burst, so that all are timed at the same clock.
template <backend B>
[[nodiscard]] search_outcome fastest(B& on, std::size_t count, std::size_t slots,
                                     const std::function<void(std::size_t which, std::size_t slot)>& run,
                                     const settings& rules = {}) {
    const auto time = [&](std::size_t which, std::size_t samples) {
        return detail::time_plan(
            on, [&, which](std::size_t slot) { run(which, slot); }, slots, samples, rules);
    };
    std::vector<std::pair<double, std::size_t>> order;
    std::string failure;
    for (std::size_t which = 0; which < count; ++which) {
        try {
            order.emplace_back(time(which, 10), which);
        } catch (const error& refused) {
            if (failure.empty()) failure = refused.what();
            on.synchronize(); // throws where not the plan is to blame but the device
        }
    }
    if (order.empty()) throw unsupported_error("none of " + std::to_string(count) + " plans runs: " + failure);
    std::sort(order.begin(), order.end());
    std::vector<std::pair<double, std::size_t>> finals;
    double first = 0;
    for (std::size_t place = 0; place < order.size(); ++place) {
        const std::size_t which = order[place].second;
        if (place >= 2 && which != 0) continue;
        finals.emplace_back(time(which, 30), which);
        if (which == 0) first = finals.back().first;
    }
    const auto best = *std::min_element(finals.begin(), finals.end());
    search_outcome found;
    found.index = best.second;
    if (first > 0) found.first_over_best = first / best.first;
    return found;
}

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
