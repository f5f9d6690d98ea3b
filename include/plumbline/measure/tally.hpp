// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_TALLY_HPP
#define PLUMBLINE_MEASURE_TALLY_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/measure/burst.hpp"
#include "plumbline/measure/stop_rule.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// Time since its construction on a host clock.
class host_span {
public:
    explicit host_span(const host_clock& now) : now_(&now), begin_(now()) {}
    [[nodiscard]] double seconds() const { return static_cast<double>(((*now_)() - begin_).count()) * 1e-9; }

private:
    const host_clock* now_;
    nanoseconds begin_;
};

/// Adds a flag to a session's result once.
inline void add_flag(result::session_result& session, const std::string& flag) {
    if (std::find(session.flags.begin(), session.flags.end(), flag) == session.flags.end()) {
        session.flags.push_back(flag);
    }
}

/// Counts the clean samples and adds the flag "throttled" if there are too few of them.
inline void count_clean(result::session_result& session, const settings& rules) {
    const auto count = std::count(session.clean.begin(), session.clean.end(), true);
    const std::size_t needed = std::min(rules.min_clean, session.samples.size());
    session.state["clean_samples"] = static_cast<std::int64_t>(count);
    if (static_cast<std::size_t>(count) < needed) add_flag(session, result::flag::throttled);
}

/// The samples of one benchmark in one session while they are taken.
class tally {
public:
    tally(std::size_t launches, double resolution_ns) : launches_(launches), resolution_ns_(resolution_ns) {}

    /// Adds the samples of one burst; `uncapped`: whether the device was at its reference clock before it.
    void add(const std::vector<sample>& more, bool uncapped = true) {
        raw_.insert(raw_.end(), more.begin(), more.end());
        uncapped_.insert(uncapped_.end(), more.size(), uncapped);
        for (const sample& each : more) {
            if (each.clock_mhz && uncapped) own_.add(*each.clock_mhz);
        }
    }
    void flag(const char* name) { flags_.push_back(name); }

    /// The device's own clock was read; the lowest before a burst that counted as uncapped is kept.
    void marker(double mhz) { marker_mhz_ = marker_mhz_ > 0 ? std::min(marker_mhz_, mhz) : mhz; }

    /// The samples were taken at the power cap on purpose: they carry no marks.
    void at_the_cap() { capped_ = true; }

    [[nodiscard]] std::size_t size() const noexcept { return raw_.size(); }

    /// Whether each sample is clean, as far as is known by now: the device was uncapped, and the clock inside the
    /// sample is what this work reaches on it.
    [[nodiscard]] std::vector<bool> clean(const settings& rules) const {
        std::vector<bool> marks;
        for (std::size_t i = 0; i < raw_.size(); ++i) {
            const bool usual = !raw_[i].clock_mhz || own_.reached(*raw_[i].clock_mhz, rules.clean_clock);
            marks.push_back(uncapped_[i] && usual);
        }
        return marks;
    }

    /// Times per launch of the clean samples.
    [[nodiscard]] std::vector<double> clean_times(const settings& rules) const {
        std::vector<double> times;
        for (const sample& each : raw_) times.push_back(per_launch(each.elapsed_ns));
        return marked(times, clean(rules));
    }

    /// Writes samples, cycles, marks, flags and readings into the session's result.
    void write(result::session_result& session, const reference_clock& reference, const settings& rules) const {
        std::vector<double> elapsed;
        std::vector<double> enqueue;
        std::vector<double> clocks;
        for (const sample& each : raw_) {
            elapsed.push_back(each.elapsed_ns);
            session.samples.push_back(per_launch(each.elapsed_ns));
            if (each.enqueue_ns) enqueue.push_back(*each.enqueue_ns);
            if (each.clock_mhz) {
                clocks.push_back(*each.clock_mhz);
                session.cycles.push_back(per_launch(*each.cycles()));
            }
        }
        for (const std::string& each : flags_) add_flag(session, each);
        session.state["launches_per_sample"] = static_cast<std::int64_t>(launches_);
        if (resolution_ns_ > 0) session.state["timer_resolution_ns"] = resolution_ns_; // of a whole sample
        if (raw_.empty()) return;
        if (clocks.size() == raw_.size()) {
            session.state["sm_clock_mhz"] = stats::mean(clocks);
            session.state["reference_clock_mhz"] = reference.mhz();
            if (marker_mhz_ > 0) session.state["marker_clock_mhz"] = marker_mhz_;
            if (!capped_) {
                session.clean = clean(rules);
                count_clean(session, rules);
            }
        } else {
            session.cycles.clear(); // one for each sample or none
        }
        if (enqueue.size() == raw_.size()) {
            session.state["enqueue_ns"] = per_launch(stats::median(enqueue));
            if (stats::median(enqueue) > stats::median(elapsed)) add_flag(session, result::flag::host_bound);
        }
        if (below_resolution(stats::median(elapsed), resolution_ns_, rules)) {
            add_flag(session, result::flag::below_resolution);
        }
    }

private:
    [[nodiscard]] double per_launch(double value) const { return value / static_cast<double>(launches_); }

    std::size_t launches_;
    double resolution_ns_;
    bool capped_ = false;
    double marker_mhz_ = 0;
    reference_clock own_; ///< of this work on an uncapped device
    std::vector<sample> raw_;
    std::vector<bool> uncapped_; ///< one for each sample
    std::vector<std::string> flags_;
};

/// Numeric readings taken again and again: mean, extremes and last value of each.
class series {
public:
    void add(const scalar_map& readings) {
        for (const auto& [name, value] : readings) {
            if (const auto* number = std::get_if<double>(&value))
                values_[name].push_back(*number);
            else if (const auto* whole = std::get_if<std::int64_t>(&value)) {
                values_[name].push_back(static_cast<double>(*whole));
            }
        }
    }

    /// As NAME.mean, NAME.min, NAME.max and NAME.last.
    void write(scalar_map& state) const {
        for (const auto& [name, values] : values_) {
            state[name + ".mean"] = stats::mean(values);
            state[name + ".min"] = *std::min_element(values.begin(), values.end());
            state[name + ".max"] = *std::max_element(values.begin(), values.end());
            state[name + ".last"] = values.back();
        }
    }

private:
    std::map<std::string, std::vector<double>> values_;
};

/// The result of one metric of a procedure, made from `prototype`. Throws error for a metric without samples or with
/// one that is not finite.
[[nodiscard]] inline result::result metric_result(const metric& from, const procedure_result& found,
                                                  const result::result& prototype, double resolution_ns,
                                                  const settings& rules) {
    if (from.samples.empty()) throw error("the procedure returned no sample of '" + from.name + "'");
    for (double value : from.samples) {
        if (!std::isfinite(value)) throw error("the procedure returned a sample of '" + from.name + "' not finite");
    }
    result::result outcome = prototype;
    outcome.what.metric = from.name;
    outcome.what.unit = from.unit;
    outcome.what.better = from.better;
    if (from.name != "time") outcome.what.flop = outcome.what.bytes = 0; // a rate of them would have no meaning
    outcome.verified = found.verified;
    result::session_result& session = outcome.sessions.front();
    session.samples = from.samples;
    session.flags = found.flags;
    session.ran = found.ran;
    session.state.insert(from.state.begin(), from.state.end());
    std::vector<double> elapsed;
    for (const sample& each : from.raw) elapsed.push_back(each.elapsed_ns);
    if (from.unit == "ns" && from.raw.size() == from.samples.size()) {
        for (std::size_t i = 0; i < from.raw.size(); ++i) {
            if (from.raw[i].clock_mhz) session.cycles.push_back(from.samples[i] * *from.raw[i].clock_mhz * 1e-3);
        }
        if (session.cycles.size() != session.samples.size()) session.cycles.clear();
    }
    if (!elapsed.empty() && below_resolution(stats::median(elapsed), resolution_ns, rules)) {
        add_flag(session, result::flag::below_resolution);
    }
    return outcome;
}

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
