// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CORE_SCALAR_HPP
#define PLUMBLINE_CORE_SCALAR_HPP

#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// One value of an attribute, a parameter or a piece of evidence: what a JSON leaf can hold, without null.
using scalar = std::variant<bool, std::int64_t, double, std::string>;

/// Named values in the order of their names, so that texts and hashes made of them do not depend on insertion order.
using scalar_map = std::map<std::string, scalar>;

/// The canonical text of a value: independent of the locale, and shortest round-trip for floating point.
[[nodiscard]] inline std::string to_string(const scalar& value) {
    struct visitor {
        std::string operator()(bool v) const { return v ? "true" : "false"; }
        std::string operator()(std::int64_t v) const { return std::to_string(v); }
        std::string operator()(double v) const {
            char text[32];
            const auto end = std::to_chars(text, text + sizeof text, v).ptr;
            return std::string(text, end);
        }
        std::string operator()(const std::string& v) const { return v; }
    };
    return std::visit(visitor{}, value);
}

PLUMBLINE_NAMESPACE_END

#endif
