// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_PRINT_HPP
#define PLUMBLINE_JSON_PRINT_HPP

#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

#include "plumbline/core/error.hpp"
#include "plumbline/core/scalar.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

/// What is written: members stay in the order they were added, so that files read well and their diffs are small.
using writable = nlohmann::ordered_json;

/// Named values as an object.
[[nodiscard]] inline writable to_writable(const scalar_map& values) {
    writable object = writable::object();
    for (const auto& [name, value] : values) {
        std::visit([&object, &key = name](const auto& leaf) { object[key] = leaf; }, value);
    }
    return object;
}

/// Appends a value: two spaces a level, but what holds only leaves (a list of samples) stays on one line. Floating
/// point is written with the fewest digits that read back as the same number. Throws plumbline::error on text that is
/// not UTF-8; numbers must be finite.
inline void print(std::string& out, const writable& value, std::size_t level = 0) {
    bool nested = false;
    for (const writable& each : value) nested = nested || (each.is_structured() && value.is_structured());
    if (!nested) {
        try {
            out += value.dump();
        } catch (const nlohmann::json::exception& problem) {
            throw error(std::string("cannot be written as JSON: ") + problem.what());
        }
        return;
    }
    const std::string indent(2 * level + 2, ' ');
    const char* separator = "\n";
    out += value.is_object() ? '{' : '[';
    for (const auto& [name, each] : value.items()) {
        out += separator + indent;
        if (value.is_object()) out += writable(name).dump() + ": ";
        print(out, each, level + 1);
        separator = ",\n";
    }
    out += '\n' + std::string(2 * level, ' ');
    out += value.is_object() ? '}' : ']';
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
