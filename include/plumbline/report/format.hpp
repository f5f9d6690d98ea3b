// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_FORMAT_HPP
#define PLUMBLINE_REPORT_FORMAT_HPP

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

#include "plumbline/core/unit.hpp"
#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

/// A number with a fixed count of decimals, whatever the locale.
[[nodiscard]] inline std::string fixed(double value, int decimals) {
    char text[400]; // the largest double has 309 digits before the point
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, decimals);
    return end.ec == std::errc{} ? std::string(text, end.ptr) : std::string("?");
}

/// Decimals that show `digits` significant digits of a value, none where it has that many before the point.
[[nodiscard]] inline int decimals_for(double value, int digits) {
    const double size = std::abs(value);
    if (!(size > 0) || !std::isfinite(size)) return 0;
    return std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(size))), 0, 12);
}

/// The unit of the same dimension in which a value has one to three digits before the point; the unit itself where
/// there is no choice or it is not known.
[[nodiscard]] inline unit readable_unit(double value, std::string_view name) {
    const auto own = find_unit(name);
    if (!own) return {name, name, 1};
    constexpr std::string_view scales[] = {"ns",   "us",      "ms",      "s", "B/s", "MB/s", "GB/s",
                                           "TB/s", "GFLOP/s", "TFLOP/s", "B", "KiB", "MiB",  "GiB"};
    unit best = *own;
    bool chosen = false;
    for (const std::string_view scale : scales) {
        const auto candidate = find_unit(scale);
        if (!candidate || candidate->dimension != own->dimension) continue;
        if (chosen && std::abs(value) * own->factor < candidate->factor) continue;
        best = *candidate;
        chosen = true;
    }
    return best;
}

/// Text from a file or a device made safe for a terminal and for one line: control characters become '?', so that a
/// name cannot move the cursor, change colours or fake a line of the report.
[[nodiscard]] inline std::string printable(std::string_view text) {
    std::string safe;
    safe.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const bool c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
        if (c1) ++i; // U+0080 to U+009F: control characters of two bytes
        safe += c1 || byte < 0x20 || byte == 0x7f ? '?' : text[i];
    }
    return safe;
}

/// A value in a readable unit with `digits` significant digits: "172.7 us".
[[nodiscard]] inline std::string quantity(double value, std::string_view unit_name, int digits = 4) {
    const auto own = find_unit(unit_name);
    const unit shown = readable_unit(value, unit_name);
    const double scaled = own ? value * own->factor / shown.factor : value;
    return fixed(scaled, decimals_for(scaled, digits)) + ' ' + printable(shown.name);
}

/// Two values of one unit, with as many digits as it takes to see that they differ (3 to 6): "306 -> 331 us".
[[nodiscard]] inline std::string change_of_quantity(double from, double to, std::string_view unit_name) {
    const auto own = find_unit(unit_name);
    const unit shown = readable_unit(from, unit_name);
    const double scale = own ? own->factor / shown.factor : 1;
    std::string a, b;
    for (int digits = 3; digits <= 6; ++digits) {
        const int decimals = decimals_for(from * scale, digits);
        a = fixed(from * scale, decimals);
        b = fixed(to * scale, decimals);
        if (a != b) break;
    }
    if (a == b) a = b = fixed(from * scale, decimals_for(from * scale, 4)); // more digits would show nothing
    return a + " -> " + b + ' ' + printable(shown.name);
}

/// A fraction as a percentage without its sign: one decimal below 10 %, two below 0.1 %, none from 100 % on.
[[nodiscard]] inline std::string percent_digits(double fraction) {
    const double percent = std::abs(fraction) * 100;
    return fixed(percent, percent < 0.0995 ? 2 : percent < 99.5 ? 1 : 0);
}

/// A change in percent with its sign: "+8.2 %".
[[nodiscard]] inline std::string signed_percent(double fraction) {
    if (!std::isfinite(fraction)) return "? %";
    return (std::signbit(fraction) ? '-' : '+') + percent_digits(fraction) + " %";
}

/// A size in percent: "0.9 %"; "no size" for what has none (nothing would be detected).
[[nodiscard]] inline std::string percent(double fraction) {
    return std::isfinite(fraction) ? percent_digits(fraction) + " %" : std::string("no size");
}

/// The smallest change that can be detected: "1.5 %"; from ten times on a number would only pretend to know.
[[nodiscard]] inline std::string detectable(double fraction) {
    return std::isfinite(fraction) && fraction > 9 ? std::string("more than 10x") : percent(fraction);
}

/// "1 session", "5 sessions".
[[nodiscard]] inline std::string counted(std::size_t count, const std::string& what) {
    return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

/// Columns a text takes on a terminal: code points, which is right for what our texts hold.
[[nodiscard]] inline std::size_t columns(std::string_view text) {
    std::size_t count = 0;
    for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
    return count;
}

/// The text filled up with spaces to `width` columns, on the right or on the left.
[[nodiscard]] inline std::string pad_right(std::string text, std::size_t width) {
    const std::size_t used = columns(text);
    if (used < width) text.append(width - used, ' ');
    return text;
}
[[nodiscard]] inline std::string pad_left(const std::string& text, std::size_t width) {
    const std::size_t used = columns(text);
    return used < width ? std::string(width - used, ' ') + text : text;
}

/// At most `width` bytes of a text, never half a character, with "..." where something was left out.
[[nodiscard]] inline std::string shortened(std::string_view text, std::size_t width) {
    if (text.size() <= width) return std::string(text);
    std::size_t end = width < 3 ? 0 : width - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return std::string(text.substr(0, end)) + "...";
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
