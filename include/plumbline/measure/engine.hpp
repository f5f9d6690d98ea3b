// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_MEASURE_ENGINE_HPP
#define PLUMBLINE_MEASURE_ENGINE_HPP

#include <utility>
#include <vector>

#include "plumbline/measure/settings.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace measure {

/// Measures benchmarks one after the other on one backend in one process. Keeps what one benchmark leaves for the
/// next: the reference clock, and how long the device must rest, so that preparing the next one counts as resting.
/// Not thread-safe; the backend must outlive it.
template <backend B>
class engine {
public:
    explicit engine(B& on, host_clock now = steady_now);

    /// One result per metric, each with exactly one session_result. Never throws for a failing benchmark: its result
    /// says failed, or skipped for unsupported_error, and why.
    [[nodiscard]] std::vector<result::result> measure(const benchmark<B>& what, const options& how = {});

    /// Marks samples again against the reference clock known by now: call it with all results of the session at its
    /// end, because the reference may have risen after a benchmark was measured. Burst regime only.
    void settle(std::vector<result::result>& results) const;

    /// Session readings for result::session::state: "reference_clock_mhz", "timed_seconds", "idle_seconds".
    [[nodiscard]] scalar_map state() const;
};

} // namespace measure

PLUMBLINE_NAMESPACE_END

#endif
