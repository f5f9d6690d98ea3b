// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_GLOB_HPP
#define PLUMBLINE_COMPARE_GLOB_HPP

#include <cstddef>
#include <string_view>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// Whether `text` matches `pattern`: `*` stands for any text (slashes too), `?` for one character, everything else
/// for itself. O(|pattern| |text|) at worst, without recursion, so a hostile pattern costs little.
[[nodiscard]] inline bool glob_matches(std::string_view pattern, std::string_view text) {
    std::size_t p = 0;
    std::size_t t = 0;
    std::size_t star = std::string_view::npos; // the last star, and where the text after it was tried
    std::size_t tried = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            tried = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1; // let the star take one character more
            t = ++tried;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
