// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_IMPLEMENTATION_HPP
#define PLUMBLINE_COMPARE_IMPLEMENTATION_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/result/result.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

namespace detail {

[[nodiscard]] inline std::vector<std::string_view> split_path(std::string_view text) {
    std::vector<std::string_view> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find('/', begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

/// The parts of `all` from which `common_head` at the front and `common_tail` at the end are taken away.
[[nodiscard]] inline std::string join_middle(const std::vector<std::string_view>& all, std::size_t common_head,
                                             std::size_t common_tail) {
    std::string text;
    for (std::size_t i = common_head; i + common_tail < all.size(); ++i) {
        text += (text.empty() ? "" : "/") + std::string(all[i]);
    }
    return text;
}

} // namespace detail

/// Two implementations reduced to the parts that differ: "eng38 -> eng0" for "cudnn/A/eng38/k2" and "cudnn/A/eng0/k2".
[[nodiscard]] inline std::string implementation_change(const std::string& from, const std::string& to) {
    const auto a = detail::split_path(from);
    const auto b = detail::split_path(to);
    const std::size_t shorter = std::min(a.size(), b.size());
    std::size_t head = 0;
    while (head < shorter && a[head] == b[head]) ++head;
    std::size_t tail = 0;
    while (head + tail < shorter && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
    const std::string before = detail::join_middle(a, head, tail);
    const std::string after = detail::join_middle(b, head, tail);
    return (before.empty() ? "(none)" : before) + " -> " + (after.empty() ? "(none)" : after);
}

/// The evidence that most sessions of a result have, of the first of them; null for a result without sessions.
[[nodiscard]] inline const result::evidence* usual_evidence(const result::result& of) {
    const auto votes = [&](const result::session_result& one) {
        return std::count_if(of.sessions.begin(), of.sessions.end(),
                             [&](const auto& each) { return each.ran.implementation == one.ran.implementation; });
    };
    const auto most = std::max_element(of.sessions.begin(), of.sessions.end(),
                                       [&](const auto& a, const auto& b) { return votes(a) < votes(b); });
    return most == of.sessions.end() ? nullptr : &most->ran;
}

/// How modern the instruction set is that an implementation of oneDNN names ("brg:avx512_core_bf16"): 0 for one that
/// names none, larger is newer.
[[nodiscard]] inline int instruction_set_rank(std::string_view implementation) {
    static constexpr std::array<std::pair<std::string_view, int>, 9> sets{{{"amx", 9},
                                                                           {"avx512_core_fp16", 8},
                                                                           {"avx512_core_bf16", 7},
                                                                           {"avx512_core_vnni", 6},
                                                                           {"avx512", 5},
                                                                           {"avx2", 4},
                                                                           {"avx", 3},
                                                                           {"sse41", 2},
                                                                           {"sse", 1}}};
    for (const auto& [name, rank] : sets) {
        if (implementation.find(name) != std::string_view::npos) return rank;
    }
    return 0;
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
