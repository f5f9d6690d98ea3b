// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_JPEG_DATA_HPP
#define PLUMBLINE_LOADER_JPEG_DATA_HPP

#include <cstddef>
#include <filesystem>
#include <string>

#include "plumbline/loader/data_set.hpp"
#include "plumbline/loader/jpeg/generated_set.hpp"
#include "plumbline/loader/jpeg/pipeline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// JPEG files of the user's folder (`--data=DIR`), or the generated set, made once in `cache`, when it is empty.
[[nodiscard]] inline data_provider jpeg_data(const std::filesystem::path& folder, const std::filesystem::path& cache,
                                             std::size_t threads, const generated_set& generated = {}) {
    data_provider provider;
    provider.identity = [=] {
        return folder.empty() ? "generated:" + generated.name() : image_folder(folder).identity;
    };
    provider.open = [=](const augmentation& how) {
        const source from = image_folder(folder.empty() ? make_generated_set(generated, cache, threads) : folder);
        const int version = LIBJPEG_TURBO_VERSION_NUMBER; // 2001005 is 2.1.5
        const std::string decoder = "libjpeg-turbo " + std::to_string(version / 1000000) + '.' +
                                    std::to_string(version / 1000 % 1000) + '.' + std::to_string(version % 1000);
        return data_set{jpeg_pipeline(from, how), from.files, total_size(from.files), decoder};
    };
    return provider;
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
