// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_PIXEL_KERNELS_HPP
#define PLUMBLINE_LOADER_PIXEL_KERNELS_HPP

// The three inner loops of resize and normalise, in portable C++ and for AVX2, chosen at run time. Both give the same
// 8-bit values; normalised values may differ in the last bit.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "plumbline/loader/augment.hpp"
#include "plumbline/loader/filter.hpp"
#include "plumbline/workload/number.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// How 8-bit values become numbers: value * scale + bias, by channel. The tables hold the exact results.
struct normalisation {
    std::array<float, 3> scale{};
    std::array<float, 3> bias{};
    std::array<std::array<float, 256>, 3> single{};
    std::array<std::array<std::uint16_t, 256>, 3> half{};

    explicit normalisation(const augmentation& how);
};

inline normalisation::normalisation(const augmentation& how) {
    for (std::size_t c = 0; c < 3; ++c) {
        scale[c] = 1.0F / (255.0F * how.deviation[c]);
        bias[c] = -how.mean[c] / how.deviation[c];
        for (std::size_t v = 0; v < 256; ++v) {
            // In torchvision's order: ToTensor divides by 255, Normalize subtracts and divides.
            single[c][v] = (static_cast<float>(v) / 255.0F - how.mean[c]) / how.deviation[c];
            half[c][v] = workload::to_fp16(single[c][v]);
        }
    }
}

/// The inner loops. Pixels are four bytes; rows may be read up to image::padding bytes behind their end.
struct pixel_kernels {
    /// `rows` rows of input, `stride` bytes apart, each resized to x.outputs() pixels; output rows follow each other.
    void (*horizontal)(const std::uint8_t* in, std::size_t stride, std::size_t rows, const axis_filter& x,
                       std::uint8_t* out);
    /// Output row `at` from `taps` rows of `width` pixels that lie `stride` bytes apart.
    void (*vertical)(const std::uint8_t* in, std::size_t stride, const std::int16_t* weights, std::size_t taps,
                     std::size_t width, std::uint8_t* out);
    /// One row of pixels normalised into row `at` of a square sample, in the type and layout of `how`.
    void (*convert)(const std::uint8_t* in, std::size_t at, const augmentation& how, const normalisation& by,
                    std::byte* sample);
    const char* name;
};

namespace detail {

inline std::uint8_t rounded_byte(std::int32_t sum) noexcept {
    const std::int32_t value = (sum + (1 << (axis_filter::weight_bits - 1))) >> axis_filter::weight_bits;
    return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

inline void horizontal_pixel(const std::uint8_t* in, const axis_filter& x, std::size_t i, std::uint8_t* out) noexcept {
    const std::uint8_t* const from = in + x.first(i) * image::channels;
    const std::int16_t* const weights = x.weights(i);
    for (std::size_t c = 0; c < image::channels; ++c) {
        std::int32_t sum = 0;
        for (std::size_t t = 0; t < x.taps(); ++t) sum += weights[t] * from[t * image::channels + c];
        out[i * image::channels + c] = rounded_byte(sum);
    }
}

inline void horizontal_portable(const std::uint8_t* in, std::size_t stride, std::size_t rows, const axis_filter& x,
                                std::uint8_t* out) {
    for (std::size_t r = 0; r < rows; ++r) {
        std::uint8_t* const to = out + r * x.outputs() * image::channels;
        for (std::size_t i = 0; i < x.outputs(); ++i) horizontal_pixel(in + r * stride, x, i, to);
    }
}

inline void vertical_bytes(const std::uint8_t* in, std::size_t stride, const std::int16_t* weights, std::size_t taps,
                           std::size_t begin, std::size_t end, std::uint8_t* out) noexcept {
    for (std::size_t i = begin; i < end; ++i) {
        std::int32_t sum = 0;
        for (std::size_t t = 0; t < taps; ++t) sum += weights[t] * in[t * stride + i];
        out[i] = rounded_byte(sum);
    }
}

inline void vertical_portable(const std::uint8_t* in, std::size_t stride, const std::int16_t* weights, std::size_t taps,
                              std::size_t width, std::uint8_t* out) {
    vertical_bytes(in, stride, weights, taps, 0, width * image::channels, out);
}

/// Columns begin to end of a row, through the tables.
template <class Element>
inline void convert_columns(const std::uint8_t* in, std::size_t at, std::size_t begin, std::size_t end,
                            const augmentation& how, const std::array<std::array<Element, 256>, 3>& table,
                            std::byte* sample) noexcept {
    const bool planes = how.layout == workload::dataloader::layout::chw;
    const std::size_t plane = planes ? how.size * how.size : 1;
    const std::size_t step = planes ? 1 : 3;
    for (std::size_t i = begin; i < end; ++i) {
        for (std::size_t c = 0; c < 3; ++c) {
            const std::size_t index = c * plane + (at * how.size + i) * step;
            const Element value = table[c][in[i * image::channels + c]];
            std::memcpy(sample + index * sizeof(Element), &value, sizeof(Element));
        }
    }
}

inline void convert_tail(const std::uint8_t* in, std::size_t at, std::size_t begin, const augmentation& how,
                         const normalisation& by, std::byte* sample) noexcept {
    if (how.type == workload::dtype::fp16)
        convert_columns(in, at, begin, how.size, how, by.half, sample);
    else
        convert_columns(in, at, begin, how.size, how, by.single, sample);
}

inline void convert_portable(const std::uint8_t* in, std::size_t at, const augmentation& how, const normalisation& by,
                             std::byte* sample) {
    convert_tail(in, at, 0, how, by, sample);
}

#if defined(__x86_64__)

/// Two weights in every 32 bits.
__attribute__((target("avx2,f16c"), always_inline)) inline void spread_weights(const std::int16_t* weights,
                                                                               __m256i& both) {
    std::int32_t bits = 0;
    std::memcpy(&bits, weights, sizeof bits);
    both = _mm256_set1_epi32(bits);
}

/// One output pixel of two rows, a row in each half of the register: neighbouring inputs become pairs of 16-bit
/// values, which one multiply-add weighs. `Taps` inputs are loaded at a time, 2 or 4; x.taps() is a multiple of it.
template <std::size_t Taps>
__attribute__((target("avx2,f16c"), always_inline)) inline void
horizontal_sum(const std::uint8_t* upper, const std::uint8_t* lower, const axis_filter& x, std::size_t i,
               __m256i& sum) {
    const __m256i first =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1));
    const __m256i second =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1));
    const std::size_t from = x.first(i) * image::channels;
    const std::int16_t* const weights = x.weights(i);
    sum = _mm256_set1_epi32(1 << (axis_filter::weight_bits - 1));
    __m256i both;
    for (std::size_t t = 0; t < x.taps(); t += Taps) {
        const auto* const a = reinterpret_cast<const __m128i*>(upper + from + t * image::channels);
        const auto* const b = reinterpret_cast<const __m128i*>(lower + from + t * image::channels);
        __m256i pixels;
        if constexpr (Taps == 4)
            pixels = _mm256_setr_m128i(_mm_loadu_si128(a), _mm_loadu_si128(b));
        else
            pixels = _mm256_setr_m128i(_mm_loadl_epi64(a), _mm_loadl_epi64(b));
        spread_weights(weights + t, both);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, first), both));
        if constexpr (Taps == 4) {
            spread_weights(weights + t + 2, both);
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, second), both));
        }
    }
    sum = _mm256_srai_epi32(sum, axis_filter::weight_bits);
}

template <std::size_t Taps>
__attribute__((target("avx2,f16c"))) inline void horizontal_rows_avx2(const std::uint8_t* in, std::size_t stride,
                                                                      std::size_t rows, const axis_filter& x,
                                                                      std::uint8_t* out) {
    const std::size_t out_stride = x.outputs() * image::channels;
    for (std::size_t r = 0; r < rows; r += 2) {
        // The last of an odd number of rows is computed twice.
        const std::size_t below = r + 1 < rows ? r + 1 : r;
        const std::uint8_t* const upper = in + r * stride;
        const std::uint8_t* const lower = in + below * stride;
        std::uint8_t* const to = out + r * out_stride;
        std::uint8_t* const to_lower = out + below * out_stride;
        std::size_t i = 0;
        for (; i + 4 <= x.outputs(); i += 4) {
            __m256i sum[4];
            for (std::size_t k = 0; k < 4; ++k) horizontal_sum<Taps>(upper, lower, x, i + k, sum[k]);
            const __m256i packed =
                _mm256_packus_epi16(_mm256_packs_epi32(sum[0], sum[1]), _mm256_packs_epi32(sum[2], sum[3]));
            const std::size_t at = i * image::channels;
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to + at), _mm256_castsi256_si128(packed));
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to_lower + at), _mm256_extracti128_si256(packed, 1));
        }
        for (; i < x.outputs(); ++i) {
            horizontal_pixel(upper, x, i, to);
            horizontal_pixel(lower, x, i, to_lower);
        }
    }
}

inline void horizontal_avx2(const std::uint8_t* in, std::size_t stride, std::size_t rows, const axis_filter& x,
                            std::uint8_t* out) {
    if (x.taps() % 4 == 0)
        horizontal_rows_avx2<4>(in, stride, rows, x, out);
    else
        horizontal_rows_avx2<2>(in, stride, rows, x, out);
}

__attribute__((target("avx2,f16c"))) inline void vertical_avx2(const std::uint8_t* in, std::size_t stride,
                                                               const std::int16_t* weights, std::size_t taps,
                                                               std::size_t width, std::uint8_t* out) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i half = _mm256_set1_epi32(1 << (axis_filter::weight_bits - 1));
    const std::size_t bytes = width * image::channels;
    std::size_t i = 0;
    for (; i + 32 <= bytes; i += 32) {
        __m256i sum[4] = {half, half, half, half};
        for (std::size_t t = 0; t < taps; t += 2) {
            std::int32_t both = 0;
            std::memcpy(&both, weights + t, sizeof both);
            const __m256i weight = _mm256_set1_epi32(both);
            const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + t * stride + i));
            const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + (t + 1) * stride + i));
            const __m256i low = _mm256_unpacklo_epi8(a, b);
            const __m256i high = _mm256_unpackhi_epi8(a, b);
            sum[0] = _mm256_add_epi32(sum[0], _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), weight));
            sum[1] = _mm256_add_epi32(sum[1], _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), weight));
            sum[2] = _mm256_add_epi32(sum[2], _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), weight));
            sum[3] = _mm256_add_epi32(sum[3], _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), weight));
        }
        for (__m256i& one : sum) one = _mm256_srai_epi32(one, axis_filter::weight_bits);
        const __m256i packed =
            _mm256_packus_epi16(_mm256_packs_epi32(sum[0], sum[1]), _mm256_packs_epi32(sum[2], sum[3]));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), packed);
    }
    vertical_bytes(in, stride, weights, taps, i, bytes, out);
}

/// Eight pixels at a time into three planes.
__attribute__((target("avx2,f16c"))) inline std::size_t convert_planes_avx2(const std::uint8_t* in, std::size_t at,
                                                                            const augmentation& how,
                                                                            const normalisation& by,
                                                                            std::byte* sample) {
    const __m256i group = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12, 1, 5, 9,
                                           13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m256i join = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const bool is_half = how.type == workload::dtype::fp16;
    const std::size_t plane_bytes = how.size * how.size * how.element_bytes();
    std::size_t i = 0;
    for (; i + 8 <= how.size; i += 8) {
        const __m256i pixels = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i * image::channels));
        const __m256i planes = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(pixels, group), join);
        const __m128i red_green = _mm256_castsi256_si128(planes);
        const __m128i bytes[3] = {red_green, _mm_srli_si128(red_green, 8), _mm256_extracti128_si256(planes, 1)};
        std::byte* out = sample + (at * how.size + i) * how.element_bytes();
        for (std::size_t c = 0; c < 3; ++c, out += plane_bytes) {
            const __m256 value = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes[c]));
            const __m256 result =
                _mm256_add_ps(_mm256_mul_ps(value, _mm256_set1_ps(by.scale[c])), _mm256_set1_ps(by.bias[c]));
            if (is_half) {
                _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_cvtps_ph(result, _MM_FROUND_TO_NEAREST_INT));
            } else {
                _mm256_storeu_ps(reinterpret_cast<float*>(out), result);
            }
        }
    }
    return i;
}

/// A pixel at a time; each store writes a fourth element that the next pixel overwrites, so the last is left out.
__attribute__((target("avx2,f16c"))) inline std::size_t convert_pixels_avx2(const std::uint8_t* in, std::size_t at,
                                                                            const augmentation& how,
                                                                            const normalisation& by,
                                                                            std::byte* sample) {
    const __m128 scale = _mm_setr_ps(by.scale[0], by.scale[1], by.scale[2], 0);
    const __m128 bias = _mm_setr_ps(by.bias[0], by.bias[1], by.bias[2], 0);
    const bool is_half = how.type == workload::dtype::fp16;
    std::size_t i = 0;
    for (; i + 1 < how.size; ++i) {
        std::int32_t pixel = 0;
        std::memcpy(&pixel, in + i * image::channels, sizeof pixel);
        const __m128 value = _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(pixel)));
        const __m128 result = _mm_add_ps(_mm_mul_ps(value, scale), bias);
        std::byte* const out = sample + (at * how.size + i) * 3 * how.element_bytes();
        if (is_half) {
            _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_cvtps_ph(result, _MM_FROUND_TO_NEAREST_INT));
        } else {
            _mm_storeu_ps(reinterpret_cast<float*>(out), result);
        }
    }
    return i;
}

inline void convert_avx2(const std::uint8_t* in, std::size_t at, const augmentation& how, const normalisation& by,
                         std::byte* sample) {
    const bool planes = how.layout == workload::dataloader::layout::chw;
    const std::size_t done =
        planes ? convert_planes_avx2(in, at, how, by, sample) : convert_pixels_avx2(in, at, how, by, sample);
    convert_tail(in, at, done, how, by, sample);
}

/// clang 14 does not know "f16c" as a name for __builtin_cpu_supports; bit 29 of ecx of leaf 1 says it.
inline bool has_f16c() noexcept {
    std::uint32_t a = 1;
    std::uint32_t b = 0;
    std::uint32_t c = 0;
    std::uint32_t d = 0;
    asm("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return (c >> 29 & 1u) != 0;
}

#endif

} // namespace detail

/// The loops that run on every CPU.
[[nodiscard]] inline pixel_kernels portable_kernels() noexcept {
    return {detail::horizontal_portable, detail::vertical_portable, detail::convert_portable, "portable"};
}

/// The fastest loops that this CPU runs.
[[nodiscard]] inline pixel_kernels best_kernels() noexcept {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && detail::has_f16c()) {
        return {detail::horizontal_avx2, detail::vertical_avx2, detail::convert_avx2, "avx2"};
    }
#endif
    return portable_kernels();
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
