// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_INPUTS_HPP
#define PLUMBLINE_WORKLOAD_INPUTS_HPP

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plumbline/workload/dtype.hpp"
#include "plumbline/workload/number.hpp"
#include "plumbline/workload/random.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace workload {

/// Element `index` of a stored operand as a kernel sees it, after quantisation to the input dtype: standard normal,
/// as the activations and normalised weights of a network are; for int8 with standard deviation 32.
[[nodiscard]] constexpr double input_value(dtype type, std::uint64_t seed, std::uint64_t index) noexcept {
    switch (type) {
    case dtype::fp32:
    case dtype::tf32:
        return static_cast<double>(random::normal(seed, index));
    case dtype::fp16:
        return static_cast<double>(from_fp16(to_fp16(random::normal(seed, index))));
    case dtype::bf16:
        return static_cast<double>(from_bf16(to_bf16(random::normal(seed, index))));
    case dtype::fp8:
        return static_cast<double>(from_fp8(to_fp8(random::normal(seed, index))));
    case dtype::int8:
        return static_cast<double>(random::normal_int8(seed, index));
    }
    return 0;
}

/// Seed of the choice of elements that are compared with a reference.
inline constexpr std::uint64_t seed_pick = 0x6734;

/// First, last, and random ones of 0 .. n-1, `count` at most, ascending without repetition; all if there are no more.
[[nodiscard]] inline std::vector<std::int64_t> pick(std::int64_t n, std::int64_t count, std::uint64_t stream) {
    std::vector<std::int64_t> picked;
    if (n <= count) {
        for (std::int64_t i = 0; i < n; ++i) picked.push_back(i);
        return picked;
    }
    picked = {0, n - 1};
    for (std::int64_t i = 2; i < count; ++i) {
        const std::uint64_t at = stream << 32 | static_cast<std::uint64_t>(i);
        picked.push_back(static_cast<std::int64_t>(random::below(seed_pick, at, static_cast<std::uint64_t>(n))));
    }
    std::sort(picked.begin(), picked.end());
    picked.erase(std::unique(picked.begin(), picked.end()), picked.end());
    return picked;
}

} // namespace workload

PLUMBLINE_NAMESPACE_END

#endif
