// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_CAUSES_HPP
#define PLUMBLINE_REPORT_CAUSES_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "plumbline/compare/comparison.hpp"
#include "plumbline/report/format.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

// What a cause says in words, once for all formats.

/// "cudnn.version  9.19.0 -> 9.20.0".
[[nodiscard]] inline std::string describe(const environment::difference& from) {
    return printable(from.name) + "  " + printable(environment::describe(from.from)) + " -> " +
           printable(environment::describe(from.to));
}

/// What changed, in one line: "cuDNN: cudnn.version 91400 -> 91900".
[[nodiscard]] inline std::string what_changed(const compare::cause& of) {
    if (of.changes.empty()) return printable(of.name);
    const environment::difference& telling = of.changes.front();
    const std::string change = printable(telling.name) + ' ' + printable(environment::describe(telling.from)) + " -> " +
                               printable(environment::describe(telling.to));
    return telling.name == of.name ? change : printable(of.name) + ": " + change;
}

/// A cause in one line: "cuDNN: cudnn.version 91400 -> 91900 (consistent), link 2, covers 3".
[[nodiscard]] inline std::string headline(const compare::cause& of) {
    return what_changed(of) + " (" + compare::to_string(of.how_sure) + "), link " + std::to_string(of.link) +
           (of.covers.empty() ? "" : ", covers " + std::to_string(of.covers.size()));
}

namespace detail {

/// What a mechanism is called where its text alone would not say.
[[nodiscard]] inline std::string lead_of(compare::mechanism of) {
    using compare::mechanism;
    switch (of) {
    case mechanism::implementation_changed:
        return "another implementation: ";
    case mechanism::instruction_set_lower:
        return "an older instruction set: ";
    case mechanism::tensor_cores_lost:
        return "tensor cores no longer used: ";
    case mechanism::fallback_chosen:
        return "fallback chosen: ";
    case mechanism::workspace_smaller:
        return "less workspace: ";
    case mechanism::cannot_run:
        return "cannot be created any more: ";
    case mechanism::out_of_memory:
        return "no memory for it: ";
    case mechanism::library_replaced:
        return "took effect: ";
    default:
        return {};
    }
}

/// Names of covered results, the most affected first, with what the cause accounts for in each.
[[nodiscard]] inline std::string covered_by(const compare::cause& of, std::size_t most) {
    std::vector<compare::covered_result> all = of.covers;
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
    std::string text;
    for (std::size_t i = 0; i < all.size() && i < most; ++i) {
        text += (i == 0 ? "" : ", ") + printable(all[i].id) +
                (all[i].metric == "time" ? "" : " (" + printable(all[i].metric) + ')');
        if (all[i].share > 0) text += ' ' + signed_percent(std::expm1(all[i].share));
    }
    if (all.size() > most) text += " and " + std::to_string(all.size() - most) + " more";
    return text;
}

} // namespace detail

/// How a cause can be proven: by the program itself, or by a person.
[[nodiscard]] inline std::string how_to_prove(const compare::cause& of) {
    if (of.how_sure == compare::strength::confirmed) return {};
    if (!compare::settable(of).empty() && !of.tried) return "bench --compare=BASE --confirm";
    return of.experiment.empty() ? std::string() : "by hand: " + printable(of.experiment);
}

/// Everything else about a cause, one sentence an element.
[[nodiscard]] inline std::vector<std::string> details(const compare::cause& of) {
    std::vector<std::string> all;
    if (of.tried) all.push_back(printable(of.tried->text));
    for (std::size_t i = 0; i < of.signs.size(); ++i) {
        const compare::sign& each = of.signs[i];
        // An older instruction set is another implementation too, and has said so in the same words.
        const auto end = of.signs.begin() + static_cast<std::ptrdiff_t>(i);
        if (std::any_of(of.signs.begin(), end, [&](const auto& before) { return before.text == each.text; })) continue;
        std::string text = "seen: " + detail::lead_of(each.what) + printable(each.text);
        if (each.results > 0) {
            text += " (in " + std::to_string(each.results) + " of " + std::to_string(of.covers.size()) + ')';
        }
        all.push_back(std::move(text));
    }
    if (!of.covers.empty()) all.push_back("covers " + detail::covered_by(of, 4));
    if (of.changes.size() > 1) {
        std::string text = "with it changed ";
        for (std::size_t i = 1; i < of.changes.size() && i < 4; ++i) {
            text += (i == 1 ? "" : ", ") + printable(of.changes[i].name);
        }
        if (of.changes.size() > 4) text += " and " + std::to_string(of.changes.size() - 4) + " more";
        all.push_back(std::move(text));
    }
    if (of.through) all.push_back("brought about by " + describe(*of.through));
    if (!of.effect.empty()) all.push_back(printable(of.effect));
    if (!of.remedy.empty()) all.push_back("do: " + printable(of.remedy));
    if (const std::string prove = how_to_prove(of); !prove.empty()) all.push_back("prove: " + prove);
    std::string sources;
    for (std::size_t i = 0; i < of.sources.size() && i < 3; ++i) {
        sources += (i == 0 ? "" : ", ") + printable(of.sources[i]);
    }
    if (!sources.empty()) all.push_back("reported before: " + sources);
    return all;
}

/// Why a change is not blamed, in one line.
[[nodiscard]] inline std::string not_blamed(const compare::cause& of) {
    return what_changed(of) + ": " + printable(of.set_aside);
}

/// The best cause of one finding in a few words, or "": "cuDNN: cudnn.version 91400 -> 91900 (consistent)".
[[nodiscard]] inline std::string cause_of(const compare::comparison& in, const compare::finding& what) {
    for (const compare::cause& each : in.why.causes) {
        for (const compare::covered_result& covered : each.covers) {
            if (covered.id != what.id || covered.metric != what.metric) continue;
            return what_changed(each) + " (" + compare::to_string(each.how_sure) + ')';
        }
    }
    return {};
}

/// Configuration that differs and that neither a cause nor what is set aside speaks of.
[[nodiscard]] inline std::vector<const environment::difference*> other_changes(const compare::comparison& from) {
    std::vector<const environment::difference*> left;
    const auto spoken_of = [&](const environment::difference& d) {
        for (const auto* list : {&from.why.causes, &from.why.set_aside}) {
            for (const compare::cause& each : *list) {
                if (each.through && each.through->name == d.name) return true;
                for (const auto& change : each.changes) {
                    if (change.name == d.name) return true;
                }
            }
        }
        return false;
    };
    for (const environment::difference& each : from.environment) {
        if (each.changed() && each.kind != result::attribute_class::state && !spoken_of(each)) left.push_back(&each);
    }
    return left;
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
