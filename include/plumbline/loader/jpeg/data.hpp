// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_JPEG_DATA_HPP
#define PLUMBLINE_LOADER_JPEG_DATA_HPP

#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>

#include "plumbline/loader/data_set.hpp"
#include "plumbline/loader/inputs.hpp"
#include "plumbline/loader/jpeg/generated_set.hpp"
#include "plumbline/loader/jpeg/pipeline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// JPEG files of the user's folder (`--data=DIR`), or the generated set, made once in `cache`, when it is empty.
[[nodiscard]] inline data_provider jpeg_data(const std::filesystem::path& folder, const std::filesystem::path& cache,
                                             std::size_t threads, const generated_set& generated = {}) {
    const auto look =
        kept([=] { return image_folder(folder.empty() ? make_generated_set(generated, cache, threads) : folder); });
    data_provider provider;
    provider.identity = [=] { return folder.empty() ? "generated:" + generated.name() : look().identity; };
    provider.open = [=](const augmentation& how) {
        const source from = look();
        const int version = LIBJPEG_TURBO_VERSION_NUMBER; // 2001005 is 2.1.5
        const std::string decoder = "libjpeg-turbo " + std::to_string(version / 1000000) + '.' +
                                    std::to_string(version / 1000 % 1000) + '.' + std::to_string(version % 1000);
        const std::filesystem::path place = folder.empty() ? cache / generated.name() : folder;
        return data_set{jpeg_pipeline(from, how), from.files, total_size(from.files), decoder, place};
    };
    if (!folder.empty()) return provider;
    provider.prepare = [=](const measure::listener& to) { (void)make_generated_set(generated, cache, threads, to); };
    return provider;
}

/// The inputs of a program with libjpeg-turbo: an input_choice.
[[nodiscard]] inline inputs jpeg_inputs(const std::filesystem::path& data) {
    const user_data own = find_user_data(data);
    inputs made = default_inputs(own);
    made.jpeg = jpeg_data(own.images, cache_folder(), std::thread::hardware_concurrency());
    return made;
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
