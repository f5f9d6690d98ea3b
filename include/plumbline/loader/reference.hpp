// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_REFERENCE_HPP
#define PLUMBLINE_LOADER_REFERENCE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/loader/augment.hpp"
#include "plumbline/loader/image.hpp"
#include "plumbline/workload/number.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

namespace detail {

/// Antialiased bilinear resize of one line of `extent` values in double precision, by the definition: a triangle as
/// wide as the reduction, normalised, cut off at the line's ends.
inline double resized_value(const std::vector<double>& line, std::size_t outputs, std::size_t at) {
    const double scale = static_cast<double>(line.size()) / static_cast<double>(outputs);
    const double support = std::max(1.0, scale);
    const double centre = (static_cast<double>(at) + 0.5) * scale;
    double sum = 0;
    double weights = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const double weight = 1 - std::fabs(static_cast<double>(i) + 0.5 - centre) / support;
        if (weight <= 0) continue;
        sum += weight * line[i];
        weights += weight;
    }
    return sum / weights;
}

} // namespace detail

/// What a sample should be, in levels of 0 to 255 before normalisation, by channel, row and column: `box` of an
/// unreduced image, resized and flipped in double precision without intermediate rounding. Slow.
[[nodiscard]] inline std::vector<double> reference_levels(const image& from, const crop_box& box, bool flipped,
                                                          std::size_t size) {
    std::vector<double> out(3 * size * size);
    std::vector<double> rows(box.height * size); // resized along x
    std::vector<double> line;
    for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t y = 0; y < box.height; ++y) {
            line.resize(box.width);
            const std::uint8_t* const row = from.row(box.y - from.y + y);
            for (std::size_t x = 0; x < box.width; ++x) line[x] = row[(box.x - from.x + x) * image::channels + c];
            for (std::size_t x = 0; x < size; ++x) {
                rows[y * size + (flipped ? size - 1 - x : x)] = detail::resized_value(line, size, x);
            }
        }
        for (std::size_t x = 0; x < size; ++x) {
            line.resize(box.height);
            for (std::size_t y = 0; y < box.height; ++y) line[y] = rows[y * size + x];
            for (std::size_t y = 0; y < size; ++y)
                out[(c * size + y) * size + x] = detail::resized_value(line, size, y);
        }
    }
    return out;
}

/// Takes the normalisation of a sample back: levels by channel, row and column, whatever its type and layout.
[[nodiscard]] inline std::vector<double> levels_of(const std::byte* sample, const augmentation& how) {
    const std::size_t plane = how.size * how.size;
    std::vector<double> out(3 * plane);
    for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t i = 0; i < plane; ++i) {
            const bool planes = how.layout == workload::dataloader::layout::chw;
            const std::size_t at = planes ? c * plane + i : i * 3 + c;
            float value = 0;
            if (how.type == workload::dtype::fp16) {
                std::uint16_t bits = 0;
                std::memcpy(&bits, sample + at * sizeof bits, sizeof bits);
                value = workload::from_fp16(bits);
            } else {
                std::memcpy(&value, sample + at * sizeof value, sizeof value);
            }
            out[c * plane + i] = (static_cast<double>(value) * how.deviation[c] + how.mean[c]) * 255;
        }
    }
    return out;
}

/// Mean absolute difference of two sets of levels; not a number when a value is none.
[[nodiscard]] inline double mean_difference(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += std::fabs(a[i] - b[i]);
    return sum / static_cast<double>(a.size());
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
