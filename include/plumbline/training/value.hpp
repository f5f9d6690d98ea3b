// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_VALUE_HPP
#define PLUMBLINE_TRAINING_VALUE_HPP

#include <cstdint>
#include <type_traits>

#include "plumbline/workload/dtype.hpp"
#include "plumbline/workload/number.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// 16-bit numbers as a network stores them: no arithmetic of their own, they become float and are rounded on the way
/// back, to nearest, ties to even.
struct bfloat16 {
    std::uint16_t bits = 0;

    constexpr bfloat16() = default;
    constexpr explicit bfloat16(float wide) noexcept : bits(workload::to_bf16(wide)) {}
    constexpr operator float() const noexcept { return workload::from_bf16(bits); }
};

struct float16 {
    std::uint16_t bits = 0;

    constexpr float16() = default;
    constexpr explicit float16(float wide) noexcept : bits(workload::to_fp16(wide)) {}
    constexpr operator float() const noexcept { return workload::from_fp16(bits); }
};

/// What sums, statistics, master weights and gradients of weights have where activations are `Value`: double for
/// double, which is the reference, else float.
template <class Value>
using real_of = std::conditional_t<std::is_same_v<Value, double>, double, float>;

/// The dtype of a leg whose activations are `Value`; fp32 and tf32 are both float.
template <class Value>
[[nodiscard]] constexpr workload::dtype dtype_of_value() noexcept {
    if constexpr (std::is_same_v<Value, bfloat16>)
        return workload::dtype::bf16;
    else if constexpr (std::is_same_v<Value, float16>)
        return workload::dtype::fp16;
    else
        return workload::dtype::fp32;
}

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
