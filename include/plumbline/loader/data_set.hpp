// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_DATA_SET_HPP
#define PLUMBLINE_LOADER_DATA_SET_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/loader/augment.hpp"
#include "plumbline/loader/cache_folder.hpp"
#include "plumbline/loader/image_pipeline.hpp"
#include "plumbline/loader/records.hpp"
#include "plumbline/loader/source.hpp"
#include "plumbline/loader/synthetic_image.hpp"
#include "plumbline/measure/benchmark.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// A data set that is ready to be loaded.
struct data_set {
    pipeline all;
    std::vector<std::filesystem::path> files; ///< for the page cache; empty when nothing is read
    std::size_t bytes = 0;                    ///< of the files
    std::string decoder;                      ///< "libjpeg-turbo 2.1.5", "none"
    std::filesystem::path place;              ///< the folder or file that was named or made; empty when nothing is read
};

/// A data set that can be named at once, for the workload's hash, and opened (perhaps made) later.
struct data_provider {
    std::function<std::string()> identity; ///< throws file_error if the user's data are not there
    std::function<data_set(const augmentation&)> open;
    /// Makes what is not there yet, and tells how far it is; empty where nothing is made. Throws file_error.
    std::function<void(const measure::listener&)> prepare;
};

/// A source of the user's that is looked at once, when it is first asked for: listing a large folder takes seconds.
[[nodiscard]] inline std::function<source()> kept(std::function<source()> look) {
    return [look = std::move(look), found = std::make_shared<std::optional<source>>()] {
        if (!*found) *found = look();
        return **found;
    };
}

/// Bytes of files on disk; those that cannot be asked count as none.
[[nodiscard]] inline std::size_t total_size(const std::vector<std::filesystem::path>& files) {
    std::size_t bytes = 0;
    for (const std::filesystem::path& file : files) {
        std::error_code problem;
        const std::uintmax_t size = std::filesystem::file_size(file, problem);
        if (!problem) bytes += static_cast<std::size_t>(size);
    }
    return bytes;
}

namespace detail {

/// Generated records: 256 x 256 pixels, from which 224 x 224 and more are cropped.
inline constexpr std::size_t record_extent = 256;

inline record_layout generated_layout(std::size_t samples) {
    return {samples, record_extent, record_extent, false, 128, 0};
}

/// The header of a .npy file of version 1 for a layout: 128 bytes in all.
inline std::string npy_header(const record_layout& layout) {
    std::string text = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(layout.samples) + ", " +
                       std::to_string(layout.height) + ", " + std::to_string(layout.width) + ", 3), }";
    text.resize(layout.offset - 10 - 1, ' ');
    const std::size_t length = layout.offset - 10;
    return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(length & 0xff) + static_cast<char>(length >> 8) +
           text + '\n';
}

inline record_file make_generated_records(std::size_t samples, const std::filesystem::path& cache, std::size_t threads,
                                          const measure::listener& to = {}) {
    const record_layout layout = generated_layout(samples);
    const std::string name = "records-1-n" + std::to_string(samples);
    const std::size_t total = layout.offset + samples * layout.record_bytes();
    const auto make = [&](const std::filesystem::path& path, std::size_t) {
        std::vector<std::byte> file(total);
        const std::string header = npy_header(layout);
        std::memcpy(file.data(), header.data(), header.size());
        in_parallel(samples, threads, [&](std::size_t i) {
            const auto pixels = synthetic_image(record_extent, record_extent, 1, i);
            std::memcpy(file.data() + layout.offset + i * pixels.size(), pixels.data(), pixels.size());
        });
        write_file(path, file.data(), file.size());
    };
    return find_layout(ensure_generated(cache, name, {"records.npy"}, total, 1, make, to) / "records.npy");
}

} // namespace detail

/// A generated .npy file of 100 MB, made once in `cache`.
[[nodiscard]] inline data_provider generated_records(const std::filesystem::path& cache, std::size_t threads,
                                                     std::size_t samples = 512) {
    data_provider provider;
    provider.identity = [=] { return "generated:records-1-n" + std::to_string(samples); };
    provider.open = [=](const augmentation& how) {
        const record_file made = detail::make_generated_records(samples, cache, threads);
        const source from = record_files({made});
        return data_set{record_pipeline(from, made.layout, how), from.files, total_size(from.files), "none", made.path};
    };
    provider.prepare = [=](const measure::listener& to) {
        (void)detail::make_generated_records(samples, cache, threads, to);
    };
    return provider;
}

/// Records of the user's: one file, or those below a folder (list_records).
[[nodiscard]] inline data_provider record_data(const std::filesystem::path& path) {
    const auto look = kept([path] {
        std::vector<record_file> files;
        for (const std::filesystem::path& each : list_records(path)) files.push_back(find_layout(each));
        return record_files(files);
    });
    data_provider provider;
    provider.identity = [look] { return look().identity; };
    provider.open = [look, path](const augmentation& how) {
        const source from = look();
        return data_set{record_pipeline(from, find_layout(from.files.front()).layout, how), from.files,
                        total_size(from.files), "none", path};
    };
    return provider;
}

/// The same records in memory: what is left of a loader without storage and decoder.
[[nodiscard]] inline data_provider memory_data(std::size_t threads, std::size_t samples = 64) {
    data_provider provider;
    provider.identity = [=] { return "generated:memory-1-n" + std::to_string(samples); };
    provider.open = [=](const augmentation& how) {
        const record_layout layout = detail::generated_layout(samples);
        std::vector<std::vector<std::byte>> records(samples, std::vector<std::byte>(layout.record_bytes()));
        detail::in_parallel(samples, threads, [&](std::size_t i) {
            const auto pixels = synthetic_image(layout.width, layout.height, 1, i);
            std::memcpy(records[i].data(), pixels.data(), pixels.size());
        });
        return data_set{record_pipeline(in_memory(std::move(records)), layout, how), {}, 0, "none", {}};
    };
    return provider;
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
