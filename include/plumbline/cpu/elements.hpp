// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CPU_ELEMENTS_HPP
#define PLUMBLINE_CPU_ELEMENTS_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/cpu/memory.hpp"
#include "plumbline/workload/inputs.hpp"
#include "plumbline/workload/verify.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cpu {

/// Whether this processor multiplies bf16 by itself. oneDNN emulates it elsewhere, ten times slower, which says
/// nothing about the machine.
[[nodiscard]] inline bool has_native_bf16() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512bf16") != 0;
#else
    return true; // oneDNN offers it only where the processor has it
#endif
}

/// Throws unsupported_error where the processor lacks the dtype's arithmetic or the machine `bytes` of free memory.
inline void require_room(const std::string& what, workload::dtype type, std::size_t bytes) {
    if (type == workload::dtype::bf16 && !has_native_bf16()) {
        throw unsupported_error(what + ": this processor has no bf16 arithmetic");
    }
    if (bytes > free_memory_bytes()) {
        throw unsupported_error(what + ": needs " + std::to_string(bytes) + " bytes, " +
                                std::to_string(free_memory_bytes()) + " are free");
    }
}

/// The stream of a seed as stored elements, after `offset` others.
[[nodiscard]] inline buffer filled(std::int64_t elements, std::int64_t offset, workload::dtype type,
                                   std::uint64_t seed) {
    const auto count = static_cast<std::size_t>(elements);
    buffer made((count + static_cast<std::size_t>(offset)) * workload::input_bytes(type));
    const auto fill = [&](auto element) {
        using stored = decltype(element(std::uint64_t{}));
        auto* at = reinterpret_cast<stored*>(made.data()) + offset;
        for (std::size_t i = 0; i < count; ++i) at[i] = element(i);
    };
    namespace random = workload::random;
    switch (type) {
    case workload::dtype::fp16:
        fill([seed](auto i) { return workload::to_fp16(random::normal(seed, i)); });
        break;
    case workload::dtype::bf16:
        fill([seed](auto i) { return workload::to_bf16(random::normal(seed, i)); });
        break;
    case workload::dtype::int8:
        fill([seed](auto i) { return random::normal_int8(seed, i); });
        break;
    default:
        fill([seed](auto i) { return random::normal(seed, i); });
    }
    return made;
}

/// Stored elements as float64: inputs, or with int8 the 32-bit `integers` of the output.
[[nodiscard]] inline std::vector<double> widened(const std::byte* data, std::int64_t count, workload::dtype type,
                                                 bool integers = false) {
    std::vector<double> values(static_cast<std::size_t>(count));
    const auto widen = [&](auto stored, auto value) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            std::memcpy(&stored, data + i * sizeof stored, sizeof stored);
            values[i] = static_cast<double>(value(stored));
        }
    };
    switch (type) {
    case workload::dtype::fp16:
        widen(std::uint16_t{}, workload::from_fp16);
        break;
    case workload::dtype::bf16:
        widen(std::uint16_t{}, workload::from_bf16);
        break;
    case workload::dtype::int8:
        if (integers)
            widen(std::int32_t{}, [](std::int32_t v) { return v; });
        else
            widen(std::int8_t{}, [](std::int8_t v) { return v; });
        break;
    default:
        widen(float{}, [](float v) { return v; });
    }
    return values;
}

/// Throws verification_error if any element of an output is not finite or still as poisoned. `what` names it.
inline void require_written(const std::string& what, const std::vector<double>& output, workload::dtype type) {
    for (std::size_t i = 0; i < output.size(); ++i) {
        const bool poisoned = type == workload::dtype::int8 && output[i] == workload::poisoned_int32;
        if (output[i] - output[i] == 0 && !poisoned) continue;
        throw verification_error(what + ": element " + std::to_string(i) + " of the output is " +
                                     to_string(scalar(output[i])) + ": it was not written or is not finite",
                                 0, 0, i);
    }
}

} // namespace cpu

PLUMBLINE_NAMESPACE_END

#endif
