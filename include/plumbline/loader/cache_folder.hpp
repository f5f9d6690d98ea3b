// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_CACHE_FOLDER_HPP
#define PLUMBLINE_LOADER_CACHE_FOLDER_HPP

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/loader/file.hpp"
#include "plumbline/measure/benchmark.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// Where generated data are kept: $PLUMBLINE_CACHE_DIR, else $XDG_CACHE_HOME/plumbline, else $HOME/.cache/plumbline,
/// else a folder of this user among the temporary files.
[[nodiscard]] inline std::filesystem::path cache_folder() {
    const auto variable = [](const char* name) {
        const char* const value = std::getenv(name);
        return std::filesystem::path(value == nullptr ? "" : value);
    };
    if (const auto own = variable("PLUMBLINE_CACHE_DIR"); !own.empty()) return own;
    if (const auto caches = variable("XDG_CACHE_HOME"); !caches.empty()) return caches / "plumbline";
    if (const auto home = variable("HOME"); !home.empty()) return home / ".cache" / "plumbline";
    return std::filesystem::temp_directory_path() / ("plumbline-" + std::to_string(getuid()));
}

namespace detail {

inline constexpr const char* manifest_name = "manifest.txt";

/// "name size" lines of all files, in the order given; sizes as they are on disk.
inline std::string manifest_of(const std::filesystem::path& folder, const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
        std::error_code problem;
        const std::uintmax_t size = std::filesystem::file_size(folder / name, problem);
        text += name + ' ' + (problem ? "missing" : std::to_string(size)) + '\n';
    }
    return text;
}

inline std::uintmax_t bytes_of(const std::filesystem::path& folder, const std::vector<std::string>& names) {
    std::uintmax_t bytes = 0;
    for (const std::string& name : names) {
        std::error_code problem;
        const std::uintmax_t size = std::filesystem::file_size(folder / name, problem);
        if (!problem) bytes += size;
    }
    return bytes;
}

inline bool is_complete(const std::filesystem::path& folder, const std::vector<std::string>& names) {
    std::ifstream file(folder / manifest_name, std::ios::binary);
    if (!file) return false;
    const std::string noted((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return noted == manifest_of(folder, names);
}

inline void check_space(const std::filesystem::path& folder, std::uintmax_t bytes) {
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    if (problem) {
        throw file_error(folder.string(), "cannot create the cache folder: " + problem.message() +
                                              "; set PLUMBLINE_CACHE_DIR to a folder that can be written");
    }
    const std::filesystem::space_info space = std::filesystem::space(folder, problem);
    if (problem || space.available >= bytes) return;
    throw file_error(folder.string(),
                     "the generated data set needs about " + std::to_string(bytes >> 20) + " MiB, only " +
                         std::to_string(space.available >> 20) +
                         " MiB are free; free space there or set PLUMBLINE_CACHE_DIR to another folder");
}

/// Calls make(i) for 0 <= i < count in `threads` threads; rethrows the first exception, after all have ended.
inline void in_parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& make) {
    std::atomic<std::size_t> next{0};
    std::mutex guard;
    std::exception_ptr problem;
    const auto run = [&] {
        try {
            for (std::size_t i = next++; i < count; i = next++) make(i);
        } catch (...) {
            next = count;
            const std::lock_guard<std::mutex> lock(guard);
            if (!problem) problem = std::current_exception();
        }
    };
    std::vector<std::thread> all;
    for (std::size_t i = 1; i < std::min(threads, count); ++i) all.emplace_back(run);
    run();
    for (std::thread& one : all) one.join();
    if (problem) std::rethrow_exception(problem);
}

/// Removes what processes that were killed have left of this set: temporary folders that nobody wrote to for an hour.
inline void remove_abandoned(const std::filesystem::path& cache, const std::string& name) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    std::vector<fs::path> abandoned;
    for (fs::directory_iterator at(cache, ignored), end; !ignored && at != end; at.increment(ignored)) {
        if (at->path().filename().string().rfind(name + ".tmp.", 0) != 0) continue;
        std::error_code gone;
        const auto written = fs::last_write_time(at->path(), gone);
        const bool old = !gone && fs::file_time_type::clock::now() - written > std::chrono::hours(1);
        if (old) abandoned.push_back(at->path());
    }
    for (const fs::path& each : abandoned) fs::remove_all(each, ignored);
}

/// Tells how far the making of a set is: at most twice a second, from whichever thread finishes a part.
class making_progress {
public:
    making_progress(std::size_t all, const measure::listener& to) : all_(all), to_(to) {}

    void one_done() {
        const std::size_t done = ++done_;
        const std::lock_guard<std::mutex> lock(guard_);
        const auto now = std::chrono::steady_clock::now();
        if (!to_.step || now - told_ < std::chrono::milliseconds(500)) return;
        told_ = now;
        to_.step("making data: file " + std::to_string(done) + " of " + std::to_string(all_));
    }
    void finish(const std::filesystem::path& folder, std::uintmax_t bytes) const {
        if (!to_.note) return;
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began_;
        char seconds[32];
        std::snprintf(seconds, sizeof seconds, "%.1f", took.count());
        to_.note("made data for the DataLoader in " + std::string(seconds) + " s: " + std::to_string(all_) +
                 (all_ == 1 ? " file, " : " files, ") + std::to_string(bytes >> 20) + " MiB, kept in " +
                 folder.string() + " (PLUMBLINE_CACHE_DIR chooses another folder)");
    }

private:
    std::size_t all_;
    const measure::listener& to_;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point told_{};
    std::atomic<std::size_t> done_{0};
    std::mutex guard_;
};

} // namespace detail

/// Makes sure that `cache`/`name` holds the files `names` with the sizes they had when they were made, and returns
/// it. What is missing or has another size is made anew: make(path, i) writes file i, from `threads` threads.
/// Processes may do this at the same time; each sees all files or none. `to` hears how far it is, if anything is made.
/// Throws file_error: no room, no permission.
inline std::filesystem::path
ensure_generated(const std::filesystem::path& cache, const std::string& name, const std::vector<std::string>& names,
                 std::uintmax_t expected_bytes, std::size_t threads,
                 const std::function<void(const std::filesystem::path&, std::size_t)>& make,
                 const measure::listener& to = {}) {
    namespace fs = std::filesystem;
    const fs::path final = cache / name;
    if (detail::is_complete(final, names)) return final;
    detail::check_space(cache, expected_bytes);
    const fs::path temporary = cache / (name + ".tmp." + std::to_string(getpid()));
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    detail::remove_abandoned(cache, name);
    try {
        detail::making_progress progress(names.size(), to);
        for (const std::string& each : names) fs::create_directories((temporary / each).parent_path());
        detail::in_parallel(names.size(), threads, [&](std::size_t i) {
            make(temporary / names[i], i);
            progress.one_done();
        });
        const std::string manifest = detail::manifest_of(temporary, names);
        write_file(temporary / detail::manifest_name, manifest.data(), manifest.size());
        if (!detail::is_complete(final, names)) { // else another process was faster
            fs::remove_all(final);
            std::error_code lost;
            fs::rename(temporary, final, lost);
            if (lost && !detail::is_complete(final, names)) throw fs::filesystem_error("rename", final, lost);
        }
        progress.finish(final, detail::bytes_of(final, names));
    } catch (const fs::filesystem_error& problem) {
        fs::remove_all(temporary, ignored);
        throw file_error(cache.string(), std::string("cannot make the generated data set: ") + problem.what());
    } catch (...) {
        fs::remove_all(temporary, ignored);
        throw;
    }
    fs::remove_all(temporary, ignored);
    return final;
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
