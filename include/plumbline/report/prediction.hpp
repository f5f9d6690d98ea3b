// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_PREDICTION_HPP
#define PLUMBLINE_REPORT_PREDICTION_HPP

#include <cstddef>
#include <ostream>
#include <string>

#include "plumbline/compare/prediction.hpp"
#include "plumbline/report/format.hpp"
#include "plumbline/report/options.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

/// Writes a prediction for people: what would get worse with the reason, what would change, how much stays.
/// options::base says what the baseline is.
inline void write_prediction(std::ostream& out, const compare::prediction& what, const options& how = {}) {
    using compare::foretold;
    const detail::palette colours(how.colour);
    if (!how.base.empty()) out << "base      " << how.base << '\n';
    const auto version = [](const std::string& text) {
        return text.empty() ? std::string("not recorded") : printable(text);
    };
    out << "cuDNN     " << version(what.version_before) << " -> " << version(what.version_after)
        << " here, for the baseline's device\n";
    for (const compare::predicted_result& each : what.results) {
        if (each.what == foretold::same) continue;
        if (each.what == foretold::unknown) {
            out << "unknown   " << printable(each.id) << "   " << printable(each.before) << " is not offered here\n";
            continue;
        }
        const bool worse = each.what == foretold::worse;
        out << (worse ? colours.red("WORSE     ") : colours.yellow("changed   ")) << printable(each.id) << "   "
            << printable(each.after.empty() ? "does not run" : compare::implementation_change(each.before, each.after))
            << '\n';
        for (const std::string& reason : each.why) out << "            " << printable(reason) << '\n';
    }
    const std::size_t unknown = what.count(foretold::unknown);
    if (unknown > 0) {
        out << "unknown: without a GPU cuDNN lists no engines that are matrix products inside; ask again on a machine "
               "with one\n";
    }
    out << colours.bold(std::to_string(what.count(foretold::worse)) + " worse, " +
                        std::to_string(what.count(foretold::changed)) + " changed, " +
                        (unknown > 0 ? std::to_string(unknown) + " unknown, " : std::string()) +
                        std::to_string(what.count(foretold::same)) + " as before; exit " +
                        std::to_string(static_cast<int>(what.exit)))
        << '\n';
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
