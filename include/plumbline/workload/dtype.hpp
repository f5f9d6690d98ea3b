// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_DTYPE_HPP
#define PLUMBLINE_WORKLOAD_DTYPE_HPP

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace workload {

/// Element type of the inputs of an operator, and with it the arithmetic: tf32 is stored as fp32 and multiplied on
/// tensor cores; fp8 is e4m3 and gives bf16; int8 gives int32; everything else gives its own type and sums in fp32.
enum class dtype { fp32, tf32, fp16, bf16, fp8, int8 };

inline constexpr std::array<dtype, 6> all_dtypes{dtype::fp32, dtype::tf32, dtype::fp16,
                                                 dtype::bf16, dtype::fp8,  dtype::int8};

/// The name used in ids.
[[nodiscard]] constexpr std::string_view name(dtype type) noexcept {
    switch (type) {
    case dtype::fp32:
        return "fp32";
    case dtype::tf32:
        return "tf32";
    case dtype::fp16:
        return "fp16";
    case dtype::bf16:
        return "bf16";
    case dtype::fp8:
        return "fp8";
    case dtype::int8:
        return "int8";
    }
    return "?";
}

/// The dtype of a name, or nothing. Names are exact: "fp32", not "FP32" or "float".
[[nodiscard]] constexpr std::optional<dtype> dtype_of(std::string_view text) noexcept {
    for (dtype type : all_dtypes) {
        if (name(type) == text) return type;
    }
    return std::nullopt;
}

/// Bytes of one input element.
[[nodiscard]] constexpr std::size_t input_bytes(dtype type) noexcept {
    switch (type) {
    case dtype::fp32:
    case dtype::tf32:
        return 4;
    case dtype::fp16:
    case dtype::bf16:
        return 2;
    case dtype::fp8:
    case dtype::int8:
        return 1;
    }
    return 0;
}

/// Bytes of one output element: fp8 gives bf16 and int8 gives int32.
[[nodiscard]] constexpr std::size_t output_bytes(dtype type) noexcept {
    switch (type) {
    case dtype::fp32:
    case dtype::tf32:
    case dtype::int8:
        return 4;
    case dtype::fp16:
    case dtype::bf16:
    case dtype::fp8:
        return 2;
    }
    return 0;
}

/// Largest allowed norm of (output - float64 reference) over norm of the reference, for sums over `terms` products
/// of the inputs as quantised. int8 is exact. fp32 grows with the square root of the number of terms beyond 16384,
/// as the error of a blocked sum of independent roundings does.
[[nodiscard]] inline double tolerance(dtype type, double terms = 0) noexcept {
    switch (type) {
    case dtype::fp32:
        return 1e-5 * (terms > 16384 ? std::sqrt(terms / 16384) : 1.0);
    case dtype::tf32:
    case dtype::fp16:
        return 1e-3;
    case dtype::bf16:
        return 8e-3;
    case dtype::fp8:
        return 1e-2;
    case dtype::int8:
        return 0;
    }
    return 0;
}

} // namespace workload

PLUMBLINE_NAMESPACE_END

#endif
