// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_TRAINING_HPP
#define PLUMBLINE_REPORT_TRAINING_HPP

// What the training steps of a run say together: what 16 bits gain over fp32 and TF32, what the host costs.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/core/unit.hpp"
#include "plumbline/report/readings.hpp"
#include "plumbline/report/section.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/workload/training_step.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

/// One leg of a network over the results of a run: medians over their sessions. Empty is what the run has not measured.
struct training_leg {
    workload::training_step::params what; ///< without modes
    std::optional<double> burst_s;        ///< one step from idle, as a graph
    std::optional<double> sustained_s;    ///< one step at the power cap, as a graph
    std::optional<double> stream_s;       ///< one step from idle, kernel by kernel
    std::optional<double> over_tf32;  ///< 16-bit legs: time of that leg's step over this one's, same network and regime
    std::optional<double> over_fp32;  ///< the same, for every other leg
    std::optional<double> host_bound; ///< share of a streamed step that a graph does without, at least 0
    std::optional<double> launches;   ///< kernels and copies of a step
    std::optional<double> allocated_bytes; ///< at the peak, workspaces of libraries included
    std::optional<double> skipped_steps;   ///< of the first fifty, for a gradient that was not finite
    std::optional<double> loss_1, loss_50; ///< on one fixed batch from the initial weights

    /// Time of a step in the first regime that was measured: burst, sustained, stream.
    [[nodiscard]] std::optional<double> step_s() const {
        return burst_s ? burst_s : sustained_s ? sustained_s : stream_s;
    }
    /// Tokens or images a second.
    [[nodiscard]] std::optional<double> items_per_s() const {
        const auto step = step_s();
        if (!step) return std::nullopt;
        return static_cast<double>(what.items()) / *step;
    }
};

namespace detail {

/// The parameters of a result of the family that was measured; nothing for any other, or an id that this version
/// does not know.
[[nodiscard]] inline std::optional<workload::training_step::params> training_params(const result::result& from) {
    const bool measured =
        from.what.family == "training_step" && from.what.metric == "time" && from.status == result::result_status::ok;
    if (!measured) return std::nullopt;
    try {
        return workload::training_step::parse(from.what.id);
    } catch (const usage_error&) {
        return std::nullopt;
    }
}

/// Median time of a result in seconds.
[[nodiscard]] inline std::optional<double> median_seconds(const result::result& from) {
    const auto own = find_unit(from.what.unit);
    const std::vector<double> values = session_values(from);
    if (!own || own->dimension != "s" || values.empty()) return std::nullopt;
    const double seconds = stats::median(values) * own->factor;
    if (!(seconds > 0)) return std::nullopt;
    return seconds;
}

/// Adds a result to its leg. What does not depend on how a step is launched is taken from the first that has it.
inline void add_to_leg(training_leg& leg, const result::result& from, const workload::modes& mode) {
    const std::optional<double> seconds = median_seconds(from);
    if (mode.stream) {
        if (!mode.sustained) leg.stream_s = seconds;
    } else {
        (mode.sustained ? leg.sustained_s : leg.burst_s) = seconds;
    }
    const auto take = [&](std::optional<double>& into, const char* name) {
        if (!into) into = median_part(from, name);
    };
    take(leg.launches, "launches_per_step");
    take(leg.allocated_bytes, "allocated_bytes");
    take(leg.skipped_steps, "skipped_steps");
    take(leg.loss_1, "loss_1");
    take(leg.loss_50, "loss_50");
}

/// How many times as fast `leg` is as the leg of `type` of the same network: from idle, else at the cap.
[[nodiscard]] inline std::optional<double> speed_up(const std::vector<training_leg>& legs, const training_leg& leg,
                                                    workload::dtype type) {
    workload::training_step::params other = leg.what;
    other.type = type;
    if (leg.what.type == type) return std::nullopt;
    const auto at =
        std::find_if(legs.begin(), legs.end(), [&](const training_leg& each) { return each.what == other; });
    if (at == legs.end()) return std::nullopt;
    if (at->burst_s && leg.burst_s) return *at->burst_s / *leg.burst_s;
    if (at->sustained_s && leg.sustained_s) return *at->sustained_s / *leg.sustained_s;
    return std::nullopt;
}

} // namespace detail

/// The legs that a run has measured, in the order of its results.
[[nodiscard]] inline std::vector<training_leg> training_legs(const result::baseline& run) {
    std::vector<training_leg> legs;
    for (const result::result& each : run.results) {
        const auto read = detail::training_params(each);
        if (!read) continue;
        training_leg fresh;
        fresh.what = *read;
        fresh.what.mode = {};
        auto at = std::find_if(legs.begin(), legs.end(), [&](const auto& known) { return known.what == fresh.what; });
        if (at == legs.end()) at = legs.insert(at, fresh);
        detail::add_to_leg(*at, each, read->mode);
    }
    for (training_leg& each : legs) {
        if (each.what.mixed()) each.over_tf32 = detail::speed_up(legs, each, workload::dtype::tf32);
        each.over_fp32 = detail::speed_up(legs, each, workload::dtype::fp32);
        if (each.burst_s && each.stream_s) each.host_bound = std::max(0.0, 1 - *each.burst_s / *each.stream_s);
    }
    return legs;
}

using training_row = table_row<11>;

namespace detail {

inline constexpr std::array<const char*, training_row::columns> training_header{
    "training step", "step",     "sustained", "items/s", "over tf32",   "over fp32",
    "host-bound",    "launches", "memory",    "skipped", "loss 1 -> 50"};

} // namespace detail

/// The line of a leg; "-" is what the run has not measured.
[[nodiscard]] inline training_row training_row_of(const training_leg& leg) {
    const auto text = [](const std::optional<double>& value, auto write) {
        return value ? std::string(write(*value)) : std::string("-");
    };
    const auto time = [](double seconds) { return quantity(seconds, "s"); };
    const auto whole = [](double value) { return fixed(value, 0); };
    const auto times = [](double value) { return fixed(value, 2) + 'x'; };
    const auto loss = [](double value) { return fixed(value, decimals_for(value, 4)); };
    const std::string prefix = "training_step/";
    training_row row;
    row.cells = {workload::training_step::id(leg.what).substr(prefix.size()),
                 text(leg.burst_s ? leg.burst_s : leg.stream_s, time),
                 text(leg.sustained_s, time),
                 text(leg.items_per_s(), [](double rate) { return fixed(rate, decimals_for(rate, 3)); }),
                 text(leg.over_tf32, times),
                 text(leg.over_fp32, times),
                 text(leg.host_bound, [](double share) { return percent(share); }),
                 text(leg.launches, whole),
                 text(leg.allocated_bytes, [](double bytes) { return quantity(bytes, "B", 3); }),
                 text(leg.skipped_steps, whole),
                 text(leg.loss_1, loss) + " -> " + text(leg.loss_50, loss)};
    return row;
}

/// Writes what the training steps of a run say together, a line for each leg of each network. Nothing where there is
/// none.
inline void write_training(std::ostream& out, const result::baseline& run, const options& how = {}) {
    std::vector<training_row> rows;
    for (const training_leg& each : training_legs(run)) rows.push_back(training_row_of(each));
    if (rows.empty()) return;
    detail::section page(out, how);
    page.table(detail::training_header, rows);
    page.indent("step: one optimizer step from idle, sustained: at the power cap; items: tokens or images; over tf32, "
                "over fp32: that leg's step over this one's in the same run; host-bound: share of a step launched "
                "kernel by kernel that a graph does without; memory: allocated at the peak, workspaces included; "
                "skipped, loss: of the first fifty steps, on one fixed batch");
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
