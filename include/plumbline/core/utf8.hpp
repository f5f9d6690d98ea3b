// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CORE_UTF8_HPP
#define PLUMBLINE_CORE_UTF8_HPP

#include <cstddef>
#include <string>
#include <string_view>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace detail {

/// Bytes of the well-formed UTF-8 character that `text` begins with (Unicode, table 3-7); 0 when there is none.
[[nodiscard]] inline std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const auto within = [&](std::size_t i, unsigned low, unsigned high) { return byte(i) >= low && byte(i) <= high; };
    const unsigned first = byte(0);
    if (first < 0x80) return text.empty() ? 0 : 1;
    if (within(0, 0xc2, 0xdf)) return within(1, 0x80, 0xbf) ? 2 : 0;
    // Overlong forms, surrogates and what lies beyond U+10FFFF narrow the second byte.
    const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (!within(1, low, high) || !within(2, 0x80, 0xbf)) return 0;
    if (within(0, 0xe0, 0xef)) return 3;
    return within(0, 0xf0, 0xf4) && within(3, 0x80, 0xbf) ? 4 : 0;
}

} // namespace detail

/// Text that may stand in a JSON file: each byte that is no part of a well-formed UTF-8 character becomes "\xE9".
/// Paths, variables and what firmware says of itself are bytes, and two that differ must stay different.
[[nodiscard]] inline std::string valid_utf8(std::string_view text) {
    static constexpr char digits[] = "0123456789ABCDEF";
    std::string valid;
    valid.reserve(text.size());
    while (!text.empty()) {
        const std::size_t length = detail::utf8_length(text);
        if (length > 0) {
            valid += text.substr(0, length);
        } else {
            const auto byte = static_cast<unsigned char>(text.front());
            valid += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        }
        text.remove_prefix(length > 0 ? length : 1);
    }
    return valid;
}

PLUMBLINE_NAMESPACE_END

#endif
