// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_PATCHES_HPP
#define PLUMBLINE_TRAINING_PATCHES_HPP

#include <cstdint>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// How images of three colours become the input of a network of side x side positions with `channels` values each: a
/// position sees a square window in the middle of its cell of size / side rows and columns. A window larger than the
/// cell overlaps its neighbours, and what lies outside the image is zero. So the first 1x1 convolution is a
/// convolution of the window's size over the image, as at the start of any image network.
struct patch_shape {
    std::int64_t batch = 1;
    std::int64_t size = 1;    ///< rows and columns of an image; a multiple of `side`
    bool interleaved = false; ///< images are size x size x 3, else 3 x size x size
    std::int64_t side = 1;
    std::int64_t channels = 3; ///< at least 3

    /// Rows and columns of a window: as many as the channels have room for.
    [[nodiscard]] constexpr std::int64_t window() const noexcept {
        std::int64_t w = 1;
        while (3 * (w + 1) * (w + 1) <= channels) ++w;
        return w;
    }
    [[nodiscard]] constexpr std::int64_t cell() const noexcept { return size / side; }
    [[nodiscard]] constexpr std::int64_t outputs() const noexcept { return batch * side * side * channels; }

    /// Where channel `c` at row `y` and column `x` comes from, counted in the image; -1: it is zero. The channels of a
    /// window are ordered by row, column and colour.
    [[nodiscard]] constexpr std::int64_t source(std::int64_t y, std::int64_t x, std::int64_t c,
                                                std::int64_t wide) const noexcept {
        const std::int64_t tap = c / 3, colour = c % 3;
        if (tap >= wide * wide) return -1;
        const std::int64_t first = (cell() - wide) / 2;
        const std::int64_t row = y * cell() + first + tap / wide, column = x * cell() + first + tap % wide;
        if (row < 0 || row >= size || column < 0 || column >= size) return -1;
        return interleaved ? (row * size + column) * 3 + colour : (colour * size + row) * size + column;
    }
};

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
