// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_PREDICT_HPP
#define PLUMBLINE_MEASURE_PREDICT_HPP

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plumbline/measure/plan.hpp"
#include "plumbline/measure/stop_rule.hpp"
#include "plumbline/result/result.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// Predicts how long benchmarks take, for the time budget and the progress line. What a benchmark took before on this
/// machine is the best prediction; before anything is known, a model of the engine's own steps gives one.
class predictor {
public:
    explicit predictor(settings rules = {}) : rules_(rules) {}

    /// Learns from the results of sessions: the median over sessions of what each benchmark took.
    void learn(const std::vector<result::result>& results) {
        std::map<std::string, std::vector<double>> seen;
        for (const result::result& each : results) {
            for (const result::session_result& s : each.sessions) {
                const auto at = s.state.find("total_seconds");
                if (at == s.state.end()) continue;
                if (const auto* seconds = std::get_if<double>(&at->second)) seen[each.what.id].push_back(*seconds);
            }
        }
        for (auto& [id, seconds] : seen) known_[id] = stats::median(std::move(seconds));
    }

    /// Seconds of one session of a benchmark that may spend `time` on its samples; never more than it may take.
    [[nodiscard]] double seconds(const workload::description& what, const budget& time) const {
        if (const auto at = known_.find(what.id); at != known_.end()) return at->second;
        const double most = as_seconds(time.total);
        switch (what.kind) {
        case benchmark_class::kernel:
            return preparation + pinning(what) + search_seconds(what) + as_seconds(rules_.settle) +
                   std::min(most, burst_seconds(what));
        case benchmark_class::sustained:
            return preparation + as_seconds(rules_.ramp + rules_.sustained);
        case benchmark_class::host:
            if (is_one_of(what, {"launch", "graph_launch", "host_wake"})) return short_procedure;
            return last_sample + pinning(what) + most;
        case benchmark_class::training_step:
            return training_preparation + as_seconds(rules_.settle) + std::min(most, burst_seconds(what));
        case benchmark_class::dataloader:
            return loader_start + most;
        case benchmark_class::imported:
            break; // procedures use what they are given
        }
        return preparation + most;
    }

    /// Seconds of one session of all of them.
    [[nodiscard]] double seconds(const std::vector<workload::description>& all, const budget& time) const {
        double sum = 0;
        for (const workload::description& each : all) sum += seconds(each, time);
        return sum;
    }

private:
    /// Allocation, inputs, plan choice, touching and the plan of the samples, as seen on an H200 with operators of a
    /// few 100 MB (0.01 to 0.04 s).
    static constexpr double preparation = 0.02;
    static constexpr double training_preparation = 0.6; ///< weights, and plans of dozens of products
    static constexpr double loader_start = 0.5;         ///< page cache, threads, pinned memory of the first one
    static constexpr double last_sample = 0.25;    ///< a procedure's last sample (a process start) ends after its time
    static constexpr double short_procedure = 0.1; ///< hundreds of samples of microseconds

    [[nodiscard]] static double as_seconds(nanoseconds time) { return static_cast<double>(time.count()) * 1e-9; }

    [[nodiscard]] static bool is_one_of(const workload::description& what, std::initializer_list<const char*> kinds) {
        const auto at = what.params.find("kind");
        const auto* kind = at == what.params.end() ? nullptr : std::get_if<std::string>(&at->second);
        return kind != nullptr && std::find(kinds.begin(), kinds.end(), *kind) != kinds.end();
    }

    /// Host memory for copies over the link is written and pinned at about 1 GB/s.
    [[nodiscard]] static double pinning(const workload::description& what) {
        return is_one_of(what, {"h2d_pinned", "d2h_pinned", "h2d_pageable"}) ? what.bytes / 1e9 : 0;
    }

    /// Seconds of one launch at the order of magnitude of a data-centre GPU. Only long launches notice.
    [[nodiscard]] static double launch_seconds(const workload::description& what) {
        const auto at = what.params.find("dtype");
        const auto is = [&](const char* dtype) {
            return at != what.params.end() && at->second == scalar(std::string(dtype));
        };
        const double flop_per_s = is("fp32") ? 5e13 : is("fp8") ? 1.4e15 : 7e14;
        const bool link = is_one_of(what, {"h2d_pinned", "d2h_pinned"});
        return std::max(what.flop / flop_per_s, what.bytes / (link ? 5e10 : 3e12));
    }

    /// Bursts until there are min_clean samples, each at least min_sample long, with pauses between them.
    [[nodiscard]] double burst_seconds(const workload::description& what) const {
        const double sample = std::max(as_seconds(rules_.min_sample), launch_seconds(what));
        const auto per_burst = static_cast<double>(samples_of_burst(sample * 1e9, rules_));
        const auto needed = static_cast<double>(needed_clean(sample * 1e9, rules_));
        const double bursts = std::max(static_cast<double>(rules_.min_bursts), std::ceil(needed / per_burst));
        const double taken = bursts * (per_burst + static_cast<double>(rules_.lead_in));
        return taken * sample + (bursts - 1) * as_seconds(rules_.pause);
    }

    /// What choosing the best of 16 plans takes (plan_search.hpp): ten samples of each, thirty of three.
    [[nodiscard]] double search_seconds(const workload::description& what) const {
        const auto at = what.params.find("plan");
        if (at == what.params.end() || at->second != scalar(std::string("best"))) return 0;
        const double sample = std::max(as_seconds(rules_.min_sample), launch_seconds(what));
        const auto per_burst = static_cast<double>(samples_of_burst(sample * 1e9, rules_));
        const double bursts = 16 * std::ceil(10 / per_burst) + 3 * std::ceil(30 / per_burst);
        const double taken = 16 * 10 + 3 * 30 + bursts * static_cast<double>(rules_.lead_in);
        return taken * sample + bursts * as_seconds(rules_.pause);
    }

    settings rules_;
    std::map<std::string, double> known_;
};

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
