// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_RESULTS_HPP
#define PLUMBLINE_REPORT_RESULTS_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "plumbline/report/loading.hpp"
#include "plumbline/report/options.hpp"
#include "plumbline/report/readings.hpp"
#include "plumbline/report/training.hpp"
#include "plumbline/result/alarm.hpp"
#include "plumbline/result/limit.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

/// What the table says about one result.
struct result_row {
    std::string benchmark;
    std::string value;               ///< median of the sessions' medians, "172.7 us"
    std::string rate;                ///< "795.8 TFLOP/s" or "4.02 TB/s", by formula over the time
    std::string limit;               ///< of the measured limit: "98.2 %"
    std::string spread;              ///< between sessions: standard deviation of ln(value) as a percentage
    std::string implementation;      ///< what most sessions ran
    std::vector<std::string> alarms; ///< what is wrong whatever the value is
    std::string remarks;             ///< why there is no value, or marks: "throttled, unverified"
};

namespace detail {

/// FLOP/s where the work is dense in FLOP, bytes/s where it is not: at 10 FLOP a byte every device is bound by memory.
[[nodiscard]] inline std::string rate_of(const workload::description& what, double value) {
    const auto unit = find_unit(what.unit);
    if (!unit || unit->dimension != "s" || !(value > 0)) return {};
    const double seconds = value * unit->factor;
    const bool dense = what.flop > 0 && what.flop >= 10 * what.bytes;
    if (dense) return quantity(what.flop / seconds, "FLOP/s");
    if (what.bytes > 0) return quantity(what.bytes / seconds, "B/s");
    return {};
}

/// The implementation most sessions ran, and whether there were others.
[[nodiscard]] inline std::pair<std::string, bool> implementation_of(const result::result& from) {
    std::map<std::string, std::size_t> sessions;
    for (const result::session_result& each : from.sessions) {
        if (!each.ran.implementation.empty()) ++sessions[each.ran.implementation];
    }
    const auto most = std::max_element(sessions.begin(), sessions.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return {most == sessions.end() ? std::string() : most->first, sessions.size() > 1};
}

/// A mark of a session in words.
[[nodiscard]] inline std::string words_of(const std::string& flag) {
    if (flag == result::flag::throttled) return "clock held down";
    if (flag == result::flag::foreign_load) return "another process worked on the device";
    if (flag == result::flag::budget_exhausted) return "time ran out before the median was settled";
    if (flag == result::flag::below_resolution) return "too short for the timer";
    if (flag == result::flag::host_bound) return "starting it takes longer than the work";
    return flag;
}

} // namespace detail

/// One row of the table.
[[nodiscard]] inline result_row row_of(const result::result& from, const result::device& on) {
    result_row row;
    row.benchmark = printable(from.what.metric == "time" ? from.what.id : from.what.id + " (" + from.what.metric + ')');
    const auto remark = [&row](const std::string& text) {
        row.remarks += (row.remarks.empty() ? "" : ", ") + printable(text);
    };
    if (from.status != result::result_status::ok) {
        remark((from.status == result::result_status::failed ? "FAILED: " : "skipped: ") + from.reason);
        return row;
    }
    const std::vector<double> values = detail::session_values(from);
    if (values.empty()) {
        remark("no samples");
        return row;
    }
    const double value = stats::median(values);
    row.value = quantity(value, from.what.unit);
    row.rate = detail::rate_of(from.what, value);
    if (const auto limit = result::fraction_of_limit(from.what, on, value)) row.limit = percent(*limit);
    for (const result::alarm& each : result::alarms(from, on)) {
        const bool some = each.sessions > 0 && each.sessions < from.sessions.size();
        row.alarms.push_back(printable(each.text) + (some ? " (in " + std::to_string(each.sessions) + " of " +
                                                                std::to_string(from.sessions.size()) + " sessions)"
                                                          : ""));
    }
    const bool positive = std::all_of(values.begin(), values.end(), [](double v) { return v > 0; });
    if (values.size() > 1 && positive) {
        std::vector<double> logs;
        for (const double each : values) logs.push_back(std::log(each));
        row.spread = percent(stats::standard_deviation(logs));
    }
    const auto [implementation, varies] = detail::implementation_of(from);
    row.implementation = printable(implementation);
    if (varies) remark("implementation varies");
    std::map<std::string, std::size_t> flags;
    for (const result::session_result& each : from.sessions) {
        for (const std::string& flag : std::set<std::string>(each.flags.begin(), each.flags.end())) ++flags[flag];
    }
    for (const auto& [flag, sessions] : flags) {
        const bool everywhere = sessions == from.sessions.size();
        const std::string text = detail::words_of(flag);
        remark(everywhere ? text
                          : text + " in " + std::to_string(sessions) + " of " + std::to_string(from.sessions.size()));
    }
    if (!from.verified) remark("unverified");
    return row;
}

namespace detail {

/// The table: columns as wide as they must be; on a narrow terminal the implementation goes to the next line.
class results_writer {
public:
    results_writer(std::ostream& out, const result::baseline& what, const options& how)
        : out_(out), what_(what), how_(how), colours_(how.colour) {
        for (const result::result& each : what.results) rows_.push_back(row_of(each, what.device));
    }

    void write() {
        write_heading();
        measure_columns();
        std::size_t fixed_width = 0;
        for (const std::size_t width : widths_) fixed_width += width + gap;
        std::size_t widest = 0;
        for (const result_row& each : rows_) widest = std::max(widest, columns(each.implementation));
        beside_ = how_.width == 0 || fixed_width + widest <= how_.width;
        put(header_, "implementation");
        for (const result_row& each : rows_) write_row(each);
        write_limits();
        write_training(out_, what_, how_);
        write_loading(out_, what_, how_);
        write_counts();
    }

private:
    static constexpr std::size_t gap = 2;
    using cells = std::array<std::string, 5>;

    [[nodiscard]] static cells cells_of(const result_row& row) {
        return {row.benchmark, row.value, row.rate, row.limit, row.spread};
    }

    /// The backend is said first of all: a table of the CPU must not be taken for one of the GPU.
    void write_heading() {
        std::set<std::string> backends;
        for (const result::result& each : what_.results) backends.insert(each.backend);
        if (backends.empty()) backends.insert(what_.device.backend);
        std::string names;
        for (const std::string& each : backends) names += (names.empty() ? "" : ", ") + printable(each);
        std::size_t failed = 0;
        for (const result::session& each : what_.sessions) failed += each.failed;
        std::string text = "backend " + names;
        if (!what_.device.model.empty()) text += ": " + printable(what_.device.model);
        text += "; " + counted(what_.sessions.size(), "session");
        out_ << colours_.bold(text) << '\n';
        if (failed > 0) out_ << colours_.red(counted(failed, "session") + " failed:") << '\n';
        const auto cut = what_.checks.find(result::sessions_check);
        if (cut != what_.checks.end()) {
            for (const std::string& line : wrapped(printable(to_string(cut->second)), how_.width))
                out_ << colours_.yellow(line) << '\n';
        }
        for (const result::session& each : what_.sessions) {
            if (each.failed) out_ << "  " << printable(each.started) << "  " << printable(each.reason) << '\n';
        }
    }

    void measure_columns() {
        for (std::size_t i = 0; i < header_.size(); ++i) widths_[i] = columns(header_[i]);
        for (const result_row& each : rows_) {
            const cells row = cells_of(each);
            for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], columns(row[i]));
        }
        // One long id must not push the numbers of all others off the screen: it gets a line of its own.
        std::size_t numbers = 0;
        for (std::size_t i = 1; i < widths_.size(); ++i) numbers += gap + widths_[i];
        const std::size_t room = how_.width > numbers + 12 ? how_.width - numbers : std::size_t{12};
        widths_[0] = std::min({widths_[0], std::size_t{56}, how_.width == 0 ? widths_[0] : room});
    }

    void put(const cells& row, const std::string& last) {
        std::string text = pad_right(row[0], widths_[0]);
        if (columns(row[0]) > widths_[0]) {
            out_ << row[0] << '\n';
            text = std::string(widths_[0], ' ');
        }
        for (std::size_t i = 1; i < row.size(); ++i) text += std::string(gap, ' ') + pad_left(row[i], widths_[i]);
        if (beside_ && !last.empty()) text += std::string(gap, ' ') + last;
        text.erase(text.find_last_not_of(' ') + 1);
        out_ << text << '\n';
    }

    void write_row(const result_row& each) {
        const std::string below(4, ' ');
        if (each.value.empty()) {
            out_ << each.benchmark << '\n';
        } else {
            put(cells_of(each), each.implementation);
            if (!beside_ && !each.implementation.empty()) out_ << below << each.implementation << '\n';
        }
        const std::size_t room = how_.width > below.size() ? how_.width - below.size() : 0;
        for (const std::string& alarm : each.alarms) {
            for (const std::string& line : wrapped("ALARM: " + alarm, room))
                out_ << below << colours_.red(line) << '\n';
        }
        if (each.remarks.empty()) return;
        const bool failed = each.remarks.rfind("FAILED", 0) == 0;
        for (const std::string& line : wrapped(each.remarks, room)) {
            out_ << below << (failed ? colours_.red(line) : colours_.yellow(line)) << '\n';
        }
    }

    void write_limits() {
        std::string text;
        for (const auto& [name, value] : what_.device.ceilings) {
            for (const auto& [tail, unit] :
                 {std::pair(std::string("_flop_per_s"), "FLOP/s"), std::pair(std::string("_bytes_per_s"), "B/s")}) {
                if (name.size() <= tail.size() || name.substr(name.size() - tail.size()) != tail) continue;
                const std::string of = printable(name.substr(0, name.size() - tail.size()));
                text += (text.empty() ? "" : ", ") + of + ' ' + quantity(value, unit);
            }
        }
        if (text.empty()) return;
        for (const std::string& line : wrapped("limits measured here: " + text, how_.width)) out_ << line << '\n';
    }

    void write_counts() {
        std::array<std::size_t, 3> by_status{};
        for (const result::result& each : what_.results) ++by_status[static_cast<std::size_t>(each.status)];
        std::size_t alarms = 0;
        for (const result_row& each : rows_) alarms += each.alarms.size();
        out_ << colours_.bold(counted(by_status[0], "result"));
        if (alarms > 0) out_ << ", " << colours_.red(counted(alarms, "alarm"));
        if (by_status[1] > 0) out_ << ", " << colours_.red(std::to_string(by_status[1]) + " failed");
        if (by_status[2] > 0) out_ << ", " << std::to_string(by_status[2]) << " skipped";
        if (!what_.selected.left_out.empty()) out_ << ", " << what_.selected.left_out.size() << " not selected";
        out_ << '\n';
    }

    std::ostream& out_;
    const result::baseline& what_;
    const options& how_;
    palette colours_;
    std::vector<result_row> rows_;
    cells header_{"benchmark", "value", "rate", "of limit", "spread"};
    std::array<std::size_t, 5> widths_{};
    bool beside_ = true;
};

} // namespace detail

/// Writes the table of a run: the backend that ran, and for each result its time, rate, share of the measured limit,
/// spread between sessions, implementation and marks. Wraps to options::width columns.
inline void write_results(std::ostream& out, const result::baseline& what, const options& how = {}) {
    detail::results_writer(out, what, how).write();
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
