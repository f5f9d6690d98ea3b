// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_HOST_WAKE_HPP
#define PLUMBLINE_MEASURE_HOST_WAKE_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "plumbline/measure/settings.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// Puts the calling thread to sleep until a time of the steady clock's epoch.
using sleeper = std::function<void(nanoseconds until)>;

inline void sleep_until(nanoseconds until) {
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point(until));
}

/// How late a sleeping host thread wakes up: what an input pipeline or a launching thread suffers on a busy or
/// power-saving host. The same on every backend. Sleeps for 1 ms up to 300 times, and at least 20 times whatever the
/// budget.
///
/// Metrics: "time", lateness of each wake-up in ns, and "jitter", for each 20 of them the 95th percentile less the
/// median, in ns. Both are at least 1 ns, because a time of 0 cannot be compared.
[[nodiscard]] inline procedure_result measure_host_wake(const budget& time, const host_clock& now = steady_now,
                                                        const sleeper& sleep = sleep_until) {
    constexpr std::size_t block = 20;
    constexpr std::size_t most = 300;
    constexpr nanoseconds nap = std::chrono::milliseconds(1);
    std::vector<double> lateness;
    const nanoseconds start = now();
    while (lateness.size() < block || (lateness.size() < most && now() - start < time.total)) {
        const nanoseconds until = now() + nap;
        sleep(until);
        lateness.push_back(std::max(1.0, static_cast<double>((now() - until).count())));
    }
    std::vector<double> jitter;
    for (std::size_t at = 0; at + block <= lateness.size(); at += block) {
        const auto first = lateness.begin() + static_cast<std::ptrdiff_t>(at);
        const std::vector<double> part(first, first + static_cast<std::ptrdiff_t>(block));
        jitter.push_back(std::max(1.0, stats::quantile(part, 0.95) - stats::median(part)));
    }
    procedure_result found;
    found.metrics.push_back({"time", "ns", direction::lower, std::move(lateness), {}, {}});
    found.metrics.push_back({"jitter", "ns", direction::lower, std::move(jitter), {}, {}});
    found.ran.implementation = "steady_clock/sleep_until";
    return found;
}

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
