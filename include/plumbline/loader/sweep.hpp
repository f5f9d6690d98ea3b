// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_SWEEP_HPP
#define PLUMBLINE_LOADER_SWEEP_HPP

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/loader/limits.hpp"
#include "plumbline/loader/throughput.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// One number of workers and what it gave.
struct sweep_point {
    std::size_t workers = 0;
    std::size_t prefetch = 2;
    double images_per_s = 0;
    double cpu_ns_per_image = 0;
    double cpu_share = 1; ///< of the time that workers were computing: how long they had a CPU (throughput::cpu_share)
};

/// The curve over the number of workers, and what follows from it.
struct recommendation {
    std::vector<sweep_point> curve; ///< by number of workers, prefetch factor 2
    std::size_t num_workers = 0;    ///< the knee: fewest workers within 5 % of the best
    std::size_t prefetch_factor = 2;
    bool pin_memory = false;
    std::vector<limit> limits;
    std::string reason; ///< why so, and what bounds it

    /// Images per second of a point over workers times the rate of one worker; 0 when one worker was not measured.
    [[nodiscard]] double efficiency(const sweep_point& at) const {
        const bool single = !curve.empty() && curve.front().workers == 1 && curve.front().images_per_s > 0;
        return single ? at.images_per_s / (static_cast<double>(at.workers) * curve.front().images_per_s) : 0;
    }
    /// "1:980 2:1890 4:3600": workers and images per second.
    [[nodiscard]] std::string curve_text() const {
        std::string text;
        for (const sweep_point& at : curve) {
            text += (text.empty() ? "" : " ") + std::to_string(at.workers) + ':' +
                    std::to_string(static_cast<long long>(at.images_per_s));
        }
        return text;
    }
};

/// The numbers of workers a sweep tries: 1, 2, 4, ... and the usable CPUs.
[[nodiscard]] inline std::vector<std::size_t> sweep_candidates(std::size_t usable_cpus) {
    std::vector<std::size_t> tried;
    for (std::size_t w = 1; w < usable_cpus; w *= 2) tried.push_back(w);
    tried.push_back(std::max<std::size_t>(1, usable_cpus));
    return tried;
}

/// The fewest workers whose rate is within 5 % of the best. Throws usage_error for an empty curve.
[[nodiscard]] inline sweep_point find_knee(const std::vector<sweep_point>& curve) {
    if (curve.empty()) throw usage_error("a sweep over no numbers of workers has no knee");
    double best = 0;
    for (const sweep_point& at : curve) best = std::max(best, at.images_per_s);
    const sweep_point* knee = nullptr;
    for (const sweep_point& at : curve) {
        if (at.images_per_s >= 0.95 * best && (knee == nullptr || at.workers < knee->workers)) knee = &at;
    }
    return *knee;
}

namespace detail {

/// Says what keeps the knee where it is.
inline std::string reason_for(const recommendation& found, const sweep_point& knee, const machine_limits& has) {
    std::string text = std::to_string(knee.workers) + (knee.workers == 1 ? " worker gives " : " workers give ") +
                       std::to_string(static_cast<long long>(knee.images_per_s)) + " images/s";
    const bool all_cpus = static_cast<std::int64_t>(knee.workers) >= has.usable_cpus;
    if (!all_cpus) {
        const sweep_point& most = found.curve.back();
        const std::string cpus = std::to_string(has.usable_cpus) + " usable CPUs";
        text += ", more gain less than 5 %: ";
        if (most.cpu_share < contended) {
            return text + std::to_string(most.workers) + " of them had a CPU for only " +
                   short_number(100 * most.cpu_share) + " % of their work, so something else has part of the " + cpus;
        }
        return text + "bounded by what workers share (storage, memory, the consumer), not by the " + cpus;
    }
    text += ", every usable CPU";
    for (const limit& one : found.limits) {
        if (one.name == "cpu_quota" || one.name == "affinity") return text + ": " + one.text;
    }
    return text + ": bounded by the CPUs of the machine";
}

} // namespace detail

/// Draws the conclusions from a curve. `deeper` is the knee's number of workers with twice the prefetch factor;
/// it is recommended when it gives 5 % more. `device` says whether batches go to a device.
[[nodiscard]] inline recommendation recommend(std::vector<sweep_point> curve, const sweep_point& deeper,
                                              const machine_limits& has, const demand& asks, bool device) {
    recommendation found;
    const sweep_point knee = find_knee(curve);
    found.curve = std::move(curve);
    found.num_workers = knee.workers;
    found.prefetch_factor = deeper.images_per_s > 1.05 * knee.images_per_s ? deeper.prefetch : knee.prefetch;
    found.pin_memory = device; // a copy from pageable memory goes through a staging buffer and blocks its thread
    demand at_knee = asks;
    at_knee.workers = knee.workers;
    found.limits = name_limits(has, at_knee);
    found.reason = detail::reason_for(found, knee, has);
    return found;
}

/// Measures the curve. `rate` times a loader with the given workers and prefetch factor.
[[nodiscard]] inline recommendation
sweep(const std::function<sweep_point(std::size_t workers, std::size_t prefetch)>& rate, const machine_limits& has,
      const demand& asks, bool device) {
    std::vector<sweep_point> curve;
    for (const std::size_t workers : sweep_candidates(static_cast<std::size_t>(has.usable_cpus))) {
        curve.push_back(rate(workers, 2));
    }
    const sweep_point deeper = rate(find_knee(curve).workers, 4);
    return recommend(std::move(curve), deeper, has, asks, device);
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
