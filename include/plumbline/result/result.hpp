// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RESULT_RESULT_HPP
#define PLUMBLINE_RESULT_RESULT_HPP

#include <cstddef>
#include <string>
#include <vector>

#include "plumbline/core/scalar.hpp"
#include "plumbline/result/reading.hpp"
#include "plumbline/workload/description.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace result {

/// What really ran: the implementation in one normalised line, its parts for machines, the kernels where known.
struct evidence {
    std::string implementation;       ///< "lt/id66/t19/s13/k1/..." or "cudnn/A/eng38/..." or "brg:avx512_core_bf16"
    scalar_map parts;                 ///< the same, taken apart: "algo.id", "workspace_bytes", "tensor_cores", ...
    std::vector<std::string> kernels; ///< names of device kernels, in launch order; empty where not known

    bool operator==(const evidence&) const = default;
};

/// Marks of a sample or of a session's result. A marked sample is kept and counted, never thrown away.
namespace flag {
inline constexpr const char* throttled = "throttled";             ///< clock below 99 % of the session's reference clock
inline constexpr const char* foreign_load = "foreign_load";       ///< another process worked on the device meanwhile
inline constexpr const char* budget_exhausted = "budget_exhausted"; ///< stopped by time, not by the stop rule
inline constexpr const char* below_resolution = "below_resolution"; ///< a sample is too short for the timer
inline constexpr const char* host_bound = "host_bound";           ///< enqueueing takes longer than the device's work
} // namespace flag

/// One benchmark in one session (process start). A session's value is the median of its samples.
struct session_result {
    std::size_t session = 0;        ///< index into baseline::sessions
    std::vector<double> samples;    ///< in the result's unit, per launch, in the order they were taken; all finite
    std::vector<double> cycles;     ///< SM cycles per launch, one for each sample, or empty where the backend has none
    std::vector<bool> clean;        ///< one for each sample: not disturbed; empty means all clean
    std::vector<std::string> flags; ///< see namespace flag
    evidence ran;
    scalar_map state;               ///< readings of this session: "sm_clock_mhz", "enqueue_ns", "launches_per_sample"
};

enum class result_status { ok, failed, skipped };

/// The reason of a skipped result that a run had no time for: it says nothing about the machine, and the benchmark is
/// still owed.
inline constexpr const char* not_measured = "not measured for lack of time";

/// The reason of a failed result that was never begun because the device or the driver let no session start any more.
inline constexpr const char* no_session = "the sessions could no longer be started";

/// One benchmark and metric of a baseline, over all sessions.
struct result {
    workload::description what;
    result_status status = result_status::ok;
    std::string reason;  ///< why it failed or was skipped; empty when ok
    std::string backend; ///< the backend that really ran: "cuda" or "cpu"
    bool verified = false;
    std::vector<session_result> sessions;
};

/// Whether the run that made this result had no time for it.
[[nodiscard]] inline bool lacked_time(const result& of) {
    return of.status == result_status::skipped && of.reason == not_measured;
}

} // namespace result

PLUMBLINE_NAMESPACE_END

#endif
