// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_MACHINE_REPEAT_HPP
#define PLUMBLINE_CUDA_MACHINE_REPEAT_HPP

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/measure/benchmark.hpp"
#include "plumbline/measure/settings.hpp"
#include "plumbline/measure/stop_rule.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// Host time of `work`, ns.
template <class Work>
[[nodiscard]] double host_time_ns(Work work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

/// Values that `one()` returns, by the stop rule of the engine: until the median is known well enough, the budget is
/// spent or there are `most`; at least `least`.
template <class One>
[[nodiscard]] std::vector<double> repeat(const measure::budget& time, std::size_t least, One one,
                                         std::size_t most = measure::settings{}.max_samples) {
    const measure::settings rules;
    const auto begin = std::chrono::steady_clock::now();
    std::vector<double> values;
    while (values.size() < most) {
        values.push_back(one());
        if (values.size() < least) continue;
        if (std::chrono::steady_clock::now() - begin >= time.total || measure::precise_enough(values, rules)) break;
    }
    return values;
}

/// A metric in ns.
[[nodiscard]] inline measure::metric time_metric(std::string name, std::vector<double> samples) {
    measure::metric made;
    made.name = std::move(name);
    made.unit = "ns";
    made.samples = std::move(samples);
    return made;
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
