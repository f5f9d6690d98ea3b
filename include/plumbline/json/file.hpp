// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_FILE_HPP
#define PLUMBLINE_JSON_FILE_HPP

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "plumbline/core/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

/// Largest file that is read, in bytes. A baseline of 10,000 benchmarks has about 100 MB.
inline constexpr std::size_t max_file_bytes = std::size_t{1} << 30;

/// Whole contents of a regular file; file_error when it cannot be read, is no file or is larger than max_file_bytes.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

/// Replaces the file by `text` so that a kill at any moment leaves the old file or the new one: temporary file
/// `PATH.tmp.PID` in the same folder, fsync, rename, fsync of the folder. A symbolic link stays, its target is
/// replaced. Leftovers `PATH.tmp.*` of dead processes are removed. file_error when it cannot be written.
void write_atomically(const std::filesystem::path& path, std::string_view text);

/// Finds out whether write_atomically would work, before anything is measured: file_error with the remedy if not.
/// The file itself is left alone; a missing folder is an error unless it can be created (it is).
void check_writable(const std::filesystem::path& path);

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
