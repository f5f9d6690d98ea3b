// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_IMAGE_PIPELINE_HPP
#define PLUMBLINE_LOADER_IMAGE_PIPELINE_HPP

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "plumbline/loader/augment.hpp"
#include "plumbline/loader/pipeline.hpp"
#include "plumbline/loader/records.hpp"
#include "plumbline/loader/resample.hpp"
#include "plumbline/loader/source.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// Draws box and flip for an image; the only use of a sample's random numbers, in this order.
inline void choose_crop(work& w, std::size_t width, std::size_t height, const augmentation& how) {
    w.box = random_resized_crop(width, height, how, w.random);
    w.flipped = w.random.uniform() < how.flip;
}

/// The transform stage: cut, resize, flip, normalise in place.
[[nodiscard]] inline std::function<void(work&, std::byte*)> crop_and_normalise(const augmentation& how) {
    const auto own = std::make_shared<resampler>(how);
    return [own](work& w, std::byte* out) { own->run(w.pixels, w.box, w.flipped, out); };
}

/// Reads, decodes with `make_decode` (called once for each worker), crops, flips, normalises.
[[nodiscard]] inline pipeline image_pipeline(const source& from, const augmentation& how,
                                             std::function<std::function<void(work&)>()> make_decode) {
    pipeline all;
    all.samples = from.samples;
    all.sample_bytes = how.sample_bytes();
    all.name = from.name;
    all.make = [read = from.read, how, make_decode = std::move(make_decode)] {
        stages own;
        own.read = read;
        own.decode = make_decode();
        own.transform = crop_and_normalise(how);
        return own;
    };
    return all;
}

/// The pipeline of decoded records.
[[nodiscard]] inline pipeline record_pipeline(const source& from, const record_layout& layout,
                                              const augmentation& how) {
    return image_pipeline(from, how, [layout, how] {
        return [layout, how](work& w) {
            unpack_record(layout, w);
            choose_crop(w, layout.width, layout.height, how);
        };
    });
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
