// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CPU_CANARY_HPP
#define PLUMBLINE_CPU_CANARY_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "plumbline/core/hash.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// The frozen inner loops of the canaries. On x86-64 they are assembly, so that no compiler and no flag can change
/// what runs; their text is hashed into the evidence. Elsewhere they are plain C++ and only comparable between builds
/// by the same compiler, which the evidence says.
///
/// Whoever changes a loop raises workload::probe::params::revision.
namespace cpu::canary {

/// 8 chains of 4 floats.
inline constexpr std::size_t fma_values = 32;
/// Multiply-adds of each value in one launch: about 60 to 100 us on a core of 2015 to 2025.
inline constexpr std::uint64_t fma_rounds = 25000;
inline constexpr double fma_flop = 2.0 * fma_values * static_cast<double>(fma_rounds);

#if defined(__x86_64__)
#define PLUMBLINE_CANARY_FMA                                                                                           \
    "movups (%[v]), %%xmm0\n movups 16(%[v]), %%xmm1\n movups 32(%[v]), %%xmm2\n movups 48(%[v]), %%xmm3\n"            \
    "movups 64(%[v]), %%xmm4\n movups 80(%[v]), %%xmm5\n movups 96(%[v]), %%xmm6\n movups 112(%[v]), %%xmm7\n"         \
    "movups (%[a]), %%xmm8\n movups (%[b]), %%xmm9\n"                                                                  \
    ".p2align 6\n"                                                                                                     \
    "1:\n"                                                                                                             \
    "mulps %%xmm8, %%xmm0\n mulps %%xmm8, %%xmm1\n mulps %%xmm8, %%xmm2\n mulps %%xmm8, %%xmm3\n"                      \
    "mulps %%xmm8, %%xmm4\n mulps %%xmm8, %%xmm5\n mulps %%xmm8, %%xmm6\n mulps %%xmm8, %%xmm7\n"                      \
    "addps %%xmm9, %%xmm0\n addps %%xmm9, %%xmm1\n addps %%xmm9, %%xmm2\n addps %%xmm9, %%xmm3\n"                      \
    "addps %%xmm9, %%xmm4\n addps %%xmm9, %%xmm5\n addps %%xmm9, %%xmm6\n addps %%xmm9, %%xmm7\n"                      \
    "subq $1, %[n]\n jnz 1b\n"                                                                                         \
    "movups %%xmm0, (%[v])\n movups %%xmm1, 16(%[v])\n movups %%xmm2, 32(%[v])\n movups %%xmm3, 48(%[v])\n"            \
    "movups %%xmm4, 64(%[v])\n movups %%xmm5, 80(%[v])\n movups %%xmm6, 96(%[v])\n movups %%xmm7, 112(%[v])\n"

#define PLUMBLINE_CANARY_COPY                                                                                          \
    ".p2align 6\n"                                                                                                     \
    "1:\n"                                                                                                             \
    "movaps (%[s]), %%xmm0\n movaps 16(%[s]), %%xmm1\n movaps 32(%[s]), %%xmm2\n movaps 48(%[s]), %%xmm3\n"            \
    "movaps %%xmm0, (%[d])\n movaps %%xmm1, 16(%[d])\n movaps %%xmm2, 32(%[d])\n movaps %%xmm3, 48(%[d])\n"            \
    "addq $64, %[s]\n addq $64, %[d]\n subq $1, %[n]\n jnz 1b\n"

inline constexpr const char* code_kind = "x86_64-sse2";

[[nodiscard]] inline std::string fma_code_hash() {
    return short_hash(std::string_view(PLUMBLINE_CANARY_FMA));
}
[[nodiscard]] inline std::string copy_code_hash() {
    return short_hash(std::string_view(PLUMBLINE_CANARY_COPY));
}

/// x = x a + b on fma_values floats, `rounds` > 0 times, product and sum each rounded.
inline void fma_chains(float* values, float a, float b, std::uint64_t rounds) noexcept {
    const float as[4] = {a, a, a, a};
    const float bs[4] = {b, b, b, b};
    asm volatile(PLUMBLINE_CANARY_FMA
                 : [n] "+r"(rounds)
                 : [v] "r"(values), [a] "r"(as), [b] "r"(bs)
                 : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9");
}

/// Copies `lines` > 0 blocks of 64 bytes between buffers aligned to 16.
inline void copy_lines(const std::byte* from, std::byte* to, std::size_t lines) noexcept {
    asm volatile(PLUMBLINE_CANARY_COPY
                 : [n] "+r"(lines), [s] "+r"(from), [d] "+r"(to)
                 :
                 : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3");
}

#undef PLUMBLINE_CANARY_FMA
#undef PLUMBLINE_CANARY_COPY
#else

inline constexpr const char* code_kind = "c++ " __VERSION__;

[[nodiscard]] inline std::string fma_code_hash() {
    return short_hash(std::string_view(code_kind));
}
[[nodiscard]] inline std::string copy_code_hash() {
    return fma_code_hash();
}

inline void fma_chains(float* values, float a, float b, std::uint64_t rounds) noexcept {
    for (std::uint64_t i = 0; i < rounds; ++i) {
        for (std::size_t j = 0; j < fma_values; ++j) values[j] = values[j] * a + b;
        asm volatile("" : : "r"(values) : "memory"); // keeps the rounds apart
    }
}

inline void copy_lines(const std::byte* from, std::byte* to, std::size_t lines) noexcept {
    const auto* source = reinterpret_cast<const std::uint64_t*>(from);
    auto* destination = reinterpret_cast<std::uint64_t*>(to);
    for (std::size_t i = 0; i < lines; ++i) {
        for (std::size_t j = 0; j < 8; ++j) destination[8 * i + j] = source[8 * i + j];
        asm volatile("" : : : "memory"); // keeps the compiler from calling memcpy, which is another benchmark
    }
}
#endif

} // namespace cpu::canary

PLUMBLINE_NAMESPACE_END

#endif
