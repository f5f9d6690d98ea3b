// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_JPEG_PIPELINE_HPP
#define PLUMBLINE_LOADER_JPEG_PIPELINE_HPP

#include <cstddef>
#include <functional>
#include <memory>

#include "plumbline/loader/image_pipeline.hpp"
#include "plumbline/loader/jpeg/decoder.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// The reduction a decoder may apply itself (1, 2, 4 or 8) so that the resize still has `spare` times as many pixels
/// as it writes. With spare = 2 the result stays within half a level (mean) of a full decode: tests/loader/pixels.cpp.
[[nodiscard]] inline std::size_t decoder_reduction(const crop_box& box, std::size_t size, std::size_t spare = 2) {
    std::size_t reduction = 8;
    while (reduction > 1 && (box.width < reduction * size * spare || box.height < reduction * size * spare)) {
        reduction /= 2;
    }
    return reduction;
}

/// Decode stage for JPEG files: chooses the box from the header, then decodes no more than it needs.
[[nodiscard]] inline std::function<void(work&)> jpeg_decode(const augmentation& how) {
    const auto decoder = std::make_shared<jpeg_decoder>();
    return [decoder, how](work& w) {
        const jpeg_header header = decoder->open(w.encoded);
        w.oriented = header.oriented;
        choose_crop(w, header.width, header.height, how);
        decoder->read(w.box, decoder_reduction(w.box, how.size), w.pixels);
    };
}

/// The pipeline of JPEG files.
[[nodiscard]] inline pipeline jpeg_pipeline(const source& from, const augmentation& how) {
    return image_pipeline(from, how, [how] { return jpeg_decode(how); });
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
