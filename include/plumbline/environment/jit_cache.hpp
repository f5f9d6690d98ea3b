// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_JIT_CACHE_HPP
#define PLUMBLINE_ENVIRONMENT_JIT_CACHE_HPP

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include <unistd.h>

#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// The folder where the driver keeps kernels it compiled from PTX: CUDA_CACHE_PATH, else ~/.nv/ComputeCache; empty
/// where neither can be told.
[[nodiscard]] inline std::string jit_cache_folder(const host& machine) {
    const auto variable = [&](const char* name) {
        const auto at = machine.variables.find(name);
        return at == machine.variables.end() ? std::string() : at->second;
    };
    if (const std::string path = variable("CUDA_CACHE_PATH"); !path.empty()) return path;
    const std::string home = variable("HOME");
    return home.empty() ? std::string() : home + "/.nv/ComputeCache";
}

/// Bytes in the cache now; 0 where the folder does not exist yet, empty where it cannot be told. If the number grows
/// during a run, the driver has compiled something.
[[nodiscard]] inline std::optional<std::int64_t> jit_cache_bytes(const host& machine) {
    const std::string folder = jit_cache_folder(machine);
    if (folder.empty()) return std::nullopt;
    namespace fs = std::filesystem;
    std::error_code failure;
    const fs::path place = detail::below(machine, folder);
    if (!fs::exists(place, failure)) return failure ? std::nullopt : std::optional<std::int64_t>(0);
    std::int64_t total = 0;
    fs::recursive_directory_iterator entry(place, fs::directory_options::skip_permission_denied, failure);
    for (const fs::recursive_directory_iterator end; !failure && entry != end; entry.increment(failure)) {
        std::error_code ignored; // a file that another process removes meanwhile counts as nothing
        if (entry->is_regular_file(ignored)) total += static_cast<std::int64_t>(entry->file_size(ignored));
    }
    if (failure) return std::nullopt;
    return total;
}

/// Whether compiled kernels can be kept: the folder, or the nearest one above it that exists, can be written.
[[nodiscard]] inline std::optional<bool> jit_cache_writable(const host& machine) {
    const auto off = machine.variables.find("CUDA_CACHE_DISABLE");
    if (off != machine.variables.end() && off->second == "1") return false;
    const std::string folder = jit_cache_folder(machine);
    if (folder.empty()) return std::nullopt;
    for (std::filesystem::path place = folder;; place = place.parent_path()) {
        if (exists(machine, place.string())) return ::access(detail::below(machine, place).c_str(), W_OK) == 0;
        if (place == place.parent_path()) return std::nullopt;
    }
}

/// The driver's cache of compiled kernels: can it be written, and how full is it.
inline void read_jit_cache(result::fingerprint& into, const host& machine) {
    recorder out(into, "files");
    const auto writable = jit_cache_writable(machine);
    const auto unknown = result::reading::absent("neither CUDA_CACHE_PATH nor HOME leads to a folder");
    out.config("cuda.jit_cache_writable", 1, writable ? result::reading::of(*writable) : unknown);
    const auto bytes = jit_cache_bytes(machine);
    out.state("cuda.jit_cache_bytes", 1, bytes ? result::reading::of(*bytes) : unknown);
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
