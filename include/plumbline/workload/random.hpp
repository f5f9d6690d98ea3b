// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_RANDOM_HPP
#define PLUMBLINE_WORKLOAD_RANDOM_HPP

#include <cstdint>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Seeded random inputs that are the same on every backend, bit for bit. Each element is a function of (seed, index),
/// so it can be made anywhere in any order. Everything is constexpr and free of the standard library, so that device
/// code may call it (nvcc --expt-relaxed-constexpr). Only integer arithmetic and single, exactly rounded
/// floating-point operations are used: no logarithm or cosine, whose last bits differ between libraries.
namespace workload::random {

/// 128 random bits.
struct block {
    std::uint32_t word[4];
};

/// Philox4x32-10: the block number `counter` of the stream `seed`. J. Salmon et al., Parallel random numbers: as easy
/// as 1, 2, 3, SC 2011, figure 4; `key` and counter words are taken low word first, the upper counter words are 0.
[[nodiscard]] constexpr block philox(std::uint64_t seed, std::uint64_t counter) noexcept {
    std::uint32_t c0 = static_cast<std::uint32_t>(counter);
    std::uint32_t c1 = static_cast<std::uint32_t>(counter >> 32);
    std::uint32_t c2 = 0;
    std::uint32_t c3 = 0;
    std::uint32_t k0 = static_cast<std::uint32_t>(seed);
    std::uint32_t k1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
        const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
        c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
        c1 = static_cast<std::uint32_t>(p1);
        c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
        c3 = static_cast<std::uint32_t>(p0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return block{{c0, c1, c2, c3}};
}

/// Sum of eight independent uniform 16-bit integers, less its mean: an integer in [-262140, 262140] with standard
/// deviation normal_sum_deviation, nearly normal (excess kurtosis -0.15, cut at 4.9 standard deviations).
[[nodiscard]] constexpr std::int32_t normal_sum(std::uint64_t seed, std::uint64_t index) noexcept {
    const block bits = philox(seed, index);
    std::int32_t sum = 0;
    for (std::uint32_t word : bits.word) sum += static_cast<std::int32_t>((word & 0xffffu) + (word >> 16));
    return sum - 262140;
}

/// sqrt(8 (2^32 - 1) / 12), the standard deviation of normal_sum.
inline constexpr double normal_sum_deviation = 53509.91992145008;

/// Element `index` of a stream of nearly normal numbers with mean 0 and standard deviation 1. The integer is exact in
/// float, so the value is one rounded product and the same everywhere.
[[nodiscard]] constexpr float normal(std::uint64_t seed, std::uint64_t index) noexcept {
    return static_cast<float>(normal_sum(seed, index)) * static_cast<float>(1.0 / normal_sum_deviation);
}

/// The same as int8 with standard deviation 32, rounded half away from zero and cut at +-127.
[[nodiscard]] constexpr std::int8_t normal_int8(std::uint64_t seed, std::uint64_t index) noexcept {
    constexpr std::int32_t step = 1672; // normal_sum_deviation / 32
    const std::int32_t sum = normal_sum(seed, index);
    const std::int32_t rounded = (sum + (sum < 0 ? -step / 2 : step / 2)) / step;
    return static_cast<std::int8_t>(rounded < -127 ? -127 : rounded > 127 ? 127 : rounded);
}

/// An integer in [0, n), n > 0: the high part of a 64-bit product, so the bias is below n / 2^32.
[[nodiscard]] constexpr std::uint64_t below(std::uint64_t seed, std::uint64_t index, std::uint64_t n) noexcept {
    const block bits = philox(seed, index);
    if (n <= 0xffffffffu) return (std::uint64_t{bits.word[0]} * n) >> 32;
    return (std::uint64_t{bits.word[0]} << 32 | bits.word[1]) % n;
}

} // namespace workload::random

PLUMBLINE_NAMESPACE_END

#endif
