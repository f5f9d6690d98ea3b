// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_NUMBER_HPP
#define PLUMBLINE_WORKLOAD_NUMBER_HPP

#include <bit>
#include <cstdint>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Narrow floating-point formats on the host, as their bits. Conversions from float round to nearest, ties to even.
namespace workload {

namespace detail {

/// Rounds a non-negative finite float, given by its bits, to a format with `mantissa` fraction bits whose smallest
/// normal exponent is `min_exponent`. Returns exponent-and-fraction bits of the format; an exponent that the format
/// does not have comes out as a value above its largest, for the caller to saturate.
constexpr std::uint32_t narrow_magnitude(std::uint32_t bits, int mantissa, int min_exponent) noexcept {
    const int exponent = static_cast<int>(bits >> 23) - 127;
    const std::uint32_t fraction = (bits & 0x7fffffu) | (bits >> 23 != 0 ? 0x800000u : 0u);
    // Bits to drop: more than usual below the smallest normal number, where the format has no leading one.
    const int below = exponent < min_exponent ? min_exponent - exponent : 0;
    const int drop = 23 - mantissa + below;
    if (drop > 24) return 0; // less than half of the smallest subnormal number
    const std::uint32_t kept = fraction >> drop;
    const std::uint32_t rest = fraction & ((1u << drop) - 1);
    const std::uint32_t half = 1u << (drop - 1);
    const std::uint32_t rounded = kept + (rest > half || (rest == half && (kept & 1u) != 0) ? 1u : 0u);
    if (below != 0) return rounded; // a carry makes it the smallest normal number, as it should
    return (static_cast<std::uint32_t>(exponent - min_exponent) << mantissa) + rounded;
}

/// The value of sign, exponent and fraction bits of a format without its special values.
constexpr float widen(std::uint32_t magnitude, bool negative, int mantissa, int min_exponent) noexcept {
    const std::uint32_t field = magnitude >> mantissa;
    const std::uint32_t fraction = magnitude & ((1u << mantissa) - 1);
    // Both factors are powers of two or small integers, so the product is exact.
    const int exponent = (field == 0 ? min_exponent : min_exponent - 1 + static_cast<int>(field)) - mantissa;
    const float significand = static_cast<float>(field == 0 ? fraction : fraction | (1u << mantissa));
    const float scale = std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
    return negative ? -(significand * scale) : significand * scale;
}

} // namespace detail

/// float to bfloat16. NaN stays NaN; overflow gives infinity.
[[nodiscard]] constexpr std::uint16_t to_bf16(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

[[nodiscard]] constexpr float from_bf16(std::uint16_t bits) noexcept {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

/// float to IEEE binary16. NaN stays NaN; overflow gives infinity; subnormal numbers are kept.
[[nodiscard]] constexpr std::uint16_t to_fp16(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16 & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
    const std::uint32_t narrow = magnitude >= 0x47800000u ? 0x7c00u : detail::narrow_magnitude(magnitude, 10, -14);
    return static_cast<std::uint16_t>(sign | (narrow > 0x7c00u ? 0x7c00u : narrow));
}

[[nodiscard]] constexpr float from_fp16(std::uint16_t bits) noexcept {
    const std::uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u) {
        return std::bit_cast<float>(std::uint32_t{bits & 0x8000u} << 16 | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    }
    return detail::widen(magnitude, (bits & 0x8000u) != 0, 10, -14);
}

/// float to fp8 e4m3 (OCP: bias 7, no infinity, one NaN, largest 448). Overflow and infinity saturate to 448, as
/// CUDA's conversions do by default; NaN stays NaN.
[[nodiscard]] constexpr std::uint8_t to_fp8(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 24 & 0x80u;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint8_t>(sign | 0x7fu);
    const std::uint32_t narrow = magnitude >= 0x43e00000u ? 0x7eu : detail::narrow_magnitude(magnitude, 3, -6);
    return static_cast<std::uint8_t>(sign | (narrow > 0x7eu ? 0x7eu : narrow));
}

[[nodiscard]] constexpr float from_fp8(std::uint8_t bits) noexcept {
    const std::uint32_t magnitude = bits & 0x7fu;
    if (magnitude == 0x7fu) return std::bit_cast<float>(std::uint32_t{bits & 0x80u} << 24 | 0x7fc00000u);
    return detail::widen(magnitude, (bits & 0x80u) != 0, 3, -6);
}

} // namespace workload

PLUMBLINE_NAMESPACE_END

#endif
