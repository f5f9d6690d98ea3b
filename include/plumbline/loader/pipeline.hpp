// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_PIPELINE_HPP
#define PLUMBLINE_LOADER_PIPELINE_HPP

// What a user replaces to time their own data set: three functions for a sample, one for a batch.
//
//     loader::pipeline mine;
//     mine.samples = files.size();
//     mine.sample_bytes = 3 * 224 * 224 * sizeof(float);
//     mine.make = [&] {                                            // called once in each worker
//         auto decoder = std::make_shared<my_decoder>();           // state of that worker: no locks needed
//         loader::stages own;
//         own.read = [&](loader::work& w) { read_file(files[w.sample], w.encoded); };
//         own.decode = [decoder](loader::work& w) { decoder->run(w.encoded, w.pixels); };
//         own.transform = [](loader::work& w, std::byte* out) { my_transform(w.pixels, w.random, out); };
//         return own;
//     };

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plumbline/loader/image.hpp"
#include "plumbline/loader/random.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// The steps a batch goes through; also the index of stage_times.
enum class stage { read, decode, transform, assemble, copy };
inline constexpr std::size_t stage_count = 5;

[[nodiscard]] inline const char* name(stage one) noexcept {
    constexpr const char* names[stage_count] = {"read", "decode", "transform", "assemble", "copy"};
    return names[static_cast<std::size_t>(one)];
}

/// One sample on its way through the stages. Each worker has one and reuses it, so that buffers are allocated once.
struct work {
    std::size_t sample = 0;         ///< index in the data set
    std::vector<std::byte> encoded; ///< set by read
    image pixels;                   ///< set by decode
    crop_box box;                   ///< what of the image the output shows, in full-size pixels; set by decode
    bool flipped = false;           ///< set by decode together with the box
    std::int64_t label = 0;         ///< set by any stage
    std::size_t oriented = 0;       ///< EXIF orientation other than upright (2 to 8) that was seen, 0 if none
    sample_random random;           ///< seeded by (seed, epoch, position in the epoch's order): not by the worker
};

/// What one worker does. A stage that throws drops the sample: it is named and counted, and the batch is shorter.
struct stages {
    std::function<void(work&)> read;
    std::function<void(work&)> decode;                                 ///< may be empty: nothing to decode
    std::function<void(work&, std::byte* out)> transform;              ///< writes pipeline::sample_bytes bytes
    std::function<void(std::byte* batch, std::size_t count)> assemble; ///< over the whole batch; may be empty
};

/// A data set with everything done to it.
struct pipeline {
    std::size_t samples = 0;                             ///< in the data set
    std::size_t sample_bytes = 0;                        ///< of one sample in a batch
    std::function<stages()> make;                        ///< called in the worker's own thread, once for each worker
    std::function<std::string(std::size_t sample)> name; ///< for messages; may be empty
};

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
