// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_RESAMPLE_HPP
#define PLUMBLINE_LOADER_RESAMPLE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/loader/augment.hpp"
#include "plumbline/loader/filter.hpp"
#include "plumbline/loader/image.hpp"
#include "plumbline/loader/pixel_kernels.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// Cuts a box out of an image, resizes it (bilinear, antialiased, rows first, 8 bits between the passes: what
/// Pillow and hence torchvision do), flips it, normalises it and writes it in place into a batch.
/// Each worker has its own: it keeps buffers and is not safe to share.
class resampler {
public:
    explicit resampler(const augmentation& how, const pixel_kernels& kernels = best_kernels())
        : how_(how), by_(how), kernels_(kernels), row_(how.size * image::channels + image::padding) {}

    /// `box` counts in pixels of the full-size image and must lie inside what `from` holds; `sample` has room for
    /// how.sample_bytes(). Throws error if the image does not cover the box.
    void run(const image& from, const crop_box& box, bool flipped, std::byte* sample) {
        const axis_span across = span_of(box.x, box.width, from.x, from.width, from.reduction);
        const axis_span down = span_of(box.y, box.height, from.y, from.height, from.reduction);
        x_.set(across.start, across.extent, how_.size, across.low, across.high, flipped);
        y_.set(down.start, down.extent, how_.size, down.low, down.high, false);
        const std::size_t stride = how_.size * image::channels;
        // The last filter reads an even number of rows, the last of them perhaps with weight zero.
        const std::size_t rows = down.high - down.low;
        if (resized_.size() < (rows + y_.taps()) * stride) resized_.resize((rows + y_.taps()) * stride);
        kernels_.horizontal(from.row(down.low), from.stride(), rows, x_, resized_.data());
        for (std::size_t r = 0; r < how_.size; ++r) {
            const std::uint8_t* const first = resized_.data() + (y_.first(r) - down.low) * stride;
            kernels_.vertical(first, stride, y_.weights(r), y_.taps(), how_.size, row_.data());
            kernels_.convert(row_.data(), r, how_, by_, sample);
        }
    }

    [[nodiscard]] const char* kernels() const noexcept { return kernels_.name; }

private:
    /// One axis of a box in the pixels that an image really holds.
    struct axis_span {
        double start;
        double extent;
        std::size_t low;
        std::size_t high;
    };

    static axis_span span_of(std::size_t begin, std::size_t extent, std::size_t origin, std::size_t held,
                             std::size_t reduction) {
        const double scale = static_cast<double>(reduction);
        const std::size_t low = begin / reduction;
        const std::size_t high = (begin + extent + reduction - 1) / reduction;
        if (extent == 0 || low < origin || high > origin + held) {
            throw error("crop box from " + std::to_string(begin) + " over " + std::to_string(extent) +
                        " pixels is not inside the decoded region from " + std::to_string(origin * reduction) +
                        " over " + std::to_string(held * reduction));
        }
        return {static_cast<double>(begin) / scale - static_cast<double>(origin), static_cast<double>(extent) / scale,
                low - origin, high - origin};
    }

    augmentation how_;
    normalisation by_;
    pixel_kernels kernels_;
    axis_filter x_;
    axis_filter y_;
    std::vector<std::uint8_t> resized_; // rows of the box, already as wide as the output
    std::vector<std::uint8_t> row_;
};

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
