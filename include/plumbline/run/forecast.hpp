// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_FORECAST_HPP
#define PLUMBLINE_RUN_FORECAST_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/measure/predict.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/workload/id.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// How long benchmarks and sessions take, learnt from sessions that have been run: of an earlier run of this device,
/// then of this one. What was never seen is taken from the engine's own model.
class forecast {
public:
    /// `find` gives the description of an id and may throw for one that is not known here.
    forecast(double budget_s, std::function<workload::description(const std::string&)> find) : find_(std::move(find)) {
        budget_.total = std::chrono::nanoseconds(static_cast<std::int64_t>(budget_s * 1e9));
    }

    /// Learns from every session of a baseline; later files win over earlier ones.
    void learn(const result::baseline& from) {
        predictor_.learn(from.results);
        std::vector<std::map<std::string, double>> by_session(from.sessions.size());
        for (const result::result& each : from.results) {
            for (const result::session_result& one : each.sessions) {
                const auto at = one.state.find("total_seconds");
                if (at == one.state.end() || one.session >= by_session.size()) continue;
                const double* seconds = std::get_if<double>(&at->second);
                if (seconds != nullptr) by_session[one.session][each.what.id] = *seconds;
            }
        }
        for (std::size_t i = 0; i < by_session.size(); ++i) {
            if (from.sessions[i].failed || by_session[i].empty()) continue;
            double beside = from.sessions[i].seconds;
            for (const auto& entry : by_session[i]) beside -= entry.second;
            start_s_ = std::max(0.0, beside);
            learnt_ = true;
        }
    }

    /// A session took so long beside its benchmarks, seen from outside: with the start and the end of its process,
    /// which the session itself cannot time.
    void started_in(double seconds) { start_s_ = std::max(0.0, seconds); }

    /// A benchmark of this run took so long just now. What is still unseen is scaled by how the model has done so far.
    void saw(const std::string& id, double seconds) {
        if (recent_.find(id) == recent_.end()) {
            modelled_s_ += modelled(id);
            taken_s_ += seconds;
        }
        recent_[id] = seconds;
    }

    /// Seconds of one benchmark in one session; 0 for one that this backend does not know and skips.
    [[nodiscard]] double seconds_of(const std::string& id) const {
        const auto at = recent_.find(id);
        if (at != recent_.end()) return at->second;
        return modelled(id) * (modelled_s_ > 0 ? taken_s_ / modelled_s_ : 1);
    }

    /// Seconds a session takes beside its benchmarks: process start, opening the device, reading the environment.
    [[nodiscard]] double start_s() const noexcept { return start_s_; }

    /// Seconds of `sessions` sessions of these benchmarks.
    [[nodiscard]] double predict(const std::vector<std::string>& ids, std::size_t sessions) const {
        double one = start_s_;
        for (const std::string& id : ids) one += seconds_of(id);
        return one * static_cast<double>(sessions);
    }

    /// What a benchmark computes; its id and family alone where this backend does not know it.
    [[nodiscard]] workload::description describe(const std::string& id) const {
        try {
            return find_(id);
        } catch (const error&) {
            workload::description bare;
            bare.id = id;
            bare.family = workload::family_of(id);
            return bare;
        }
    }

    /// Whether a prediction rests on anything measured.
    [[nodiscard]] bool learnt() const noexcept { return learnt_; }

private:
    [[nodiscard]] double modelled(const std::string& id) const {
        try {
            return predictor_.seconds(find_(id), budget_);
        } catch (const error&) {
            return 0;
        }
    }

    std::function<workload::description(const std::string&)> find_;
    measure::predictor predictor_;
    measure::budget budget_;
    std::map<std::string, double> recent_;
    double modelled_s_ = 0; ///< of the benchmarks in recent_
    double taken_s_ = 0;
    double start_s_ = 1;
    bool learnt_ = false;
};

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
