// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_PRINT_HPP
#define PLUMBLINE_JSON_PRINT_HPP

#include <cstddef>
#include <string>
#include <utility>
#include <variant>

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

namespace detail {

/// Writes a document whose top level is an object, one member after the other: each part is turned into text and
/// dropped, so that a large document is never in memory as a tree.
class document_printer {
public:
    void member(const char* name, const writable& value) {
        begin_member(name);
        print(out_, value, 1);
    }
    /// A list; `to_value` turns an entry into a writable.
    template <class Sequence, class F>
    void list(const char* name, const Sequence& entries, F&& to_value) {
        begin_member(name);
        out_ += '[';
        const char* separator = "\n    ";
        for (const auto& each : entries) {
            out_ += separator;
            print(out_, to_value(each), 2);
            separator = ",\n    ";
        }
        out_ += entries.empty() ? "]" : "\n  ]";
    }
    /// An object with many members: a writable looks through all it has whenever one is added.
    template <class Map, class F>
    void map(const char* name, const Map& entries, F&& to_value) {
        begin_member(name);
        out_ += '{';
        const char* separator = "\n    ";
        for (const auto& [key, each] : entries) {
            out_ += separator;
            print(out_, writable(key));
            out_ += ": ";
            print(out_, to_value(each), 2);
            separator = ",\n    ";
        }
        out_ += entries.empty() ? "}" : "\n  }";
    }
    [[nodiscard]] std::string take() { return std::move(out_) + "\n}\n"; }

private:
    void begin_member(const char* name) {
        out_ += out_.empty() ? "{\n  \"" : ",\n  \"";
        out_ += name;
        out_ += "\": ";
    }
    std::string out_;
};

} // namespace detail

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
