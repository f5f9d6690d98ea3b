// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_ENVIRONMENT_HPP
#define PLUMBLINE_REPORT_ENVIRONMENT_HPP

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "plumbline/environment/diff.hpp"
#include "plumbline/report/options.hpp"
#include "plumbline/report/phrases.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

/// What a difference is called: "hardware", "changed" or "state"; "known now" and "unknown now" for attributes that
/// could be read on one side only, which is never a change.
[[nodiscard]] inline const char* label_of(const environment::difference& what) {
    if (what.how == environment::difference_kind::became_known) return "known now";
    if (what.how == environment::difference_kind::became_unknown) return "unknown now";
    if (what.kind == result::attribute_class::identity) return "hardware";
    return what.kind == result::attribute_class::config ? "changed" : "state";
}

/// Writes everything that differs between two environments, one line an attribute, with its link of the chain.
inline void write_environment(std::ostream& out, const std::vector<environment::difference>& what,
                              const options& how = {}) {
    const detail::palette colours(how.colour);
    if (!how.base.empty()) out << "base         " << how.base << '\n';
    if (!how.candidate.empty()) out << "new          " << how.candidate << '\n';
    std::size_t changes = 0;
    for (const environment::difference& each : what) {
        const std::string label = pad_right(label_of(each), 13);
        const bool counts = each.changed() && each.kind != result::attribute_class::state;
        changes += counts;
        out << (counts ? colours.yellow(label) : label) << each.link << "  " << describe(each) << '\n';
    }
    out << colours.bold(changes == 0 ? std::string("no attribute of hardware or configuration differs")
                                     : counted(changes, "attribute") + " of hardware or configuration " +
                                           (changes == 1 ? "differs" : "differ"))
        << '\n';
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
