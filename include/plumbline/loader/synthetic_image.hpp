// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_SYNTHETIC_IMAGE_HPP
#define PLUMBLINE_LOADER_SYNTHETIC_IMAGE_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plumbline/loader/random.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

namespace detail {

/// Adds smooth random shapes about `cell` pixels wide: random values on a grid, interpolated between its points.
inline void add_octave(std::vector<float>& pixels, std::size_t width, std::size_t height, std::size_t cell,
                       float amplitude, sample_random& random) {
    const std::size_t columns = width / cell + 2;
    std::vector<float> grid(columns * (height / cell + 2) * 3);
    for (float& value : grid) value = static_cast<float>(random.uniform(-1, 1)) * amplitude;
    for (std::size_t y = 0; y < height; ++y) {
        const float v = static_cast<float>(y % cell) / static_cast<float>(cell);
        const float* const above = grid.data() + (y / cell) * columns * 3;
        const float* const below = above + columns * 3;
        for (std::size_t x = 0; x < width; ++x) {
            const float u = static_cast<float>(x % cell) / static_cast<float>(cell);
            const std::size_t at = x / cell * 3;
            for (std::size_t c = 0; c < 3; ++c) {
                const float top = above[at + c] + (above[at + 3 + c] - above[at + c]) * u;
                const float bottom = below[at + c] + (below[at + 3 + c] - below[at + c]) * u;
                pixels[(y * width + x) * 3 + c] += top + (bottom - top) * v;
            }
        }
    }
}

} // namespace detail

/// An image that costs a JPEG decoder about what a photograph does: shapes of several sizes, edges, and grain whose
/// strength differs from image to image. Red, green, blue for each pixel; the same for the same (seed, index).
[[nodiscard]] inline std::vector<std::uint8_t> synthetic_image(std::size_t width, std::size_t height,
                                                               std::uint64_t seed, std::uint64_t index) {
    sample_random random(seed, 0x696d616765u, index);
    std::vector<float> pixels(width * height * 3, 128.0F);
    const std::size_t extent = std::max<std::size_t>(std::min(width, height), 32);
    detail::add_octave(pixels, width, height, extent / 3, 90, random);
    detail::add_octave(pixels, width, height, extent / 12, 45, random);
    detail::add_octave(pixels, width, height, std::max<std::size_t>(extent / 45, 2), 22, random);
    for (int edge = 0; edge < 6; ++edge) { // half planes of another brightness
        const double angle = random.uniform(0, 6.283185307179586);
        const double a = std::cos(angle);
        const double b = std::sin(angle);
        const double offset =
            a * random.uniform(0, static_cast<double>(width)) + b * random.uniform(0, static_cast<double>(height));
        const float step = static_cast<float>(random.uniform(-40, 40));
        for (std::size_t y = 0; y < height; ++y) {
            for (std::size_t x = 0; x < width; ++x) {
                if (a * static_cast<double>(x) + b * static_cast<double>(y) < offset) continue;
                for (std::size_t c = 0; c < 3; ++c) pixels[(y * width + x) * 3 + c] += step;
            }
        }
    }
    const float grain = static_cast<float>(random.uniform(2, 31));
    std::vector<std::uint8_t> bytes(pixels.size());
    for (std::size_t i = 0; i < width * height; ++i) {
        // Two 32-bit halves of one draw: a triangular distribution.
        const std::uint64_t bits = random.next();
        const float noise = grain * (static_cast<float>(bits >> 40) + static_cast<float>(bits & 0xffffffu)) * 0x1p-24F;
        for (std::size_t c = 0; c < 3; ++c) {
            bytes[i * 3 + c] =
                static_cast<std::uint8_t>(std::clamp(std::lround(pixels[i * 3 + c] + noise - grain), 0L, 255L));
        }
    }
    return bytes;
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
