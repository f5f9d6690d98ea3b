// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_TEXT_HPP
#define PLUMBLINE_REPORT_TEXT_HPP

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "plumbline/report/options.hpp"
#include "plumbline/report/phrases.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

namespace detail {

/// The report for people at a terminal: worst first, one line a finding, its particulars indented below it.
class text_writer {
public:
    text_writer(std::ostream& out, const compare::comparison& what, const options& how)
        : out_(out), what_(what), how_(how), colours_(how.colour) {}

    void write() {
        if (!how_.base.empty()) line("base", how_.base);
        if (!how_.candidate.empty()) line("new", how_.candidate);
        if (const std::string text = in_short(what_); !text.empty()) line("in short", text, &palette::bold);
        if (!how_.base.empty() || !how_.candidate.empty()) out_ << '\n';
        if (machine_slower(what_))
            line("MACHINE-WIDE", machine_wide(what_), &palette::red);
        else if (what_.machine_wide)
            line("machine-wide", machine_wide(what_));
        if (what_.board) {
            line(what_.board->red ? "BOARD" : "board", boards(what_), what_.board->red ? &palette::red : nullptr);
        }
        write_findings();
        write_causes();
        write_environment();
        for (const std::string& note : what_.notes) line("note", printable(note));
        for (const std::string& step : next_steps(what_)) line("next", step);
        for (const std::string& each : wrapped(summary(what_), how_.width)) out_ << colours_.bold(each) << '\n';
    }

private:
    using colour = std::string (palette::*)(const std::string&) const;
    static constexpr std::size_t label_width = 14;
    static constexpr std::size_t widest_title = 64;

    /// A label in its column and a text beside it, wrapped below itself.
    void line(const std::string& label, const std::string& text, colour paint = nullptr) {
        paragraph(paint ? (colours_.*paint)(pad_right(label, label_width)) : pad_right(label, label_width), label_width,
                  text);
    }

    /// A text after `lead`, which takes `indent` columns, wrapped below itself.
    void paragraph(const std::string& lead, std::size_t indent, const std::string& text) {
        const std::size_t room = how_.width > indent + 20 ? how_.width - indent : 0;
        bool begun = false;
        for (const std::string& each : wrapped(text, room)) {
            out_ << (begun ? std::string(indent, ' ') : lead) << each << '\n';
            begun = true;
        }
    }

    /// Nobody wants to read a hundred times that nothing happened, but some may ask for it.
    [[nodiscard]] bool shown(const compare::finding& each) const {
        using compare::verdict;
        if (how_.all || is_red(each) || !each.alarms.empty()) return true;
        if (each.outcome == verdict::missing) return !each.has(compare::marker::not_selected);
        return each.outcome != verdict::equivalent || !implementation_change(each).empty();
    }

    void write_findings() {
        std::size_t title_width = 0, value_width = 0, change_width = 0;
        for (const compare::finding& each : what_.findings) {
            if (!shown(each)) continue;
            title_width = std::max(title_width, std::min(columns(title(each)), widest_title));
            value_width = std::max(value_width, columns(values(each)));
            change_width = std::max(change_width, columns(change_of(each)));
        }
        for (const compare::finding& each : what_.findings) {
            if (shown(each)) write_finding(each, title_width, value_width, change_width);
        }
    }

    void write_finding(const compare::finding& each, std::size_t title_width, std::size_t value_width,
                       std::size_t change_width) {
        std::string tail = implementation_change(each);
        if (each.outcome == compare::verdict::equivalent && each.effect) {
            tail = "detects " + detectable(compare::smallest_reported(each)) + (tail.empty() ? "" : "   " + tail);
        }
        std::string text = pad_right(title(each), title_width);
        for (const auto& [column, width] :
             {std::pair(values(each), value_width), std::pair(change_of(each), change_width),
              std::pair(tail, std::size_t{0})}) {
            text += "   " + pad_right(column, width);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        const std::size_t used = label_width + columns(text);
        if (how_.width != 0 && used > how_.width) {
            // The title on a line of its own: columns that wrap are no columns.
            out_ << label_of(each) << title(each) << '\n';
            std::string rest;
            for (const std::string& column : {values(each), change_of(each), tail}) {
                if (!column.empty()) rest += (rest.empty() ? "" : "   ") + column;
            }
            if (!rest.empty()) out_ << std::string(label_width, ' ') << rest << '\n';
        } else {
            out_ << label_of(each) << text << '\n';
        }
        constexpr std::size_t indent = label_width + 2;
        for (const std::string& detail : details(each)) paragraph(std::string(indent, ' '), indent, detail);
    }

    [[nodiscard]] static std::string change_of(const compare::finding& each) {
        using compare::verdict;
        if (each.outcome == verdict::cross_hardware && each.ratio) return "cost x" + fixed(*each.ratio, 3);
        return change(each, each.outcome != verdict::equivalent);
    }

    [[nodiscard]] std::string label_of(const compare::finding& each) const {
        using compare::verdict;
        std::string label = compare::to_string(each.outcome);
        std::replace(label.begin(), label.end(), '_', ' ');
        // Capitals for what makes the exit code, so that it stands out without colours too.
        if (is_red(each)) {
            std::transform(label.begin(), label.end(), label.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
        }
        label = pad_right(label, label_width);
        if (is_red(each)) return colours_.red(label);
        if (each.outcome == verdict::improved) return colours_.green(label);
        const bool open = each.outcome == verdict::inconclusive || each.outcome == verdict::invalid ||
                          each.outcome == verdict::regressed;
        return open ? colours_.yellow(label) : label;
    }

    void write_causes() {
        const compare::explanation& why = what_.why;
        constexpr std::size_t indent = label_width + 2;
        for (const compare::cause& each : why.causes) {
            const bool sure = each.how_sure != compare::strength::associated;
            line("cause", headline(each), sure ? &palette::bold : nullptr);
            for (const std::string& detail : details(each)) paragraph(std::string(indent, ' '), indent, detail);
        }
        for (const compare::cause& each : why.set_aside) line("not blamed", not_blamed(each));
        if (!why.canary_text.empty()) line("canary", printable(why.canary_text));
    }

    void write_environment() {
        std::size_t shown_changes = 0, hidden_changes = 0, shown_state = 0, hidden_state = 0, became = 0;
        for (const environment::difference* each : other_changes(what_)) {
            const bool identity = each->kind == result::attribute_class::identity;
            // After an upgrade of the system everything differs, and what matters stands above.
            if (identity || ++shown_changes <= 12)
                line(identity ? "hardware" : "changed", describe(*each));
            else
                ++hidden_changes;
        }
        if (hidden_changes > 0) {
            line("changed", "and " + counted(hidden_changes, "more attribute") + ": --format=json has them all");
        }
        const bool wanted = what_.count(compare::verdict::regressed) > 0 || machine_slower(what_);
        for (const environment::difference& each : what_.environment) {
            if (!each.changed()) ++became;
            if (!each.changed() || each.kind != result::attribute_class::state || !wanted) continue;
            // Readings differ at every run: they may explain a slowdown, and are noise without one.
            if (++shown_state <= 8)
                line("state", describe(each));
            else
                ++hidden_state;
        }
        if (hidden_state > 0) line("state", "and " + counted(hidden_state, "more reading") + ": --format=json");
        if (became > 0) {
            line("environment", counted(became, "attribute") + " could be read on one side only, which is no change");
        }
    }

    std::ostream& out_;
    const compare::comparison& what_;
    const options& how_;
    palette colours_;
};

} // namespace detail

/// Writes the comparison for people: worst first, each class counted, inconclusive never as a pass, the smallest
/// detectable change beside each equivalent and inconclusive finding, then the causes with what was seen of them, what
/// else differs in the environment, what to do next, and one line with the counts and the exit code.
inline void write_text(std::ostream& out, const compare::comparison& what, const options& how = {}) {
    detail::text_writer(out, what, how).write();
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
