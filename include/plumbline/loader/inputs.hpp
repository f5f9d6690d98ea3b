// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_INPUTS_HPP
#define PLUMBLINE_LOADER_INPUTS_HPP

#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/loader/data_set.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// Where the samples of a program's benchmarks come from, by the sources of their ids.
struct inputs {
    data_provider jpeg; ///< loader/jpeg/data.hpp; empty in a program without libjpeg-turbo
    data_provider raw;
    data_provider memory;
};

/// What the path of a user (`--data`) is: images for `jpeg`, or records for `raw`. Both empty: nothing was named.
struct user_data {
    std::filesystem::path images;
    std::filesystem::path records;
};

/// Looks at the path of a user, which may be empty. A folder with images is one of images, whatever else is in it.
/// Throws file_error when it is missing, cannot be read, or holds neither images nor records.
[[nodiscard]] inline user_data find_user_data(const std::filesystem::path& path) {
    user_data found;
    if (path.empty()) return found;
    std::error_code problem;
    if (std::filesystem::is_regular_file(path, problem)) {
        (void)find_layout(path); // said now, not when the first benchmark runs
        found.records = path;
        return found;
    }
    if (!std::filesystem::exists(path, problem)) {
        throw file_error(path.string(), problem ? "cannot look at it: " + problem.message()
                                                : "no such folder or file; expected a folder of images or of records, "
                                                  "or a file of records");
    }
    std::vector<std::string> endings = image_endings();
    const std::vector<std::string> records = record_endings();
    endings.insert(endings.end(), records.begin(), records.end());
    if (!detail::find_files(path, image_endings(), 1).empty())
        found.images = path;
    else if (!detail::find_files(path, records, 1).empty())
        found.records = path;
    else
        throw file_error(path.string(),
                         "holds neither images nor records; expected files ending in " + detail::text_of(endings));
    return found;
}

/// Gives the inputs for the path of a user, which may be empty; file_error as find_user_data.
using input_choice = std::function<inputs(const std::filesystem::path& data)>;

/// Generated data, and the user's records if there are any. `jpeg` stays empty.
[[nodiscard]] inline inputs default_inputs(const user_data& own = {}) {
    const std::size_t threads = std::thread::hardware_concurrency();
    inputs made;
    made.raw = own.records.empty() ? generated_records(cache_folder(), threads) : record_data(own.records);
    made.memory = memory_data(threads);
    return made;
}

/// The inputs of a program without libjpeg-turbo.
[[nodiscard]] inline inputs inputs_for(const std::filesystem::path& data) {
    return default_inputs(find_user_data(data));
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
