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
            return preparation + as_seconds(rules_.pause) + std::min(most, burst_seconds(what));
        case benchmark_class::sustained:
            return preparation + as_seconds(rules_.ramp + rules_.sustained);
        case benchmark_class::training_step:
        case benchmark_class::dataloader:
        case benchmark_class::host:
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
    /// Allocation, inputs, plan choice, touching and the plan of the samples, as seen with operators of a few 100 MB.
    static constexpr double preparation = 0.35;

    [[nodiscard]] static double as_seconds(nanoseconds time) { return static_cast<double>(time.count()) * 1e-9; }

    /// Bursts until there are min_clean samples, each at least min_sample long, with pauses between them.
    [[nodiscard]] double burst_seconds(const workload::description& what) const {
        // 5e14 FLOP/s and 3e12 bytes/s: the order of magnitude of a data-centre GPU. Only long launches notice.
        const double one = std::max(what.flop / 5e14, what.bytes / 3e12);
        const double sample = std::max(as_seconds(rules_.min_sample), one);
        const double per_burst = std::max(1.0, std::floor(as_seconds(rules_.burst) / sample));
        const double bursts = std::ceil(static_cast<double>(rules_.min_clean) / per_burst);
        const double taken = bursts * (per_burst + static_cast<double>(rules_.lead_in));
        return taken * sample + (bursts - 1) * as_seconds(rules_.pause);
    }

    settings rules_;
    std::map<std::string, double> known_;
};

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
