// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_STORE_HPP
#define PLUMBLINE_JSON_STORE_HPP

#include <filesystem>

#include "plumbline/json/baseline.hpp"
#include "plumbline/json/file.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

/// Reads a baseline: file_error when the file cannot be read, schema_error when it is not a valid baseline.
[[nodiscard]] inline result::baseline load(const std::filesystem::path& path) {
    return parse_baseline(read_file(path), path.string());
}

/// Writes a baseline atomically (write_atomically); file_error when it cannot be written.
inline void save(const std::filesystem::path& path, const result::baseline& what) {
    write_atomically(path, dump(what));
}

/// Where the finished benchmarks of a run that will write `path` are kept while it goes on: `FILE.partial`, a
/// baseline like any other (load and save it), removed by the program once `path` is written.
[[nodiscard]] inline std::filesystem::path partial_path(const std::filesystem::path& path) {
    return path.string() + ".partial";
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
