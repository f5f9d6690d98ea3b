// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_PLAN_SEARCH_HPP
#define PLUMBLINE_CUDA_PLAN_SEARCH_HPP

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/cuda/backend.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// The fastest of several plans.
struct search_outcome {
    std::size_t index = 0;
    double first_over_best = 1; ///< time of plan 0 over that of the fastest: what trusting the first costs
};

namespace detail {

/// Median device time of one launch of plan `which`, ns: samples of at least 200 us, cold, after 3 launches.
inline double time_plan(backend& on, const measure::launch& one, std::size_t slots, std::size_t samples) {
    measure::recording_request once;
    once.slots = slots;
    backend::recording probe = on.record(one, once);
    std::vector<double> first;
    for (const measure::sample& s : on.play(probe, 3)) first.push_back(s.elapsed_ns);
    measure::recording_request how = once;
    how.launches = static_cast<std::size_t>(std::clamp(std::ceil(200e3 / stats::median(first)), 1.0, 256.0));
    backend::recording tape = on.record(one, how);
    std::vector<double> times;
    for (const measure::sample& s : on.play(tape, samples)) {
        times.push_back(s.elapsed_ns / static_cast<double>(how.launches));
    }
    return stats::median(std::move(times));
}

} // namespace detail

/// Times `count` plans and picks the fastest: each with 10 samples, then the two best and the first once more with 30.
/// `launch(which, slot)` enqueues one launch. A plan that turns out not to run is passed over; when none runs, the
/// failure of the first is thrown. The device rests before each plan, so that all are timed at the same clock.
[[nodiscard]] inline search_outcome fastest(backend& on, std::size_t count, std::size_t slots,
                                            const std::function<void(std::size_t which, std::size_t slot)>& launch) {
    const auto time = [&](std::size_t which, std::size_t samples) {
        on.idle(std::chrono::milliseconds(60));
        return detail::time_plan(
            on, [&, which](std::size_t slot) { launch(which, slot); }, slots, samples);
    };
    std::vector<std::pair<double, std::size_t>> order;
    std::string failure;
    for (std::size_t which = 0; which < count; ++which) {
        try {
            order.emplace_back(time(which, 10), which);
        } catch (const unsupported_error& refused) {
            if (failure.empty()) failure = refused.what();
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

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
