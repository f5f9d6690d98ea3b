// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_MARKDOWN_HPP
#define PLUMBLINE_REPORT_MARKDOWN_HPP

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>

#include "plumbline/report/options.hpp"
#include "plumbline/report/phrases.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

namespace detail {

/// Text that Markdown and the HTML in it leave as it is, on one line and within a table cell.
[[nodiscard]] inline std::string escape_markdown(std::string_view text) {
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
        case '@': // a name in a comment on a pull request would call somebody
            safe += "&#64;";
            break;
        case '\\':
        case '`':
        case '*':
        case '_':
        case '|':
        case '[':
        case ']':
        case '#':
        case '~':
            safe += '\\';
            safe += c;
            break;
        default:
            safe += c;
        }
    }
    return safe;
}

/// The report for a pull request: a summary, a table of what needs eyes, worst first, and the rest folded away. Never
/// larger than the budget: what does not fit is counted.
class markdown_writer {
public:
    markdown_writer(std::ostream& out, const compare::comparison& what, const options& how)
        : out_(out), what_(what), how_(how) {}

    void write() {
        put("### plumbline: " + escape_markdown(summary(what_)) + "\n\n");
        for (const auto& [name, text] : {std::pair("base", how_.base), std::pair("new", how_.candidate)}) {
            if (!text.empty()) put("- " + std::string(name) + ": " + escape_markdown(shortened(text, 200)) + '\n');
        }
        for (const std::string& text : {machine_wide(what_), boards(what_)}) {
            if (!text.empty()) put("- **" + escape_markdown(shortened(text, 400)) + "**\n");
        }
        put("\n");
        put(causes());
        // What follows the tables is written first, so that its size is known.
        const std::string tail = environment() + notes() + steps();
        reserved_ = tail.size();
        table(true);
        table(false);
        out_ << tail;
    }

private:
    void put(const std::string& text) {
        out_ << text;
        used_ += text.size();
    }

    /// Whether a finding is for everybody's eyes, or is only there to be complete.
    [[nodiscard]] static bool prominent(const compare::finding& each) {
        using compare::verdict;
        if (is_red(each) || !each.alarms.empty()) return true;
        switch (each.outcome) {
        case verdict::equivalent:
        case verdict::skipped:
        case verdict::new_benchmark:
            return false;
        case verdict::missing:
            return !each.has(compare::marker::not_selected);
        default:
            return true;
        }
    }

    void table(bool wanted) {
        constexpr std::size_t reserve_for_end = 300; // the lines that close the table and count what did not fit
        const std::string head = "| | benchmark | values | change | |\n|---|---|---|---|---|\n";
        std::size_t rows = 0, left_out = 0;
        for (const compare::finding& each : what_.findings) {
            if (prominent(each) != wanted) continue;
            const std::string text = row(each);
            if (left_out > 0 || used_ + text.size() + head.size() + reserved_ + reserve_for_end > how_.budget) {
                ++left_out;
                continue;
            }
            if (rows++ == 0) put(wanted ? head : "<details><summary>everything else</summary>\n\n" + head);
            put(text);
        }
        if (rows > 0) put("\n");
        if (left_out > 0) put(counted(left_out, "more finding") + ": see the JSON or text report.\n\n");
        if (rows > 0 && !wanted) put("</details>\n\n");
    }

    [[nodiscard]] static std::string row(const compare::finding& each) {
        const bool equivalent = each.outcome == compare::verdict::equivalent;
        std::string name = compare::to_string(each.outcome);
        std::replace(name.begin(), name.end(), '_', ' ');
        if (is_red(each)) name = "**" + name + "**";
        std::string remarks;
        const auto add = [&remarks](const std::string& text) {
            if (!text.empty()) remarks += (remarks.empty() ? "" : "; ") + text;
        };
        add(implementation_change(each));
        if (equivalent && each.effect) add("detects " + detectable(compare::smallest_reported(each)));
        for (const std::string& detail : details(each)) add(detail);
        return "| " + name + " | " + escape_markdown(shortened(title(each), 200)) + " | " +
               escape_markdown(values(each)) + " | " + escape_markdown(change(each, !equivalent)) + " | " +
               escape_markdown(shortened(remarks, 400)) + " |\n";
    }

    [[nodiscard]] std::string causes() const {
        constexpr std::size_t most = 8;
        const compare::explanation& why = what_.why;
        std::string text;
        for (std::size_t i = 0; i < why.causes.size() && i < most; ++i) {
            text += "- **" + escape_markdown(shortened(headline(why.causes[i]), 300)) + "**\n";
            for (const std::string& detail : details(why.causes[i])) {
                text += "  - " + escape_markdown(shortened(detail, 400)) + '\n';
            }
        }
        if (why.causes.size() > most) text += "- " + counted(why.causes.size() - most, "more cause") + '\n';
        for (std::size_t i = 0; i < why.set_aside.size() && i < most; ++i) {
            text += "- not blamed: " + escape_markdown(shortened(not_blamed(why.set_aside[i]), 300)) + '\n';
        }
        if (!why.canary_text.empty()) text += "- " + escape_markdown(shortened(why.canary_text, 300)) + '\n';
        return text.empty() ? text : "Why:\n\n" + text + '\n';
    }

    [[nodiscard]] std::string environment() const {
        const auto causes = other_changes(what_);
        if (causes.empty()) return {};
        std::string text = std::string("What ") + (what_.why.empty() ? "" : "else ") +
                           "differs in the environment:\n\n| | base | new |\n|---|---|---|\n";
        constexpr std::size_t most = 40;
        for (std::size_t i = 0; i < causes.size() && i < most; ++i) {
            text += "| " + escape_markdown(shortened(causes[i]->name, 100)) + " | " +
                    escape_markdown(shortened(environment::describe(causes[i]->from), 100)) + " | " +
                    escape_markdown(shortened(environment::describe(causes[i]->to), 100)) + " |\n";
        }
        if (causes.size() > most) text += '\n' + counted(causes.size() - most, "more difference") + ".\n";
        return text + '\n';
    }

    [[nodiscard]] std::string notes() const {
        std::string text;
        for (std::size_t i = 0; i < what_.notes.size() && i < 20; ++i) {
            text += "- " + escape_markdown(shortened(what_.notes[i], 400)) + '\n';
        }
        return text.empty() ? text : text + '\n';
    }

    [[nodiscard]] std::string steps() const {
        std::string text;
        for (const std::string& step : next_steps(what_)) text += "- " + escape_markdown(step) + '\n';
        return text.empty() ? text : "Next:\n\n" + text;
    }

    std::ostream& out_;
    const compare::comparison& what_;
    const options& how_;
    std::size_t used_ = 0;
    std::size_t reserved_ = 0;
};

} // namespace detail

/// Writes the comparison as Markdown for a pull request, at most options::budget bytes whatever the size of the suite.
inline void write_markdown(std::ostream& out, const compare::comparison& what, const options& how = {}) {
    detail::markdown_writer(out, what, how).write();
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
