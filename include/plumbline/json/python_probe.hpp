// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_PYTHON_PROBE_HPP
#define PLUMBLINE_JSON_PYTHON_PROBE_HPP

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "plumbline/environment/python_probe.hpp"
#include "plumbline/environment/variables.hpp"
#include "plumbline/json/cursor.hpp"
#include "plumbline/json/document.hpp"
#include "plumbline/result/fingerprint.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

namespace detail {

/// One line of the Python probe as a named attribute; throws schema_error for anything else.
[[nodiscard]] inline std::pair<std::string, result::attribute> python_line(std::string_view line) {
    const std::string origin = "Python probe", top;
    const nlohmann::json document = parse_document(line, origin, comments::refused, limits{4, 64, 64});
    const cursor entry(document, origin, top);
    const cursor name = entry.at("name"), link = entry.at("link");
    std::pair<std::string, result::attribute> found{name.text(), {}};
    if (found.first.rfind("python.", 0) != 0 || found.first.size() > 100) name.fail("must be a name in \"python.\"");
    found.second.link = static_cast<int>(link.count(6));
    found.second.source = "python";
    if (const auto error = entry.find("error")) {
        found.second.read = result::reading::unsupported("Python: " + error->text().substr(0, 200));
        return found;
    }
    const cursor value = entry.at("value");
    if (document.at("value").is_null()) {
        found.second.read = result::reading::absent("Python: None");
        return found;
    }
    scalar read = value.leaf();
    // Nothing of this should be secret, but it is text from other people's packages.
    const auto* text = std::get_if<std::string>(&read);
    const bool hide = text != nullptr && (text->size() > 4096 || environment::detail::holds_a_secret(*text));
    const bool version_hash = found.first == "python.torch_git";
    found.second.read = hide && !version_hash ? result::reading::denied("may be a secret: not recorded")
                                              : result::reading::of(std::move(read));
    return found;
}

} // namespace detail

/// Puts what the Python probe answered into a fingerprint: "python.torch", "python.torch_allow_tf32_matmul", ... of
/// links 3 to 6, and "python.probe", which says whether it ran to its end. Lines that are not the probe's (packages
/// print when they are imported) are left out. Never throws for anything a child may have written.
inline void add_python_probe(result::fingerprint& into, const environment::python_answer& answer) {
    into.attributes["python.probe"] = {result::attribute_class::state, 3, "python", answer.ended};
    std::string_view rest = answer.lines;
    while (!rest.empty()) {
        const auto end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (line.empty() || line.front() != '{') continue;
        try {
            auto [name, entry] = detail::python_line(line);
            into.attributes[name] = std::move(entry);
        } catch (const schema_error&) {
            continue; // not one of ours, or cut off when the child was killed
        }
    }
    if (into.find("python.version") == nullptr) {
        into.attributes["python.version"] = {
            result::attribute_class::config, 3, "python",
            answer.ended.known() ? result::reading::unsupported("the probe wrote nothing") : answer.ended};
    }
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
