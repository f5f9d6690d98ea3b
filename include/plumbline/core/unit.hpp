// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CORE_UNIT_HPP
#define PLUMBLINE_CORE_UNIT_HPP

#include <optional>
#include <string_view>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// A unit of a metric: what it measures, and how many of the dimension's base unit it is. Values of one dimension can
/// be converted into each other; of two dimensions they cannot be compared.
struct unit {
    std::string_view name;      ///< "us"
    std::string_view dimension; ///< the name of the base unit: "s"
    double factor = 1;          ///< 1e-6
};

/// Every known unit. Decimal prefixes are powers of 1000 and binary ones (KiB) of 1024.
inline constexpr unit known_units[] = {
    {"ns", "s", 1e-9},
    {"us", "s", 1e-6},
    {"ms", "s", 1e-3},
    {"s", "s", 1},
    {"FLOP/s", "FLOP/s", 1},
    {"GFLOP/s", "FLOP/s", 1e9},
    {"TFLOP/s", "FLOP/s", 1e12},
    {"B/s", "B/s", 1},
    {"MB/s", "B/s", 1e6},
    {"GB/s", "B/s", 1e9},
    {"TB/s", "B/s", 1e12},
    {"MiB/s", "B/s", 1024.0 * 1024},
    {"GiB/s", "B/s", 1024.0 * 1024 * 1024},
    {"B", "B", 1},
    {"KB", "B", 1e3},
    {"MB", "B", 1e6},
    {"GB", "B", 1e9},
    {"KiB", "B", 1024.0},
    {"MiB", "B", 1024.0 * 1024},
    {"GiB", "B", 1024.0 * 1024 * 1024},
    {"items/s", "items/s", 1},
    {"images/s", "images/s", 1},
    {"tokens/s", "tokens/s", 1},
    {"samples/s", "samples/s", 1},
    {"img/s", "images/s", 1},
    {"tok/s", "tokens/s", 1},
    {"runs/s", "runs/s", 1},
    {"launches/s", "launches/s", 1},
    {"Hz", "Hz", 1},
    {"MHz", "Hz", 1e6},
    {"GHz", "Hz", 1e9},
    {"W", "W", 1},
    {"J", "J", 1},
    {"cycles", "cycles", 1},
    {"count", "count", 1},
    {"1", "1", 1},
    {"%", "1", 0.01},
};

/// The unit of that name, if it is known. "NAME/s" with a name of ASCII letters and underscores ("steps/s", "rows/s")
/// is a rate of whatever is counted, each name a dimension of its own; the unit's texts then point into `name`.
[[nodiscard]] constexpr std::optional<unit> find_unit(std::string_view name) noexcept {
    for (const unit& each : known_units) {
        if (each.name == name) return each;
    }
    if (name.size() < 3 || name.substr(name.size() - 2) != "/s") return std::nullopt;
    for (const char c : name.substr(0, name.size() - 2)) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter) return std::nullopt;
    }
    return unit{name, name, 1};
}

PLUMBLINE_NAMESPACE_END

#endif
