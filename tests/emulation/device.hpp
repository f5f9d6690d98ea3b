// SPDX-License-Identifier: Apache-2.0
// The part of CUDA C++ that is not in the toolkit's host headers: variables and functions of device code.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

inline uint3 threadIdx{};
inline uint3 blockIdx{};
inline dim3 blockDim{};
inline dim3 gridDim{};
inline constexpr int warpSize = 32;

// Where a call stands in the kernel, for messages.
#define EMULATION_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(EMULATION_HERE) {
    emulation::meet_block(emulation::block_operation::barrier, 0, file, line);
}
inline int __syncthreads_count(int predicate, EMULATION_HERE) {
    return emulation::meet_block(emulation::block_operation::count, predicate, file, line);
}
inline int __syncthreads_and(int predicate, EMULATION_HERE) {
    const int count = emulation::meet_block(emulation::block_operation::all, predicate, file, line);
    return count == static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
}
inline int __syncthreads_or(int predicate, EMULATION_HERE) {
    return emulation::meet_block(emulation::block_operation::any, predicate, file, line) != 0;
}

inline void __syncwarp(unsigned mask = 0xffffffffu, EMULATION_HERE) {
    emulation::meet_warp(emulation::warp_operation::sync, mask, 0, 0, 32, false, file, line);
}

namespace emulation {

template <class T>
T shuffle(warp_operation what, unsigned mask, T value, int operand, int width, const char* file, int line) {
    static_assert(sizeof(T) <= 8);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = meet_warp(what, mask, bits, operand, width, false, file, line);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

} // namespace emulation

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, EMULATION_HERE) {
    return emulation::shuffle(emulation::warp_operation::shuffle, mask, value, lane, width, file, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, EMULATION_HERE) {
    return emulation::shuffle(emulation::warp_operation::shuffle_up, mask, value, static_cast<int>(delta), width, file,
                              line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, EMULATION_HERE) {
    return emulation::shuffle(emulation::warp_operation::shuffle_down, mask, value, static_cast<int>(delta), width,
                              file, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, EMULATION_HERE) {
    return emulation::shuffle(emulation::warp_operation::shuffle_xor, mask, value, bits, width, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, EMULATION_HERE) {
    return static_cast<unsigned>(
        emulation::meet_warp(emulation::warp_operation::ballot, mask, predicate != 0, 0, 32, false, file, line));
}
inline int __all_sync(unsigned mask, int predicate, EMULATION_HERE) {
    return static_cast<int>(
        emulation::meet_warp(emulation::warp_operation::all, mask, predicate != 0, 0, 32, false, file, line));
}
inline int __any_sync(unsigned mask, int predicate, EMULATION_HERE) {
    return static_cast<int>(
        emulation::meet_warp(emulation::warp_operation::any, mask, predicate != 0, 0, 32, false, file, line));
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value, EMULATION_HERE) {
    return static_cast<unsigned>(
        emulation::meet_warp(emulation::warp_operation::add, mask, value, 0, 32, false, file, line));
}
inline int __reduce_add_sync(unsigned mask, int value, EMULATION_HERE) {
    return static_cast<int>(__reduce_add_sync(mask, static_cast<unsigned>(value), file, line));
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value, EMULATION_HERE) {
    return static_cast<unsigned>(
        emulation::meet_warp(emulation::warp_operation::min, mask, value, 0, 32, false, file, line));
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value, EMULATION_HERE) {
    return static_cast<unsigned>(
        emulation::meet_warp(emulation::warp_operation::max, mask, value, 0, 32, false, file, line));
}
inline int __reduce_min_sync(unsigned mask, int value, EMULATION_HERE) {
    return static_cast<int>(emulation::meet_warp(emulation::warp_operation::min, mask, static_cast<unsigned>(value), 0,
                                                 32, true, file, line));
}
inline int __reduce_max_sync(unsigned mask, int value, EMULATION_HERE) {
    return static_cast<int>(emulation::meet_warp(emulation::warp_operation::max, mask, static_cast<unsigned>(value), 0,
                                                 32, true, file, line));
}

// Threads run one at a time and are never interrupted between two waits, so that plain operations are atomic.
template <class T>
T atomicExch(T* at, std::type_identity_t<T> value) {
    return std::exchange(*at, value);
}
template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
    return atomicExch(at, static_cast<T>(*at + value));
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> value) {
    return atomicExch(at, std::min(*at, value));
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
    return atomicExch(at, std::max(*at, value));
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value) {
    return atomicExch(at, static_cast<T>(*at | value));
}
template <class T>
T atomicAnd(T* at, std::type_identity_t<T> value) {
    return atomicExch(at, static_cast<T>(*at & value));
}
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
    return atomicExch(at, *at == expected ? value : *at);
}
inline unsigned atomicInc(unsigned* at, unsigned limit) {
    return atomicExch(at, *at >= limit ? 0u : *at + 1);
}

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}

// Loads and stores with a wish for the cache. Misaligned ones are found by the sanitizer.
template <class T>
T __ldg(const T* at) {
    return *at;
}
template <class T>
T __ldcs(const T* at) {
    return *at;
}
template <class T>
T __ldcg(const T* at) {
    return *at;
}
template <class T>
T __ldca(const T* at) {
    return *at;
}
template <class T>
T __ldlu(const T* at) {
    return *at;
}
template <class T>
void __stcs(T* at, T value) {
    *at = value;
}
template <class T>
void __stcg(T* at, T value) {
    *at = value;
}
template <class T>
void __stwb(T* at, T value) {
    *at = value;
}
template <class T>
void __stwt(T* at, T value) {
    *at = value;
}

inline unsigned __float_as_uint(float value) {
    return std::bit_cast<unsigned>(value);
}
inline int __float_as_int(float value) {
    return std::bit_cast<int>(value);
}
inline float __uint_as_float(unsigned bits) {
    return std::bit_cast<float>(bits);
}
inline float __int_as_float(int bits) {
    return std::bit_cast<float>(bits);
}
inline int __popc(unsigned bits) {
    return std::popcount(bits);
}
inline int __clz(int bits) {
    return std::countl_zero(static_cast<unsigned>(bits));
}
inline int __ffs(int bits) {
    return bits == 0 ? 0 : std::countr_zero(static_cast<unsigned>(bits)) + 1;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>(std::uint64_t{a} * b >> 32);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>(((std::uint64_t{high} << 32 | low) << (shift & 31u)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (shift & 31u));
}

// A device's approximations are a few units in the last place off; these are exactly rounded.
inline float rsqrtf(float x) {
    return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}
inline double rsqrt(double x) {
    return 1.0 / std::sqrt(x);
}
inline float __frsqrt_rn(float x) {
    return rsqrtf(x);
}
inline float __fsqrt_rn(float x) {
    return std::sqrt(x);
}
inline float __frcp_rn(float x) {
    return 1.0f / x;
}
inline float __fmaf_rn(float a, float b, float c) {
    return std::fma(a, b, c);
}
inline float __fadd_rn(float a, float b) {
    return a + b;
}
inline float __fmul_rn(float a, float b) {
    return a * b;
}
inline float __fdividef(float a, float b) {
    return a / b;
}
inline float __fdiv_rn(float a, float b) {
    return a / b;
}
inline float __expf(float x) {
    return std::exp(x);
}
inline float __logf(float x) {
    return std::log(x);
}
inline float __powf(float x, float y) {
    return std::pow(x, y);
}
inline float __saturatef(float x) {
    return std::clamp(x, 0.0f, 1.0f);
}

inline int min(int a, int b) {
    return a < b ? a : b;
}
inline int max(int a, int b) {
    return a < b ? b : a;
}
inline unsigned min(unsigned a, unsigned b) {
    return a < b ? a : b;
}
inline unsigned max(unsigned a, unsigned b) {
    return a < b ? b : a;
}
inline long min(long a, long b) {
    return a < b ? a : b;
}
inline long max(long a, long b) {
    return a < b ? b : a;
}
inline unsigned long min(unsigned long a, unsigned long b) {
    return a < b ? a : b;
}
inline unsigned long max(unsigned long a, unsigned long b) {
    return a < b ? b : a;
}
inline float min(float a, float b) {
    return std::fmin(a, b);
}
inline float max(float a, float b) {
    return std::fmax(a, b);
}

#undef EMULATION_HERE
