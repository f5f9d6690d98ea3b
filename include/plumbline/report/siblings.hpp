// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_SIBLINGS_HPP
#define PLUMBLINE_REPORT_SIBLINGS_HPP

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>

#include "plumbline/compare/siblings.hpp"
#include "plumbline/report/options.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

/// Writes machines of one kind, fastest first, marks the one that is judged, and names those that stand apart with the
/// benchmarks that make them so.
inline void write_siblings(std::ostream& out, const compare::ranking& what, const options& how = {}) {
    const detail::palette colours(how.colour);
    std::size_t width = 0;
    for (const compare::sibling& each : what.machines) width = std::max(width, columns(printable(each.name)));
    for (const compare::sibling& each : what.machines) {
        out << pad_left(std::to_string(each.rank), 4) << (each.subject ? " * " : "   ")
            << pad_right(printable(each.name), width) << "   cost " << signed_percent(each.ratio - 1) << " over "
            << counted(each.pairs, "result");
        if (each.odd) out << "   " << colours.red("ODD: stands apart from the others");
        out << '\n';
        constexpr std::size_t shown = 10;
        for (std::size_t i = 0; i < each.outstanding.size() && i < shown; ++i) {
            out << "         " << printable(each.outstanding[i].first) << "   "
                << signed_percent(each.outstanding[i].second - 1) << '\n';
        }
        if (each.outstanding.size() > shown) {
            out << "         and " << counted(each.outstanding.size() - shown, "more result") << '\n';
        }
    }
    for (const auto& [name, reason] : what.left_out) {
        out << "left out  " << printable(name) << ": " << printable(reason) << '\n';
    }
    const auto odd = std::count_if(what.machines.begin(), what.machines.end(),
                                   [](const compare::sibling& each) { return each.odd; });
    out << colours.bold(counted(what.machines.size(), "machine") + ", " + std::to_string(odd) +
                        " odd; each judged by "
                        "its own numbers, * is the one asked about")
        << '\n';
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
