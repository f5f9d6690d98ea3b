// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_POLICY_HPP
#define PLUMBLINE_COMPARE_POLICY_HPP

#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// Starting noise and margin of one class of benchmarks. Noise is a standard deviation of ln(value); margins are
/// fractions (0.015 is 1.5 %). Measured noise of a baseline replaces s0 and s_e; margins are never calibrated.
struct class_policy {
    double s0 = 0.01;                ///< between sessions of one epoch
    std::optional<double> s0_short;  ///< the same for values below `policy::short_below_ns`; s0 when absent
    double s_e = 0.005;              ///< between epochs (boots, days) of one board
    std::optional<double> s_e_board; ///< between boards, once the board's compute factor is removed; s_e when absent
    double margin = 0.03;            ///< against a stored baseline
    std::optional<double> margin_interleaved; ///< against an interleaved control; `margin` when absent
    bool advisory = false;                    ///< its regressions are shown and never make the exit code 1

    bool operator==(const class_policy&) const = default;
};

/// Overrides for the benchmarks whose id matches a glob. Later rules win over earlier ones, field by field.
struct rule {
    std::string match;            ///< glob over the id: `*` any text, `?` one character
    std::string metric;           ///< only this metric; empty for all
    std::optional<double> margin; ///< stored and interleaved alike
    std::optional<double> s0;
    std::optional<double> s_e;
    std::optional<double> resolution;  ///< absolute resolution in the base's unit: see policy::resolution_s
    std::optional<bool> required;      ///< false: may be missing or invalid without exit code 4
    std::optional<bool> advisory;      ///< true: may regress without exit code 1
    std::optional<bool> compute_bound; ///< whether the board's compute factor applies

    bool operator==(const rule&) const = default;
};

/// A change somebody has looked at and lives with for a while.
struct acceptance {
    std::string match;           ///< glob over the id
    std::string metric;          ///< only this metric; empty for all
    std::optional<double> up_to; ///< largest change accepted, as a fraction; any when absent
    std::string until;           ///< last day it holds, YYYY-MM-DD; empty never expires
    std::string reason;
    std::string who;

    bool operator==(const acceptance&) const = default;
};

/// Everything about a comparison that is a decision and not a measurement. The defaults are those of a nightly job
/// on H200-class machines.
struct policy {
    /// By class name: "kernel", "sustained", "training_step", "dataloader", "host", "cpu_kernel", "imported".
    std::map<std::string, class_policy> classes = {
        {"kernel", {0.0015, 0.004, 0.002, 0.004, 0.015, 0.003, false}},
        {"sustained", {0.02, {}, 0.02, {}, 0.07, {}, false}},
        {"training_step", {0.01, {}, 0.01, {}, 0.05, {}, false}},
        {"cpu_kernel", {0.02, {}, 0.02, {}, 0.10, {}, false}},
        {"dataloader", {0.08, {}, 0.06, {}, 0.25, 0.10, true}},
        {"host", {0.08, {}, 0.06, {}, 0.25, 0.10, true}},
        {"imported", {0.01, {}, 0.005, {}, 0.03, {}, false}},
    };
    double short_below_ns = 20e3;     ///< values below this use s0_short
    double d0 = 4;                    ///< degrees of freedom the starting noise is worth
    double floor = 0.0005;            ///< smallest standard deviation between sessions, in ln units
    double q = 0.01;                  ///< false discovery rate, regressions and improvements apart
    double alpha_equivalence = 0.05;  ///< of each of the two one-sided tests
    double alpha_rank = 0.05;         ///< the exact rank test must reach this too (a veto)
    std::size_t rank_minimum = 5;     ///< sessions on each side from which the rank test can veto
    double resolution_s = 0;          ///< absolute resolution of a time where the file has none; 0: unknown
    double suspicious_speedup = 2;    ///< an improvement beyond this factor is a question about the data
    double limit_tolerance = 1.1;     ///< so is one above this multiple of the hardware's measured limit
    double board_factor_limit = 0.03; ///< a board slower than this is red by itself
    double board_spread = 0.012;      ///< sd between boards of compute-bound work when no canary can remove it
    double compute_intensity = 100;   ///< FLOP per byte from which a benchmark follows the board's compute factor
    std::string compute_canary = "probe/canary_mma*"; ///< glob of the benchmark the board's factor comes from
    double common_mode_share = 0.8;                   ///< share of pairs moving one way that makes a machine-wide shift
    std::size_t common_mode_minimum = 5;              ///< pairs needed to speak of one
    bool foreign_load_is_invalid = true;
    bool throttled_is_invalid = false;
    bool allow_hardware_diff = false; ///< other hardware: ratios without verdicts instead of a refusal
    bool strict = false;              ///< inconclusive results give exit code 5
    std::string today;                ///< YYYY-MM-DD for expiries; empty: the day the candidate was made
    std::vector<rule> rules;
    std::vector<acceptance> accepted;

    bool operator==(const policy&) const = default;
};

/// Throws usage_error for a policy under which no verdict can be computed: a probability outside (0, 1), noise or a
/// margin that is not positive, no degrees of freedom.
inline void validate(const policy& rules) {
    const auto need = [](bool good, const std::string& field, const std::string& expected) {
        if (!good) throw usage_error("policy: " + field + " must be " + expected);
    };
    const auto positive = [&](double v, const std::string& field) {
        need(v > 0 && std::isfinite(v), field, "a positive number");
    };
    const auto probability = [&](double v, const std::string& field) {
        need(v > 0 && v < 1, field, "between 0 and 1");
    };
    probability(rules.q, "q");
    probability(rules.alpha_equivalence, "alpha_equivalence");
    probability(rules.alpha_rank, "alpha_rank");
    positive(rules.d0, "d0");
    positive(rules.floor, "floor");
    need(rules.suspicious_speedup > 1, "suspicious_speedup", "above 1");
    need(rules.resolution_s >= 0, "resolution_s", "zero or more");
    for (const auto& [name, c] : rules.classes) {
        const std::string of = "classes." + name + ".";
        positive(c.margin, of + "margin");
        positive(c.margin_interleaved.value_or(c.margin), of + "margin_interleaved");
        need(c.s0 >= 0 && c.s0_short.value_or(0) >= 0, of + "s0", "zero or more");
        need(c.s_e >= 0 && c.s_e_board.value_or(0) >= 0, of + "s_e", "zero or more");
    }
    for (const auto& r : rules.rules) {
        need(r.margin.value_or(1) > 0, "rules[" + r.match + "].margin", "a positive number");
        need(r.s0.value_or(0) >= 0 && r.s_e.value_or(0) >= 0, "rules[" + r.match + "].s0 and s_e", "zero or more");
    }
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
