// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_SETTINGS_HPP
#define PLUMBLINE_MEASURE_SETTINGS_HPP

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "plumbline/measure/benchmark.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

using std::chrono::nanoseconds;

/// Host time, monotonic, from any origin. A parameter so that tests run in virtual time.
using host_clock = std::function<nanoseconds()>;

[[nodiscard]] inline nanoseconds steady_now() {
    return std::chrono::steady_clock::now().time_since_epoch();
}

/// The rules of sampling. The defaults are those that gave 0.03 to 0.15 % between processes on unlocked H200 boards.
struct settings {
    /// A sample lasts at least this long, and at least `resolution_multiple` times the timer's resolution.
    nanoseconds min_sample{std::chrono::microseconds{200}};
    double resolution_multiple = 400;
    std::size_t max_launches = 1024; ///< launches per sample
    std::size_t max_queued = 512;    ///< single launches that one play may queue when no graph is used

    std::size_t min_clean = 30; ///< clean samples before the stop rule may fire
    std::size_t few_clean = 9;  ///< of samples so long that min_clean of them would take more than `enough`
    nanoseconds enough{std::chrono::milliseconds{100}};
    std::size_t max_samples = 300; ///< part of the budget: more would only make the file larger
    double precision = 0.005;      ///< stop when the interval of the median is within this share of it
    double confidence = 0.95;      ///< of that interval

    nanoseconds burst{std::chrono::milliseconds{8}}; ///< device time of one burst, at most
    std::size_t min_burst_samples = 3;               ///< unless the clock says that the burst reaches the cap
    std::size_t min_bursts = 3; ///< on a device with a clock: one burst alone sits on the ramp of the clock
    std::size_t lead_in = 1;    ///< samples at the start of each burst that are not taken: the clock still ramps up

    /// A device is uncapped when its clock, read with nothing but a short kernel running, reaches this share of the
    /// session's reference clock.
    double uncapped_clock = 0.99;
    /// A clean sample reaches this share of the highest steady clock that the same work has reached. Matrix work runs
    /// at a lower clock than the idle device from its first microsecond on (H200: 1600 to 1820 of 1980 MHz) and moves
    /// by 1 % there; at the power cap it loses another 5 % and more.
    double clean_clock = 0.97;

    nanoseconds touch{std::chrono::milliseconds(300)};      ///< host time for running the other buffer sets once
    nanoseconds pause{std::chrono::milliseconds{60}};       ///< idling between bursts
    nanoseconds settle{std::chrono::milliseconds{400}};     ///< idling before the first burst of a benchmark, so that
                                                            ///< it does not matter what ran before
    nanoseconds recovery{std::chrono::milliseconds{1000}};  ///< idling after work that reached the power cap
    nanoseconds sustained{std::chrono::milliseconds{3000}}; ///< length of a sustained benchmark
    nanoseconds ramp{std::chrono::milliseconds{1000}};      ///< its first part, which is not sampled
};

/// What is known of a benchmark's correct output from an earlier session of the same run.
struct known_output {
    std::string implementation; ///< evidence.implementation that gave it
    std::string hash;           ///< of the output, as the kernel's output_hash gives it
};

/// What the engine calls between timed sections, never inside one. Empty functions are not called.
struct hooks {
    std::function<void(const workload::description&)> before; ///< before preparation
    std::function<void(const workload::description&, result::session_result&)>
        after;                        ///< of what was measured; may add state and flags
    std::function<scalar_map()> read; ///< state worth a series in sustained runs: power, temperature, event reasons
};

/// How one benchmark is to be measured.
struct options {
    settings rules;
    budget time; ///< of the measuring itself; preparation and verification are not in it
    std::size_t session = 0;
    std::string host_model;            ///< CPU model; part of workload.hash of host-bound results
    std::optional<known_output> known; ///< same implementation and same hash: not verified again
    /// Launches per sample that an earlier session, or the baseline that is compared with, used. Samples of other
    /// lengths differ by what starting and ending one costs, so sessions that are compared should have the same. Not
    /// taken when the samples would be less than half, or more than eight times, as long as a new plan's.
    std::optional<std::size_t> launches;
    hooks call;
};

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
