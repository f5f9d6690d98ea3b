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

/// The highest steady clock reached so far, of the device or of one benchmark. Steady means seen three times: it is
/// the third highest of all readings, so that two wrong ones cannot raise it.
class reference_clock {
public:
    void add(double mhz) {
        auto lowest = std::min_element(highest_.begin(), highest_.end());
        if (mhz > *lowest) *lowest = mhz;
    }

    /// In MHz; 0 until three readings were seen.
    [[nodiscard]] double mhz() const { return *std::min_element(highest_.begin(), highest_.end()); }

    /// Whether a clock reaches this share of the reference; every clock does as long as there is no reference.
    [[nodiscard]] bool reached(double clock_mhz, double share) const { return clock_mhz >= share * mhz(); }

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

/// What was seen of the clock round one burst.
struct burst_clocks {
    bool uncapped_before = true; ///< the device's own clock
    bool uncapped_after = true;
    std::vector<bool> clean; ///< of each sample, in order
};

/// Length of the bursts of one benchmark and the pauses between them, adapted to the clock.
class burst_control {
public:
    /// `sample_ns`: expected device time of one sample. `most`: samples that one play may queue.
    burst_control(const settings& rules, double sample_ns, bool has_clock, std::size_t most)
        : recovery_(rules.recovery), pause_(has_clock ? rules.pause : nanoseconds{0}) {
        samples_ = std::clamp<std::size_t>(samples_of_burst(sample_ns, rules), 1, most);
    }

    [[nodiscard]] std::size_t samples() const noexcept { return samples_; }
    [[nodiscard]] nanoseconds pause() const noexcept { return pause_; }

    /// Learns from one burst. Returns whether the device was at its cap; one low sample in the middle is no cap.
    bool observe(const burst_clocks& seen) {
        if (!seen.uncapped_before) {
            pause_ = recovery_; // it had not recovered from what came before
            return true;
        }
        const bool fell = !seen.clean.empty() && !seen.clean.back();
        if (seen.uncapped_after && !fell) return false;
        const auto last_clean = std::find(seen.clean.rbegin(), seen.clean.rend(), true);
        const auto good = static_cast<std::size_t>(std::distance(last_clean, seen.clean.rend()));
        // Stop before the cap, and rest longer. Without a clean sample, or without a sign where it was, halve.
        const std::size_t shorter = fell && good > 0 ? good : samples_ / 2;
        samples_ = std::max<std::size_t>(1, std::min(samples_, shorter));
        pause_ = std::min(recovery_, pause_ * 2);
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
