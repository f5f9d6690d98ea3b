// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CORE_NEAREST_HPP
#define PLUMBLINE_CORE_NEAREST_HPP

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Number of insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (optimal string
/// alignment). O(|a| |b|): both are cut to 64 characters, so that a hostile name costs nothing.
[[nodiscard]] inline std::size_t edit_distance(std::string_view a, std::string_view b) {
    a = a.substr(0, 64);
    b = b.substr(0, 64);
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

/// The known name a misspelt one was probably meant to be, or "" when none is near (more than a third of it wrong).
/// `Names` is a range of anything convertible to std::string_view.
template <class Names>
[[nodiscard]] std::string nearest(std::string_view name, const Names& known) {
    std::string best;
    std::size_t best_distance = std::max<std::size_t>(name.size() / 3, 1) + 1;
    for (const auto& candidate : known) {
        const std::string_view text = candidate;
        const std::size_t distance = edit_distance(name, text);
        if (distance < best_distance) {
            best_distance = distance;
            best = std::string(text);
        }
    }
    return best;
}

PLUMBLINE_NAMESPACE_END

#endif
