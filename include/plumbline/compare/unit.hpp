// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_UNIT_HPP
#define PLUMBLINE_COMPARE_UNIT_HPP

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// What a unit measures and how large it is: value in the dimension's base unit = value * factor.
struct unit {
    std::string dimension; ///< "s", "B", "B/s", "FLOP/s", "Hz", "W", "1", or "items/s" for any counted item
    double factor = 1;

    bool operator==(const unit&) const = default;
};

namespace detail {

struct named_unit {
    std::string_view name;
    std::string_view dimension;
    double factor;
};

inline constexpr std::array named_units{
    named_unit{"ns", "s", 1e-9},      named_unit{"us", "s", 1e-6}, named_unit{"\u00b5s", "s", 1e-6},
    named_unit{"\u03bcs", "s", 1e-6}, named_unit{"ms", "s", 1e-3}, named_unit{"s", "s", 1},
    named_unit{"min", "s", 60},       named_unit{"h", "s", 3600},  named_unit{"cycles", "cycles", 1},
    named_unit{"W", "W", 1},          named_unit{"mW", "W", 1e-3}, named_unit{"kW", "W", 1e3},
    named_unit{"J", "J", 1},          named_unit{"mJ", "J", 1e-3}, named_unit{"1", "1", 1},
    named_unit{"", "1", 1},           named_unit{"%", "1", 1e-2},  named_unit{"ratio", "1", 1},
    named_unit{"count", "1", 1},
};

struct prefix {
    std::string_view name;
    double factor;
};

inline constexpr std::array prefixes{
    prefix{"", 1},
    prefix{"k", 1e3},
    prefix{"K", 1e3},
    prefix{"M", 1e6},
    prefix{"G", 1e9},
    prefix{"T", 1e12},
    prefix{"P", 1e15},
    prefix{"Ki", 1024.0},
    prefix{"Mi", 1048576.0},
    prefix{"Gi", 1073741824.0},
    prefix{"Ti", 1099511627776.0},
};

inline constexpr std::array<std::string_view, 7> prefixed_units{"B", "B/s", "FLOP/s", "FLOPS", "OP/s", "Hz", "items/s"};

/// True for one or more ASCII letters or underscores: the name of something that is counted.
[[nodiscard]] inline bool is_word(std::string_view text) {
    if (text.empty()) return false;
    for (const char c : text) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter) return false;
    }
    return true;
}

} // namespace detail

/// Reads a unit: times, bytes and rates with decimal or binary prefixes, power, energy, pure numbers, and "NAME/s" for
/// any counted thing ("img/s", "tokens/s"), each name a dimension of its own. Absent for anything else.
[[nodiscard]] inline std::optional<unit> parse_unit(std::string_view text) {
    for (const auto& known : detail::named_units) {
        if (text == known.name) return unit{std::string(known.dimension), known.factor};
    }
    for (const auto& name : detail::prefixed_units) {
        for (const auto& prefix : detail::prefixes) {
            if (text.size() != prefix.name.size() + name.size()) continue;
            if (text.substr(0, prefix.name.size()) != prefix.name || text.substr(prefix.name.size()) != name) continue;
            return unit{std::string(name == "FLOPS" ? "FLOP/s" : name), prefix.factor};
        }
    }
    if (text.size() > 2 && text.substr(text.size() - 2) == "/s" && detail::is_word(text.substr(0, text.size() - 2))) {
        return unit{std::string(text), 1};
    }
    return std::nullopt;
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
