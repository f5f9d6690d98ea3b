// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RESULT_BASELINE_HPP
#define PLUMBLINE_RESULT_BASELINE_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/result/fingerprint.hpp"
#include "plumbline/result/result.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace result {

/// The stretch of time and hardware a session belongs to. Sessions of one epoch share what a reboot, a day or
/// another board would change.
struct epoch {
    std::string boot;  ///< hashed boot id, "" where it cannot be read
    std::string day;   ///< UTC date, YYYY-MM-DD
    std::string board; ///< hashed device UUID (CPU: hashed host)

    bool operator==(const epoch&) const = default;
    auto operator<=>(const epoch&) const = default;
};

/// One process start.
struct session {
    std::string started;            ///< UTC, ISO 8601
    double seconds = 0;             ///< wall time of the whole session
    std::uint64_t seed = 0;         ///< of the shuffled order
    std::vector<std::string> order; ///< benchmark ids in the order they ran
    epoch when;
    scalar_map state;               ///< "reference_clock_mhz", "temperature_c", "power_w", "foreign_processes", ...
    bool failed = false;            ///< the process died, hung or could not start; `reason` says which
    std::string reason;
    std::string control;            ///< interleaved A/B: the round this session belongs to; empty otherwise
};

/// Measured noise of a benchmark or of a class on this kind of machine; overrides the starting values of the policy.
struct noise {
    std::optional<double> s0;  ///< sd between sessions of one epoch, in ln units; from >= 10 sessions
    std::optional<double> s_e; ///< sd between epochs, in ln units; from >= 3 epochs
    double d0 = 4;             ///< degrees of freedom s0 is worth
    std::size_t sessions = 0;
    std::size_t epochs = 0;
};

/// The device that was measured.
struct device {
    std::string backend; ///< "cuda" or "cpu"
    std::string model;   ///< marketing name as the driver or the CPU says it
    std::string uuid;    ///< hashed
    scalar_map properties;                   ///< "sm_count", "l2_bytes", "cudnn_json", datasheet peaks, ...
    std::map<std::string, double> ceilings;  ///< measured limits: "copy_bytes_per_s", "gemm_bf16_flop_per_s", ...
};

/// The part of a suite that a run was asked to measure; what it leaves out is not missing.
struct selection {
    std::string suite;  ///< name or path
    std::string filter; ///< regular expression; empty selects all
    std::vector<std::string> left_out; ///< ids of the suite that the filter did not select
};

/// Something that happened to a stored baseline: created, appended, replaced, accepted.
struct event {
    std::string when; ///< UTC, ISO 8601
    std::string what; ///< "created", "appended", "replaced", "accepted"
    std::string who;  ///< user name as given
    std::string reason;
    std::vector<std::string> ids; ///< the results it concerns; empty for all
};

/// The check in which a run that ended early says by how much; absent in a file that has all its sessions.
inline constexpr const char* sessions_check = "sessions.complete";

/// A baseline: the numbers and the environment they were taken in. One per device.
struct baseline {
    std::string created;     ///< UTC, ISO 8601
    scalar_map tool;         ///< "name", "version", "git", "compiler"
    scalar_map labels;       ///< --label KEY=VALUE: what the process cannot see
    selection selected;
    fingerprint environment;
    struct device device;
    std::map<std::string, struct noise> noise; ///< by benchmark id, or by class name for all of a class
    std::vector<session> sessions;
    std::vector<result> results; ///< unique by (id, metric)
    std::vector<event> history;
    scalar_map checks;       ///< outcome of the preflight by check name: "ok", "warn: ...", "forced: ..."
};

} // namespace result

PLUMBLINE_NAMESPACE_END

#endif
