// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_PREDICTION_HPP
#define PLUMBLINE_JSON_PREDICTION_HPP

#include <string>

#include "plumbline/compare/prediction.hpp"
#include "plumbline/json/print.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

/// A prediction as JSON, every benchmark of it; `base` is the file of the baseline.
[[nodiscard]] inline std::string dump(const compare::prediction& from, const std::string& base) {
    using compare::foretold;
    detail::document_printer to;
    to.member("schema", {{"name", "plumbline/prediction"}, {"version", 1}});
    to.member("tool", {{"name", "plumbline"}, {"version", PLUMBLINE_VERSION}});
    to.member("base", base);
    to.member("cudnn", {{"base", from.version_before}, {"here", from.version_after}});
    to.member("exit_code", static_cast<int>(from.exit));
    to.member("counts", {{"worse", from.count(foretold::worse)},
                         {"changed", from.count(foretold::changed)},
                         {"unknown", from.count(foretold::unknown)},
                         {"same", from.count(foretold::same)}});
    to.list("results", from.results, [](const compare::predicted_result& each) {
        return writable{{"id", each.id},
                        {"prediction", compare::to_string(each.what)},
                        {"before", each.before},
                        {"after", each.after},
                        {"why", each.why}};
    });
    return to.take();
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
