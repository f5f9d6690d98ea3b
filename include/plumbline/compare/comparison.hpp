// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_COMPARISON_HPP
#define PLUMBLINE_COMPARE_COMPARISON_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plumbline/compare/cause.hpp"
#include "plumbline/core/exit_code.hpp"
#include "plumbline/core/scalar.hpp"
#include "plumbline/environment/diff.hpp"
#include "plumbline/result/alarm.hpp"
#include "plumbline/workload/description.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// What the comparison says about one benchmark and metric.
enum class verdict {
    regressed,
    improved,
    equivalent,
    inconclusive,   ///< never a pass: see estimate::smallest_detectable and sessions_needed
    missing,        ///< in the base only
    new_benchmark,  ///< in the candidate only
    incomparable,   ///< other hardware, workload, unit dimension or direction
    invalid,        ///< a side has no usable number, or one that must not be trusted
    skipped,        ///< skipped on both sides for the same reason
    cross_hardware, ///< other hardware, ratio asked for explicitly: no verdict
};

/// Why a verdict is what it is. Several can hold at once; all are collected.
enum class reason_code {
    hardware_differs,
    workload_differs,
    unit_differs,
    direction_differs,
    no_samples,
    not_finite,
    not_positive,
    failed,
    wrong_backend,
    skipped_one_side,
    skipped_differently,
    not_measured, ///< the run had no time for it
    foreign_load,
    throttled,
    not_selected, ///< left out by the declared selection: not missing for the exit code
    below_resolution,
    bimodal,
    too_noisy, ///< the change is not proven and not excluded
    rank_veto, ///< large enough, but the ranks of the sessions do not agree
};

/// Properties of a finding beside its verdict.
enum class marker {
    small_but_real, ///< equivalent, but the 95 % interval excludes no change
    suspicious,     ///< an improvement too large to believe
    bimodal,        ///< sessions of a side fall into two groups
    below_resolution,
    advisory, ///< does not make the exit code 1
    optional, ///< may be missing or invalid
    accepted, ///< the policy accepts this change
    acceptance_expired,
    throttled,
    not_selected,
    implementation_changed, ///< the sides ran different implementations
    implementation_varies,  ///< sessions of one side ran different implementations
    board_factor_removed,
    common_mode,    ///< moved with nearly everything else
    baseline_drift, ///< the control moved away from the stored baseline
    rank_veto,
    interleaved,    ///< paired analysis of interleaved sessions
    noise_measured, ///< s0 or s_e come from the baseline, not from the policy
    unverified,     ///< the candidate's output was not checked although the base's was
};

/// A reason with its particulars for people.
struct reason {
    reason_code code = reason_code::no_samples;
    std::string text;
};

/// One implementation that ran on a side.
struct implementation {
    std::string name;
    std::size_t sessions = 0; ///< sessions that ran it
    double value = 0;         ///< median of their values, in the finding's unit
};

/// A group of sessions of a bimodal side.
struct mode {
    double value = 0; ///< median, in the finding's unit
    std::size_t sessions = 0;
    std::optional<double> clock_mhz; ///< median of the clocks in its samples, where known
    std::vector<std::string> implementations;
};

/// One side of a finding.
struct side {
    std::optional<double> value; ///< median of the session values, in the finding's unit
    std::size_t sessions = 0;
    std::size_t epochs = 0;
    double spread = 0;                           ///< sd of ln(value) between sessions; 0 for fewer than two
    std::vector<implementation> implementations; ///< by descending number of sessions
    std::vector<mode> modes;                     ///< two when the side is bimodal, else none
};

/// The effect and its error. All in ln units of cost: positive is worse whatever the direction; exp(x) - 1 is the
/// relative change of a time.
struct estimate {
    double hl = 0;                ///< Hodges-Lehmann shift
    std::optional<double> hl_low; ///< its order-statistic interval of at least 95 %; absent with too few sessions
    std::optional<double> hl_high;
    double delta = 0; ///< difference of means
    double se = 0;    ///< standard error of delta
    double df = 0;
    double low90 = 0, high90 = 0; ///< 90 % interval of delta: inside the margin means equivalent
    double low95 = 0, high95 = 0;
    double p_regressed = 1, p_improved = 1;               ///< one-sided
    double adjusted_regressed = 1, adjusted_improved = 1; ///< Benjamini-Hochberg over all pairs
    std::optional<double> rank_regressed, rank_improved;  ///< exact rank test, where it can veto
    double smallest_detectable = 0;                       ///< fraction: smallest change found with 80 % power
    std::optional<std::size_t> sessions_needed; ///< sessions a side to detect the margin; absent: epochs are needed
    std::optional<double> occupancy_p;          ///< bimodal: Fisher's exact p that both sides mix alike
};

/// A slowdown taken apart: time = cycles / clock. Parts add up to the difference of means, in ln units.
struct split {
    double clock = 0;  ///< positive: the clock is lower
    double cycles = 0; ///< positive: more cycles for the same work

    /// A part as a fraction of a time: exp(part) - 1.
    [[nodiscard]] static double fraction(double part) { return std::expm1(part); }
};

/// Something wrong with the candidate by its own evidence, whatever the verdict is.
struct raised_alarm {
    result::alarm what;
    bool in_base = false; ///< the base had it too
};

/// Noise and margin that were used for a finding.
struct yardstick {
    std::string class_name; ///< key of policy::classes
    double s0 = 0;
    double s_e = 0;
    double d0 = 0;
    double d_e = 0; ///< degrees of freedom behind a measured s_e; 0: a matter of policy
    double floor = 0;
    double margin = 0;     ///< fraction
    double resolution = 0; ///< of the timer per launch, in the finding's unit; 0: unknown
};

/// The comparison of one benchmark and metric.
struct finding {
    std::string id;
    std::string metric;
    std::string unit; ///< of the base, or of the candidate where there is no base
    direction better = direction::lower;
    verdict outcome = verdict::invalid;
    std::vector<reason> reasons;
    std::set<marker> markers;
    side base;
    side candidate;
    std::optional<double> ratio; ///< exp(HL): cost of the candidate over the base's, above 1 is worse
    std::optional<estimate> effect;
    std::optional<split> parts;
    std::optional<double> residual;          ///< HL minus the machine-wide shift, in ln units
    std::vector<raised_alarm> alarms;        ///< of the candidate
    std::optional<double> fraction_of_limit; ///< candidate's speed over the hardware's, where a ceiling is known
    yardstick used;

    [[nodiscard]] bool has(marker m) const { return markers.count(m) != 0; }
};

/// The smallest change that would have been reported, as a fraction: what lies below the margin never is, however well
/// it is proven. Infinite without an estimate.
[[nodiscard]] inline double smallest_reported(const finding& of) {
    return of.effect ? std::max(of.effect->smallest_detectable, of.used.margin) : HUGE_VAL;
}

/// Nearly all benchmarks moved the same way.
struct common_mode {
    double shift = 0; ///< median of all effects, ln units; positive is worse
    double share = 0; ///< of the pairs that moved this way
    std::size_t pairs = 0;
    std::optional<split> parts; ///< median parts where cycles are known
};

/// The two sides were measured on different boards of one model.
struct board_factor {
    std::string base_board;
    std::string candidate_board;
    std::string canary; ///< benchmark the factor comes from; empty when there was none to use
    double shift = 0;   ///< ln units, positive: the candidate's board is slower
    double se = 0;
    bool red = false;    ///< beyond policy::board_factor_limit
    std::string problem; ///< why no factor could be estimated
};

/// Geometric mean of the ratios of valid pairs.
struct geometric_mean {
    double ratio = 1;
    std::size_t pairs = 0;
};

/// The outcome of comparing two baselines.
struct comparison {
    std::vector<finding> findings; ///< worst first; within a verdict by descending effect, then by id
    std::map<verdict, std::size_t> counts;
    std::vector<environment::difference> environment; ///< candidate causes and what changed between known and unknown
    std::optional<compare::common_mode> machine_wide;
    std::optional<board_factor> board;
    geometric_mean overall;
    explanation why;                ///< which of these changes explain the verdicts: see explain.hpp
    std::vector<std::string> notes; ///< what concerns the comparison as a whole
    std::size_t tests = 0;          ///< pairs in the adjustment for multiple tests
    bool interleaved = false;       ///< paired analysis of interleaved sessions
    exit_code exit = exit_code::ok;

    [[nodiscard]] std::size_t count(verdict v) const {
        const auto at = counts.find(v);
        return at == counts.end() ? 0 : at->second;
    }
};

using plumbline::to_string; // those of scalars and classes, which the names below would hide

/// The verdict's name in files and reports: "regressed", ..., "new" for new_benchmark.
[[nodiscard]] inline const char* to_string(verdict v) noexcept {
    switch (v) {
    case verdict::regressed:
        return "regressed";
    case verdict::improved:
        return "improved";
    case verdict::equivalent:
        return "equivalent";
    case verdict::inconclusive:
        return "inconclusive";
    case verdict::missing:
        return "missing";
    case verdict::new_benchmark:
        return "new";
    case verdict::incomparable:
        return "incomparable";
    case verdict::invalid:
        return "invalid";
    case verdict::skipped:
        return "skipped";
    case verdict::cross_hardware:
        return "cross_hardware";
    }
    return "";
}

/// The reason's name in files and reports.
[[nodiscard]] inline const char* to_string(reason_code r) noexcept {
    switch (r) {
    case reason_code::hardware_differs:
        return "hardware_differs";
    case reason_code::workload_differs:
        return "workload_differs";
    case reason_code::unit_differs:
        return "unit_differs";
    case reason_code::direction_differs:
        return "direction_differs";
    case reason_code::no_samples:
        return "no_samples";
    case reason_code::not_finite:
        return "not_finite";
    case reason_code::not_positive:
        return "not_positive";
    case reason_code::failed:
        return "failed";
    case reason_code::wrong_backend:
        return "wrong_backend";
    case reason_code::skipped_one_side:
        return "skipped_one_side";
    case reason_code::skipped_differently:
        return "skipped_differently";
    case reason_code::not_measured:
        return "not_measured";
    case reason_code::foreign_load:
        return "foreign_load";
    case reason_code::throttled:
        return "throttled";
    case reason_code::not_selected:
        return "not_selected";
    case reason_code::below_resolution:
        return "below_resolution";
    case reason_code::bimodal:
        return "bimodal";
    case reason_code::too_noisy:
        return "too_noisy";
    case reason_code::rank_veto:
        return "rank_veto";
    }
    return "";
}

/// The marker's name in files and reports.
[[nodiscard]] inline const char* to_string(marker m) noexcept {
    switch (m) {
    case marker::small_but_real:
        return "small_but_real";
    case marker::suspicious:
        return "suspicious";
    case marker::bimodal:
        return "bimodal";
    case marker::below_resolution:
        return "below_resolution";
    case marker::advisory:
        return "advisory";
    case marker::optional:
        return "optional";
    case marker::accepted:
        return "accepted";
    case marker::acceptance_expired:
        return "acceptance_expired";
    case marker::throttled:
        return "throttled";
    case marker::not_selected:
        return "not_selected";
    case marker::implementation_changed:
        return "implementation_changed";
    case marker::implementation_varies:
        return "implementation_varies";
    case marker::board_factor_removed:
        return "board_factor_removed";
    case marker::common_mode:
        return "common_mode";
    case marker::baseline_drift:
        return "baseline_drift";
    case marker::rank_veto:
        return "rank_veto";
    case marker::interleaved:
        return "interleaved";
    case marker::noise_measured:
        return "noise_measured";
    case marker::unverified:
        return "unverified";
    }
    return "";
}

/// All verdicts, worst first: the order of reports.
inline constexpr std::array<verdict, 10> all_verdicts{
    verdict::regressed,      verdict::invalid,  verdict::incomparable, verdict::missing,       verdict::inconclusive,
    verdict::cross_hardware, verdict::improved, verdict::equivalent,   verdict::new_benchmark, verdict::skipped};

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
