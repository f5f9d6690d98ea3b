// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_OPTIONS_HPP
#define PLUMBLINE_REPORT_OPTIONS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "plumbline/report/format.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

/// What all reports of a comparison are told beside it.
struct options {
    std::string base;           ///< what the base is, in one line: see describe(baseline)
    std::string candidate;      ///< what the candidate is
    bool colour = false;        ///< text only: see wants_colour
    std::size_t width = 120;    ///< text only: columns to wrap at; 0 never wraps
    bool all = true;            ///< text only: false leaves out equivalent findings that have nothing to tell
    std::size_t budget = 58000; ///< Markdown only: most bytes written (a comment on GitHub takes 65,536)
};

/// Whether a terminal of this process may get colours: it is one (the caller knows), and NO_COLOR is not set
/// (https://no-color.org: to anything but the empty string).
[[nodiscard]] inline bool wants_colour(bool is_terminal) {
    const char* no_colour = std::getenv("NO_COLOR"); // NOLINT(concurrency-mt-unsafe): read before threads exist
    return is_terminal && (no_colour == nullptr || *no_colour == '\0');
}

/// A baseline in one line: "h200.json: NVIDIA H200, cuda, 2026-11-30, 5 sessions in 1 epoch".
[[nodiscard]] inline std::string describe(const result::baseline& what, const std::string& file) {
    std::set<result::epoch> epochs;
    for (const result::session& each : what.sessions) epochs.insert(each.when);
    std::string text = printable(file) + ": ";
    if (!what.device.model.empty()) text += printable(what.device.model) + ", ";
    if (!what.device.backend.empty()) text += printable(what.device.backend) + ", ";
    return text + what.created.substr(0, 10) + ", " + counted(what.sessions.size(), "session") + " in " +
           counted(epochs.size(), "epoch");
}

namespace detail {

/// Colours of a terminal, or nothing at all.
class palette {
public:
    explicit palette(bool on) : on_(on) {}

    [[nodiscard]] std::string red(const std::string& text) const { return paint("1;31", text); }
    [[nodiscard]] std::string yellow(const std::string& text) const { return paint("33", text); }
    [[nodiscard]] std::string green(const std::string& text) const { return paint("32", text); }
    [[nodiscard]] std::string bold(const std::string& text) const { return paint("1", text); }

private:
    [[nodiscard]] std::string paint(const char* code, const std::string& text) const {
        return on_ ? "\x1b[" + std::string(code) + 'm' + text + "\x1b[0m" : text;
    }
    bool on_;
};

/// Breaks a text at spaces into lines of at most `width` columns (0: one line); a longer word stays whole.
[[nodiscard]] inline std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
    std::vector<std::string> lines{{}};
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = std::min(text.find(' ', begin), text.size());
        const std::string word = text.substr(begin, end - begin);
        std::string& line = lines.back();
        if (width != 0 && !line.empty() && columns(line) + 1 + columns(word) > width)
            lines.push_back(word);
        else if (begin == 0)
            line = word;
        else
            line += ' ' + word;
        begin = end + 1;
    }
    return lines;
}

} // namespace detail

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
