// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_BURST_HPP
#define PLUMBLINE_MEASURE_BURST_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <vector>

#include "plumbline/measure/plan.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// The session's reference clock: the highest steady clock reached so far. Steady means seen three times: it is the
/// third highest of all sample clocks, so that two wrong readings cannot raise it.
class reference_clock {
public:
    void add(double mhz) {
        auto lowest = std::min_element(highest_.begin(), highest_.end());
        if (mhz > *lowest) *lowest = mhz;
    }

    /// In MHz; 0 until three samples were seen.
    [[nodiscard]] double mhz() const { return *std::min_element(highest_.begin(), highest_.end()); }

    /// Whether a sample at this clock was undisturbed; everything is as long as there is no reference.
    [[nodiscard]] bool clean(double sample_mhz, const settings& rules) const {
        return sample_mhz >= rules.clean_clock * mhz();
    }

private:
    std::array<double, 3> highest_{};
};

/// How long the device must still rest. What happens meanwhile on the host (preparing the next benchmark) counts.
class resting {
public:
    /// Work has ended at `now` and asks for `needs` of rest; an earlier, longer need is kept.
    void worked(nanoseconds now, nanoseconds needs) { until_ = std::max(until_, now + needs); }

    [[nodiscard]] nanoseconds left(nanoseconds now) const { return std::max(nanoseconds{0}, until_ - now); }

private:
    nanoseconds until_{0};
};

/// Length of the bursts of one benchmark and the pauses between them, adapted to the clock seen in the samples.
class burst_control {
public:
    /// `sample_ns`: expected device time of one sample. `most`: samples that one play may queue.
    burst_control(const settings& rules, double sample_ns, bool is_dense, bool has_clock, std::size_t most)
        : recovery_(rules.recovery), pause_(has_clock ? rules.pause : nanoseconds{0}) {
        const auto length = static_cast<double>((is_dense ? rules.dense_burst : rules.burst).count());
        samples_ = static_cast<std::size_t>(std::clamp(length / sample_ns, 1.0, static_cast<double>(most)));
    }

    [[nodiscard]] std::size_t samples() const noexcept { return samples_; }
    [[nodiscard]] nanoseconds pause() const noexcept { return pause_; }

    /// Learns from one burst: which of its samples were clean, in order. Returns whether it ran into the cap, that
    /// is, whether it ended disturbed; one low reading in the middle or a slow start is no cap.
    bool observe(const std::vector<bool>& clean) {
        if (clean.empty() || clean.back()) return false;
        const auto last_clean = std::find(clean.rbegin(), clean.rend(), true);
        const auto good = static_cast<std::size_t>(std::distance(last_clean, clean.rend()));
        if (good > 0) {
            // It was fast for a while: stop before the cap, and rest a little longer.
            samples_ = std::min(samples_, good);
            pause_ = std::min(recovery_, pause_ * 2);
        } else {
            // It never was: the device had not recovered.
            samples_ = std::max<std::size_t>(1, samples_ / 2);
            pause_ = recovery_;
        }
        return true;
    }

private:
    nanoseconds recovery_;
    nanoseconds pause_;
    std::size_t samples_ = 1;
};

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
