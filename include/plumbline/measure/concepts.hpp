// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_CONCEPTS_HPP
#define PLUMBLINE_MEASURE_CONCEPTS_HPP

#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "plumbline/measure/sample.hpp"
#include "plumbline/workload/description.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// Enqueues one launch on the backend's own stream, working on buffer set `slot`. May be captured into a graph, so
/// it neither allocates nor synchronises.
using launch = std::function<void(std::size_t slot)>;

/// How the launches of one sample are made.
struct recording_request {
    std::size_t launches = 1; ///< launches in one sample
    std::size_t slots = 1;    ///< buffer sets to rotate over; the rotation goes on from sample to sample and from play
                              ///< to play: launch j since record() works on slot j modulo slots
    bool graph = true;        ///< replay a graph where the backend has one; false: a stream of single launches
};

/// What the engine needs of a place to run. `B::recording` is a move-only handle of a prepared sample.
///
/// record() prepares a sample (captures a graph, or just remembers the launches), untimed. play() queues `samples`
/// samples, all of them in the queue before the first event can fire, waits for the end, and returns one entry for
/// each. It throws plumbline::error if the device failed, and never leaves a held stream behind.
///
/// Optional: `double read_clock_mhz()`, the clock of the device with nothing but a short kernel running; and
/// `spin(std::chrono::nanoseconds)`, which occupies the device, for planted slowdowns.
template <class B>
concept backend = requires(B& b, const B& c, const launch& one, const recording_request& how,
                           typename B::recording& tape, std::size_t samples, std::chrono::nanoseconds pause) {
    { c.name() } -> std::convertible_to<std::string_view>;
    { c.timer_resolution_ns() } -> std::convertible_to<double>;
    { c.has_clock() } -> std::convertible_to<bool>;
    { b.record(one, how) } -> std::same_as<typename B::recording>;
    { b.play(tape, samples) } -> std::same_as<std::vector<sample>>;
    {b.synchronize()};
    {b.idle(pause)};
};

/// A kernel: parameters, a constructor that does everything untimed (allocation, random inputs, plan choice), and
/// run(), one repeatable launch. Optional members, found by `requires`, are listed in measure/benchmark.hpp.
template <class K, class B>
concept kernel = std::constructible_from<K, B&, const typename K::params&, std::size_t> &&
    requires(K& k, B& b, const typename K::params& p, std::size_t slot) {
    {k.run(b, slot)};
    { describe(p) } -> std::convertible_to<workload::description>;
};

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
