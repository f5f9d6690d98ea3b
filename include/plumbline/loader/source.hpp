// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_SOURCE_HPP
#define PLUMBLINE_LOADER_SOURCE_HPP

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/core/hash.hpp"
#include "plumbline/loader/file.hpp"
#include "plumbline/loader/pipeline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// Where encoded samples come from. The functions are called from many threads at once.
struct source {
    std::size_t samples = 0;
    std::function<void(work&)> read;                     ///< sets encoded and label of sample w.sample
    std::function<std::string(std::size_t sample)> name; ///< for messages
    std::string identity;                                ///< changes when the data do: part of the workload's hash
    std::vector<std::filesystem::path> files;            ///< to drop from or read into the page cache; may be empty
};

namespace detail {

/// ".jpg, .jpeg"
inline std::string text_of(const std::vector<std::string>& endings) {
    std::string text;
    for (const std::string& ending : endings) text += (text.empty() ? "" : ", ") + ending;
    return text;
}

/// Up to `most` files below a folder whose names end as given, in the order of the file system. Throws file_error if
/// the folder is missing.
inline std::vector<std::filesystem::path> find_files(const std::filesystem::path& folder,
                                                     const std::vector<std::string>& endings, std::size_t most) {
    namespace fs = std::filesystem;
    std::error_code problem;
    if (!fs::is_directory(folder, problem)) {
        throw file_error(folder.string(), problem && problem != std::errc::no_such_file_or_directory
                                              ? "cannot open the folder: " + problem.message()
                                              : "no such folder; expected one with files ending in " +
                                                    text_of(endings) + ", in sub-folders by class");
    }
    std::vector<fs::path> found;
    const auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator at(folder, options, problem), end;
         !problem && at != end && found.size() < most; at.increment(problem)) {
        std::string ending = at->path().extension().string();
        std::transform(ending.begin(), ending.end(), ending.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        if (std::find(endings.begin(), endings.end(), ending) == endings.end()) continue;
        std::error_code ignored;
        if (!at->is_directory(ignored)) found.push_back(at->path());
    }
    if (problem) throw file_error(folder.string(), "cannot list the folder: " + problem.message());
    return found;
}

} // namespace detail

/// Endings of the files that are read as images.
[[nodiscard]] inline std::vector<std::string> image_endings() {
    return {".jpg", ".jpeg"};
}

/// Files below a folder whose names end as given (lower case), sorted, so that the order is that of every machine.
/// Symbolic links to files are followed. Throws file_error if the folder is missing or has none.
[[nodiscard]] inline std::vector<std::filesystem::path>
list_files(const std::filesystem::path& folder, const std::vector<std::string>& endings = image_endings()) {
    auto found = detail::find_files(folder, endings, static_cast<std::size_t>(-1));
    if (found.empty()) {
        throw file_error(folder.string(), "holds no image; expected files ending in " + detail::text_of(endings));
    }
    std::sort(found.begin(), found.end());
    return found;
}

/// Images of a folder, as PyTorch's ImageFolder: the first sub-folder is the class, numbered in the order of names.
[[nodiscard]] inline source image_folder(const std::filesystem::path& folder) {
    struct listing {
        std::vector<std::string> paths;
        std::vector<std::int64_t> labels;
    };
    source from;
    from.files = list_files(folder);
    const auto list = std::make_shared<listing>();
    std::map<std::string, std::int64_t> classes;
    std::string text;
    for (const std::filesystem::path& file : from.files) {
        const std::filesystem::path relative = file.lexically_relative(folder);
        const std::string first = relative.has_parent_path() ? relative.begin()->string() : std::string();
        const auto known = classes.emplace(first, static_cast<std::int64_t>(classes.size())).first;
        list->paths.push_back(file.string());
        list->labels.push_back(known->second);
        std::error_code ignored;
        const std::uintmax_t size = std::filesystem::file_size(file, ignored);
        text += relative.string() + '\n' + (ignored ? "?" : std::to_string(size)) + '\n';
    }
    from.samples = from.files.size();
    from.identity = "folder:" + short_hash(text);
    from.name = [list](std::size_t sample) { return list->paths[sample]; };
    from.read = [list](work& w) {
        read_file(list->paths[w.sample], w.encoded);
        w.label = list->labels[w.sample];
    };
    return from;
}

/// Encoded samples that are in memory already; the read stage copies them.
[[nodiscard]] inline source in_memory(std::vector<std::vector<std::byte>> samples) {
    const auto data = std::make_shared<const std::vector<std::vector<std::byte>>>(std::move(samples));
    source from;
    from.samples = data->size();
    from.identity = "memory";
    from.name = [](std::size_t sample) { return "sample " + std::to_string(sample); };
    from.read = [data](work& w) {
        const std::vector<std::byte>& bytes = (*data)[w.sample];
        w.encoded.assign(bytes.begin(), bytes.end());
    };
    return from;
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
