// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_LOADING_HPP
#define PLUMBLINE_REPORT_LOADING_HPP

// What the DataLoader's benchmarks found out beside their figure, from the state of their sessions
// (loader/procedure.hpp).

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "plumbline/report/readings.hpp"
#include "plumbline/report/section.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

/// One line of the table: a benchmark's medians over its sessions, and samples that failed or what was ignored.
using loading_row = table_row<11>;

namespace detail {

inline constexpr std::array<const char*, loading_row::columns> loading_header{
    "DataLoader", "workers", "images/s", "MB/s", "CPU", "read", "decode", "transform", "copy", "waits", "epoch, first"};

/// The number of a reading with a few digits, "-" where there is none or nothing happened.
[[nodiscard]] inline std::string short_reading(const result::result& from, const std::string& name, double factor = 1) {
    const auto value = median_reading(from, name);
    if (!value || !(*value > 0)) return "-";
    const double scaled = *value * factor;
    return fixed(scaled, scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0);
}

/// "98 % decode": how much of its time the consumer waited, and for what most.
[[nodiscard]] inline std::string waits_of(const result::result& from) {
    const auto share = median_reading(from, "waiting_share");
    if (!share) return "-";
    std::string text = fixed(100 * *share, 0) + " %";
    std::pair<double, std::string> most{0.01, ""};
    for (const char* stage : {"read", "decode", "transform", "assemble", "copy"}) {
        const auto part = median_reading(from, std::string("waiting_for_") + stage + "_share");
        if (part && *part > most.first) most = {*part, stage};
    }
    return most.second.empty() ? text : text + ' ' + most.second;
}

/// The id of the training step that consumed the batches, "" where there was none.
[[nodiscard]] inline std::string trained_by(const result::result& from) {
    return from.sessions.empty() ? std::string() : reading_text(from.sessions.front(), "trains");
}

[[nodiscard]] inline std::vector<std::string> loading_remarks(const result::result& from) {
    std::vector<std::string> remarks;
    for (const result::session_result& each : from.sessions) {
        const std::string failures = reading_text(each, "failures");
        if (failures.empty()) continue;
        remarks.push_back("samples: " + failures);
        break;
    }
    if (const std::string trained = trained_by(from); !trained.empty()) {
        remarks.push_back("trains " + trained + ": " + short_reading(from, "consumer_ms") +
                          " ms a step beside waiting");
    }
    const auto oriented = median_reading(from, "oriented_samples");
    if (oriented && *oriented > 0) remarks.emplace_back("EXIF orientation is not applied, as in Pillow");
    const auto cached = median_reading(from, "cached_share_before");
    const bool cold = from.what.params.count("cold") != 0 && from.what.params.at("cold") == scalar(true);
    if (cached && !cold && *cached < 0.99) {
        remarks.push_back("only " + percent(*cached) + " of the files were in the page cache when it began");
    }
    return remarks;
}

/// One line of the curve over the number of workers: "4:3600".
[[nodiscard]] inline std::vector<std::pair<std::size_t, double>> parse_curve(std::string_view text) {
    std::vector<std::pair<std::size_t, double>> points;
    while (!text.empty()) {
        const std::size_t blank = std::min(text.find(' '), text.size());
        const std::string_view point = text.substr(0, blank);
        text.remove_prefix(std::min(blank + 1, text.size()));
        const std::size_t colon = point.find(':');
        if (colon == std::string_view::npos) return {};
        std::pair<std::size_t, double> read;
        const auto workers = std::from_chars(point.data(), point.data() + colon, read.first);
        const auto rate = std::from_chars(point.data() + colon + 1, point.data() + point.size(), read.second);
        if (workers.ec != std::errc{} || rate.ec != std::errc{}) return {};
        points.push_back(read);
    }
    return points;
}

/// The session that recommends what most sessions recommend, and how many agree; null when none does.
[[nodiscard]] inline std::pair<const result::session_result*, std::size_t> recommending(const result::result& from) {
    std::map<std::string, std::vector<const result::session_result*>> by_workers;
    for (const result::session_result& each : from.sessions) {
        const std::string workers = reading_text(each, "recommended_workers");
        if (!workers.empty()) by_workers[workers].push_back(&each);
    }
    std::pair<const result::session_result*, std::size_t> most{nullptr, 0};
    for (const auto& [workers, sessions] : by_workers) {
        if (sessions.size() > most.second) most = {sessions.front(), sessions.size()};
    }
    return most;
}

} // namespace detail

/// The line of a result; meaningful for results of the family "dataloader" that were measured.
[[nodiscard]] inline loading_row loading_row_of(const result::result& from) {
    loading_row row;
    const std::string prefix = from.what.family + '/';
    const std::string& id = from.what.id;
    const auto text = [&](const char* name, double factor = 1) { return detail::short_reading(from, name, factor); };
    const auto workers = detail::median_reading(from, "workers");
    const auto rate = detail::median_reading(from, "images_per_s");
    row.cells = {printable(id.rfind(prefix, 0) == 0 ? id.substr(prefix.size()) : id),
                 workers ? fixed(*workers, 0) : "-",
                 rate ? fixed(*rate, *rate < 100 ? 1 : 0) : "-",
                 text("read_mb_per_s"),
                 text("cpu_us_per_image", 1e-3),
                 text("read_us_per_image", 1e-3),
                 text("decode_us_per_image", 1e-3),
                 text("transform_us_per_image", 1e-3),
                 text("copy_us_per_image", 1e-3),
                 detail::waits_of(from),
                 text("epoch_start_ms") + ", " + text("first_batch_ms")};
    row.remarks = detail::loading_remarks(from);
    return row;
}

namespace detail {

class loading_writer {
public:
    loading_writer(std::ostream& out, const result::baseline& what, const options& how) : page_(out, how) {
        for (const result::result& each : what.results) {
            const bool measured = each.what.family == "dataloader" && each.status == result::result_status::ok;
            if (measured && median_reading(each, "images_per_s")) results_.push_back(&each);
        }
    }

    void write() {
        if (results_.empty()) return;
        write_table();
        write_limits();
        std::set<std::string> curves; // several benchmarks may rest on one sweep
        for (const result::result* each : results_) {
            const auto [session, agreeing] = recommending(*each);
            if (session == nullptr || !curves.insert(reading_text(*session, "curve")).second) continue;
            write_recommendation(*each, *session, agreeing);
        }
    }

private:
    void write_table() {
        std::vector<loading_row> rows;
        for (const result::result* each : results_) rows.push_back(loading_row_of(*each));
        page_.table(loading_header, rows);
        page_.indent(
            "MB/s as read; CPU, read, decode, transform, copy: ms an image, summed over the workers; waits: share of "
            "the consumer's time, and for what most; epoch, first: ms until an epoch has started, and until its "
            "first batch");
    }

    /// Each limit once, as the last session saw it: most are the machine's and the same for every benchmark.
    void write_limits() {
        std::map<std::string, std::string> limits;
        const std::string prefix = "limit_";
        for (const result::result* each : results_) {
            for (const result::session_result& session : each->sessions) {
                for (const auto& [name, value] : session.state) {
                    if (name.rfind(prefix, 0) == 0) limits[name.substr(prefix.size())] = printable(to_string(value));
                }
            }
        }
        for (const auto& [name, text] : limits) page_.indent(printable(name) + ": " + text, &palette::yellow);
    }

    void write_recommendation(const result::result& from, const result::session_result& session, std::size_t agreeing) {
        const bool pin = reading_text(session, "recommended_pin_memory") == "true";
        const std::string workers = reading_text(session, "recommended_workers");
        const std::string trained = trained_by(from);
        std::string text =
            (trained.empty() ? "recommended: num_workers=" : "recommended for " + trained + ": num_workers=") +
            workers + ", prefetch_factor=" + reading_text(session, "recommended_prefetch") +
            ", pin_memory=" + (pin ? "True" : "False");
        page_.bold(text);
        page_.indent(reading_text(session, "recommended_because"));
        if (agreeing < from.sessions.size()) {
            page_.indent("so in " + std::to_string(agreeing) + " of " + counted(from.sessions.size(), "session"));
        }
        const auto points = parse_curve(reading_text(session, "curve"));
        double best = 0;
        for (const auto& point : points) best = std::max(best, point.second);
        if (!(best > 0)) return;
        page_.plain("    workers  images/s  of workers times one's");
        for (const auto& [count, rate] : points) {
            const double ideal = static_cast<double>(count) * points.front().second;
            const bool known = points.front().first == 1 && ideal > 0;
            const std::string bar(static_cast<std::size_t>(24 * rate / best + 0.5), '#');
            page_.plain(pad_left(std::to_string(count), 11) + pad_left(fixed(rate, 0), 10) +
                        pad_left(known ? percent(rate / ideal) : "-", 9) + "  " + bar +
                        (std::to_string(count) == workers ? "  <- knee" : ""));
        }
    }

    section page_;
    std::vector<const result::result*> results_;
};

} // namespace detail

/// Writes what belongs to the figures of the DataLoader: a line for each benchmark with workers, rates, stages, waits
/// and starts, the limits that were seen, and the recommendation with its curve. Nothing where there is none.
inline void write_loading(std::ostream& out, const result::baseline& what, const options& how = {}) {
    detail::loading_writer(out, what, how).write();
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
