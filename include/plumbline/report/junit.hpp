// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_JUNIT_HPP
#define PLUMBLINE_REPORT_JUNIT_HPP

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>

#include "plumbline/report/options.hpp"
#include "plumbline/report/phrases.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

namespace detail {

/// Text for an XML attribute or element. Control characters, which XML 1.0 cannot say at all, are already '?'.
[[nodiscard]] inline std::string escape_xml(std::string_view text) {
    std::string safe;
    for (const char c : printable(text)) {
        switch (c) {
        case '<':
            safe += "&lt;";
            break;
        case '>':
            safe += "&gt;";
            break;
        case '&':
            safe += "&amp;";
            break;
        case '"':
            safe += "&quot;";
            break;
        default:
            safe += c;
        }
    }
    return safe;
}

/// How a finding looks to a CI system.
enum class test_state { passed, failed, errored, skipped };

[[nodiscard]] inline test_state state_of(const compare::finding& each) {
    using compare::verdict;
    switch (each.outcome) {
    case verdict::regressed:
        return is_red(each) ? test_state::failed : test_state::skipped;
    case verdict::invalid:
    case verdict::incomparable:
    case verdict::missing:
        return is_red(each) ? test_state::errored : test_state::skipped;
    case verdict::improved:
    case verdict::equivalent:
        return is_red(each) ? test_state::errored : test_state::passed; // suspicious
    default:
        return test_state::skipped; // inconclusive is never a pass
    }
}

/// One <testcase>; `message` explains what is no pass.
inline void write_case(std::ostream& out, const std::string& suite, const std::string& name, test_state state,
                       const std::string& kind, const std::string& message) {
    out << "    <testcase classname=\"" << escape_xml(suite) << "\" name=\"" << escape_xml(name) << "\" time=\"0\"";
    const std::string attributes = " message=\"" + escape_xml(message) + "\"";
    const std::string typed = attributes + " type=\"" + escape_xml(kind) + "\"";
    switch (state) {
    case test_state::passed:
        out << "/>\n";
        return;
    case test_state::failed:
        out << "><failure" << typed << "/></testcase>\n";
        return;
    case test_state::errored:
        out << "><error" << typed << "/></testcase>\n";
        return;
    case test_state::skipped:
        out << "><skipped" << attributes << "/></testcase>\n";
        return;
    }
}

[[nodiscard]] inline std::string message_of(const compare::comparison& in, const compare::finding& each) {
    std::string text = compare::to_string(each.outcome);
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

/// Writes the comparison as a JUnit report: a regression is a failure; missing, invalid, incomparable and suspicious
/// are errors; inconclusive, new and skipped are skipped with the reason; equivalent and improved pass. What concerns
/// the whole machine is a test case of its own.
inline void write_junit(std::ostream& out, const compare::comparison& what, const options& = {}) {
    using detail::test_state;
    std::size_t tests = what.findings.size(), failures = 0, errors = 0, skipped = 0;
    for (const compare::finding& each : what.findings) {
        const test_state state = detail::state_of(each);
        failures += state == test_state::failed;
        errors += state == test_state::errored;
        skipped += state == test_state::skipped;
    }
    const bool red_board = what.board && what.board->red;
    if (what.board) ++tests, failures += red_board;
    const std::string totals = " tests=\"" + std::to_string(tests) + "\" failures=\"" + std::to_string(failures) +
                               "\" errors=\"" + std::to_string(errors) + "\"";
    out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"plumbline\"" << totals << " time=\"0\">\n"
        << "  <testsuite name=\"plumbline\"" << totals << " skipped=\"" << skipped << "\" time=\"0\">\n";
    if (what.board) {
        detail::write_case(out, "plumbline", "board", red_board ? test_state::failed : test_state::passed, "board",
                           boards(what));
    }
    for (const compare::finding& each : what.findings) {
        const std::string suite = "plumbline." + each.id.substr(0, each.id.find('/'));
        detail::write_case(out, suite, title(each), detail::state_of(each), compare::to_string(each.outcome),
                           detail::message_of(what, each));
    }
    out << "    <system-out>" << detail::escape_xml(summary(what));
    const std::string wide = machine_wide(what);
    if (!wide.empty()) out << "\nmachine-wide: " << detail::escape_xml(wide);
    for (const compare::cause& each : what.why.causes) {
        out << "\ncause: " << detail::escape_xml(headline(each));
        for (const std::string& detail : details(each)) out << "\n  " << detail::escape_xml(detail);
    }
    for (const compare::cause& each : what.why.set_aside) {
        out << "\nnot blamed: " << detail::escape_xml(not_blamed(each));
    }
    if (!what.why.canary_text.empty()) out << "\ncanary: " << detail::escape_xml(what.why.canary_text);
    for (const environment::difference* each : other_changes(what)) {
        out << "\nchanged: " << detail::escape_xml(describe(*each));
    }
    for (const std::string& step : next_steps(what)) out << "\nnext: " << detail::escape_xml(step);
    out << "</system-out>\n  </testsuite>\n</testsuites>\n";
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
