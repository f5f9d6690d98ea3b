// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_IMAGE_HPP
#define PLUMBLINE_LOADER_IMAGE_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// A rectangle of pixels: column and row of its upper left corner, and its extent.
struct crop_box {
    std::size_t x = 0;
    std::size_t y = 0;
    std::size_t width = 0;
    std::size_t height = 0;

    bool operator==(const crop_box&) const = default;
};

/// 8-bit pixels of four bytes, red, green, blue and one that means nothing. It holds a region of a larger image,
/// perhaps reduced: pixel (0, 0) is pixel (x, y) of the image reduced by `reduction` in both directions.
/// Memory only grows: a worker decodes thousands of images into the same buffer.
struct image {
    static constexpr std::size_t channels = 4;
    /// Bytes that may be read, though not used, behind the last pixel: vector loads end there.
    static constexpr std::size_t padding = 64;

    std::vector<std::uint8_t> bytes;
    std::size_t width = 0;
    std::size_t height = 0;
    std::size_t x = 0;
    std::size_t y = 0;
    std::size_t reduction = 1;

    void resize(std::size_t columns, std::size_t rows) {
        width = columns;
        height = rows;
        const std::size_t needed = columns * rows * channels + padding;
        if (bytes.size() < needed) bytes.resize(needed);
    }
    [[nodiscard]] std::size_t stride() const noexcept { return width * channels; }
    [[nodiscard]] std::uint8_t* row(std::size_t at) noexcept { return bytes.data() + at * stride(); }
    [[nodiscard]] const std::uint8_t* row(std::size_t at) const noexcept { return bytes.data() + at * stride(); }
};

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
