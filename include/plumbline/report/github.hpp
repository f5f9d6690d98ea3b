// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_GITHUB_HPP
#define PLUMBLINE_REPORT_GITHUB_HPP

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>

#include "plumbline/report/options.hpp"
#include "plumbline/report/phrases.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

namespace detail {

/// Escapes of GitHub's workflow commands: the runner reads a command up to the end of its line.
/// https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
[[nodiscard]] inline std::string escape_command(std::string_view text, bool property) {
    std::string safe;
    for (const char c : text) {
        if (c == '%')
            safe += "%25";
        else if (c == '\r')
            safe += "%0D";
        else if (c == '\n')
            safe += "%0A";
        else if (property && c == ':')
            safe += "%3A";
        else if (property && c == ',')
            safe += "%2C";
        else
            safe += c;
    }
    return safe;
}

/// One annotation: `level` is "error", "warning" or "notice".
inline void annotate(std::ostream& out, const char* level, const std::string& heading, const std::string& text) {
    out << "::" << level << " title=" << escape_command(shortened(heading, 200), true)
        << "::" << escape_command(shortened(text, 1000), false) << '\n';
}

[[nodiscard]] inline std::string annotation(const compare::comparison& in, const compare::finding& each) {
    std::string text = title(each);
    const auto add = [&text](const std::string& more) {
        if (!more.empty()) text += "; " + more;
    };
    add(values(each));
    add(change(each, true));
    add(implementation_change(each));
    for (const std::string& detail : details(each)) add(detail);
    if (const std::string cause = cause_of(in, each); !cause.empty()) add("cause: " + cause);
    return text;
}

} // namespace detail

/// Writes the comparison as annotations of a GitHub workflow. GitHub shows ten errors and ten warnings of a step, so
/// the worst come first and what is left out is counted in the closing notice.
inline void write_github(std::ostream& out, const compare::comparison& what, const options& = {}) {
    constexpr std::size_t shown = 9; // the tenth is for machine-wide findings
    std::size_t errors = 0, warnings = 0, left_out = 0;
    if (what.machine_wide)
        detail::annotate(out, "error", "plumbline: machine-wide", machine_wide(what));
    else if (what.board && what.board->red)
        detail::annotate(out, "error", "plumbline: board", boards(what));
    for (const compare::finding& each : what.findings) {
        using compare::verdict;
        const bool error = is_red(each);
        const bool open = each.outcome == verdict::inconclusive || each.outcome == verdict::regressed;
        const bool warning = !error && (open || !each.alarms.empty());
        if (!error && !warning) continue;
        if ((error ? errors : warnings)++ >= shown) {
            ++left_out;
            continue;
        }
        detail::annotate(out, error ? "error" : "warning",
                         std::string("plumbline: ") + compare::to_string(each.outcome), detail::annotation(what, each));
    }
    std::string last = summary(what);
    if (left_out > 0) last += "; " + counted(left_out, "more annotation") + " left out";
    for (const compare::cause& each : what.why.causes) {
        last += "; cause: " + headline(each);
        if (!each.remedy.empty()) last += ": " + printable(each.remedy);
    }
    for (const environment::difference* each : other_changes(what)) last += "; changed: " + describe(*each);
    for (const std::string& step : next_steps(what)) last += "; " + step;
    detail::annotate(out, "notice", "plumbline", last);
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
