// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_JPEG_GENERATED_SET_HPP
#define PLUMBLINE_LOADER_JPEG_GENERATED_SET_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "plumbline/loader/cache_folder.hpp"
#include "plumbline/loader/jpeg/encoder.hpp"
#include "plumbline/loader/source.hpp"
#include "plumbline/loader/synthetic_image.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// A seeded set of JPEG files: by default 1024 of 500 x 375 pixels, about 65 kB each, in ten classes.
struct generated_set {
    std::size_t samples = 1024;
    std::size_t width = 500;
    std::size_t height = 375;
    int quality = 90;
    std::uint64_t seed = 1;

    /// Changes with everything that changes the pixels, the code included.
    [[nodiscard]] std::string name() const {
        return "jpeg-1-n" + std::to_string(samples) + "w" + std::to_string(width) + "h" + std::to_string(height) + "q" +
               std::to_string(quality) + "s" + std::to_string(seed);
    }
};

/// The folder of a set, made on first use (ensure_generated), which `to` hears of. Throws file_error.
inline std::filesystem::path make_generated_set(const generated_set& what, const std::filesystem::path& cache,
                                                std::size_t threads, const measure::listener& to = {}) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < what.samples; ++i) {
        char text[64];
        std::snprintf(text, sizeof text, "class%zu/%06zu.jpg", i % 10, i);
        names.emplace_back(text);
    }
    const std::uintmax_t expected = what.samples * what.width * what.height / 2;
    const auto make = [&](const std::filesystem::path& path, std::size_t i) {
        const auto pixels = synthetic_image(what.width, what.height, what.seed, i);
        jpeg_encoding how;
        how.quality = what.quality;
        const auto file = encode_jpeg(pixels.data(), what.width, what.height, how);
        write_file(path, file.data(), file.size());
    };
    return ensure_generated(cache, what.name(), names, expected, threads, make, to);
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
