// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_COMPARISON_HPP
#define PLUMBLINE_REPORT_COMPARISON_HPP

#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/json/comparison.hpp"
#include "plumbline/report/github.hpp"
#include "plumbline/report/junit.hpp"
#include "plumbline/report/markdown.hpp"
#include "plumbline/report/text.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

/// The formats of a comparison.
enum class format { text, markdown, json, junit, github };

/// Names of the formats, as --format takes them.
inline constexpr std::array<std::pair<std::string_view, format>, 5> formats{{{"text", format::text},
                                                                             {"markdown", format::markdown},
                                                                             {"json", format::json},
                                                                             {"junit", format::junit},
                                                                             {"github", format::github}}};

/// The format of that name; usage_error for any other.
[[nodiscard]] inline format find_format(const std::string& name) {
    std::string known;
    for (const auto& [each, value] : formats) {
        if (each == name) return value;
        known += (known.empty() ? "" : ", ") + std::string(each);
    }
    throw usage_error("no such format: \"" + name + "\"; choose one of " + known);
}

/// Writes a comparison in any format. `base` and `candidate` are the files of the two sides.
inline void write_comparison(std::ostream& out, format as, const compare::comparison& what,
                             const compare::policy& rules, const std::vector<std::string>& base,
                             const std::vector<std::string>& candidate, const options& how) {
    switch (as) {
    case format::text:
        return write_text(out, what, how);
    case format::markdown:
        return write_markdown(out, what, how);
    case format::json:
        out << json::dump(what, rules, base, candidate);
        return;
    case format::junit:
        return write_junit(out, what, how);
    case format::github:
        return write_github(out, what, how);
    }
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
