// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_LOADER_SUPPORT_HPP
#define PLUMBLINE_TESTS_LOADER_SUPPORT_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/loader/data_loader.hpp"

namespace test {

/// A new folder that is removed at the end of the test.
class temporary_folder {
public:
    temporary_folder() {
        std::string name = (std::filesystem::temp_directory_path() / "plumbline-test-XXXXXX").string();
        path_ = mkdtemp(name.data());
    }
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;
    ~temporary_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    std::filesystem::path write(const std::string& name, const std::string& content) const {
        return write(name, std::vector<std::byte>(reinterpret_cast<const std::byte*>(content.data()),
                                                  reinterpret_cast<const std::byte*>(content.data()) + content.size()));
    }
    std::filesystem::path write(const std::string& name, const std::vector<std::byte>& content) const {
        const std::filesystem::path path = path_ / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream file(path, std::ios::binary);
        file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
        return path;
    }

private:
    std::filesystem::path path_;
};

/// A data set whose sample i becomes the number i and the first random number it drew: 16 bytes.
inline plumbline::loader::pipeline numbered(
    std::size_t samples, std::function<void(plumbline::loader::work&)> read = [](auto&) {}) {
    plumbline::loader::pipeline all;
    all.samples = samples;
    all.sample_bytes = 2 * sizeof(std::uint64_t);
    all.make = [read = std::move(read)] {
        plumbline::loader::stages own;
        own.read = read;
        own.transform = [](plumbline::loader::work& w, std::byte* out) {
            const std::uint64_t values[2] = {w.sample, w.random.next()};
            std::memcpy(out, values, sizeof values);
            w.label = static_cast<std::int64_t>(10 * w.sample);
        };
        return own;
    };
    return all;
}

/// Everything a loader delivers in an epoch, batch after batch.
struct delivered {
    std::vector<std::size_t> indices; ///< of the batches
    std::vector<std::vector<std::size_t>> samples;
    std::vector<std::vector<std::byte>> bytes;

    bool operator==(const delivered&) const = default;
};

inline delivered drain(plumbline::loader::data_loader& from, std::uint64_t epoch) {
    delivered all;
    from.begin_epoch(epoch);
    while (auto next = from.next()) {
        all.indices.push_back(next->record().index);
        all.samples.push_back(next->record().samples);
        all.bytes.emplace_back(next->host(), next->host() + next->bytes());
    }
    return all;
}

} // namespace test

#endif
