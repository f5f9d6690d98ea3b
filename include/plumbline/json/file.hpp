// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_JSON_FILE_HPP
#define PLUMBLINE_JSON_FILE_HPP

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plumbline/core/error.hpp"
#include "plumbline/core/file_descriptor.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace json {

/// Largest file that is read, in bytes; 10,000 benchmarks of 5 sessions with 30 samples and cycles have 83 MB.
inline constexpr std::size_t max_file_bytes = std::size_t{512} << 20;

namespace detail {

/// Opens for this process alone (O_CLOEXEC), repeated when a signal interrupts.
[[nodiscard]] inline file_descriptor open_file(const std::filesystem::path& path, int flags, mode_t mode = 0) {
    int fd = -1;
    do {
        fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    return file_descriptor(fd);
}

[[nodiscard]] inline std::string system_message(int code) {
    return std::generic_category().message(code);
}

/// "cannot VERB: REASON; REMEDY" for the error numbers people meet.
[[noreturn]] inline void fail(const std::filesystem::path& path, const char* verb, int code) {
    std::string message = std::string("cannot ") + verb + ": " + system_message(code);
    switch (code) {
    case EACCES:
    case EPERM:
        message += "; check the owner and the mode of the file and of its folder";
        break;
    case EROFS:
        message += "; name a place on a writable file system";
        break;
    case ENOSPC:
    case EDQUOT:
        message += "; make room or name another place (an existing file is unchanged)";
        break;
    case EFBIG:
        message += "; raise the limit on the size of files (ulimit -f)";
        break;
    case ENOENT:
    case ENOTDIR:
        message += "; check the path";
        break;
    case ELOOP:
        message += "; the symbolic links go round in a circle";
        break;
    default:
        break;
    }
    throw file_error(path.string(), message);
}

/// The file a chain of symbolic links ends at, which need not exist; the path itself when it is no link.
[[nodiscard]] inline std::filesystem::path resolve_links(std::filesystem::path path) {
    std::error_code code;
    // 40 is the kernel's own limit for a chain of links.
    for (int hops = 0; hops < 40; ++hops) {
        if (!std::filesystem::is_symlink(std::filesystem::symlink_status(path, code))) return path;
        const std::filesystem::path target = std::filesystem::read_symlink(path, code);
        if (code) fail(path, "follow the link", code.value());
        path = target.is_absolute() ? target : path.parent_path() / target;
    }
    fail(path, "follow the link", ELOOP);
}

[[nodiscard]] inline std::filesystem::path folder_of(const std::filesystem::path& path) {
    return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

/// Whether a file name is one that temporary_file makes for `target`: "TARGET.tmp.DIGITS.DIGITS". Nothing else may be
/// removed, a user's own "TARGET.tmp.old" least of all.
[[nodiscard]] inline bool is_temporary_name(std::string_view name, const std::string& target) {
    const std::string prefix = target + ".tmp.";
    if (name.substr(0, prefix.size()) != prefix) return false;
    name.remove_prefix(prefix.size());
    const std::size_t dot = name.find('.');
    return dot != 0 && dot != std::string_view::npos && dot + 1 < name.size() &&
           name.find_first_not_of("0123456789.") == std::string_view::npos && name.find('.', dot + 1) == name.npos;
}

/// Removes what a kill during write_atomically leaves behind. A living writer holds a lock on its file, which also
/// tells across containers, where process ids do not.
inline void remove_leftovers(const std::filesystem::path& target) {
    std::error_code code;
    for (std::filesystem::directory_iterator it(folder_of(target), code), end; !code && it != end; it.increment(code)) {
        if (!is_temporary_name(it->path().filename().string(), target.filename().string())) continue;
        const file_descriptor file = open_file(it->path(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        if (!file.valid() || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
        std::error_code ignored; // another process may have been faster
        std::filesystem::remove(it->path(), ignored);
    }
}

inline void write_all(const file_descriptor& file, std::string_view text, const std::filesystem::path& path) {
    while (!text.empty()) {
        const ssize_t written = ::write(file.get(), text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail(path, "write", errno);
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

/// A temporary file beside its target, removed again unless it was renamed.
class temporary_file {
public:
    /// Creates and locks it, with the mode of the target where that exists, else with 0666 less the umask.
    explicit temporary_file(const std::filesystem::path& target) : file_(-1) {
        do {
            path_ = target.string() + ".tmp." + std::to_string(::getpid()) + '.' +
                    std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
            file_ = open_file(path_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
            if (!file_.valid()) fail(target, "create a temporary file beside it", errno);
        } while (!lock());
        struct stat old {};
        // A shared baseline stays readable to those who could read it; not being allowed to set the mode is no harm.
        if (::stat(target.c_str(), &old) == 0) static_cast<void>(::fchmod(file_.get(), old.st_mode & 07777));
    }
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    ~temporary_file() {
        if (!renamed_) ::unlink(path_.c_str());
    }

    /// Writes and flushes. fsync is where network file systems and quotas report what write() did not.
    void write(std::string_view text, const std::filesystem::path& target) {
        write_all(file_, text, target);
        if (::fsync(file_.get()) != 0 && errno != EINVAL) fail(target, "flush to disk", errno);
    }
    /// Takes the target's place; the lock is held until after that.
    void rename_to(const std::filesystem::path& target) {
        if (::rename(path_.c_str(), target.c_str()) != 0) fail(target, "replace", errno);
        renamed_ = true;
    }

private:
    /// Between creating and locking another process may take the file for a leftover and remove it: then it must be
    /// made again. Some network file systems have no locks; there leftovers are never removed either.
    [[nodiscard]] bool lock() const {
        while (::flock(file_.get(), LOCK_EX) != 0 && errno == EINTR) {
        }
        struct stat mine {};
        return ::fstat(file_.get(), &mine) != 0 || mine.st_nlink > 0;
    }

    std::filesystem::path path_;
    file_descriptor file_;
    bool renamed_ = false;
};

/// Whether this is a place that takes bytes but cannot be replaced: a terminal, /dev/null, a pipe, /dev/stdout.
[[nodiscard]] inline bool is_stream(const std::filesystem::path& path) {
    std::error_code code;
    const auto status = std::filesystem::status(path, code);
    return std::filesystem::is_character_file(status) || std::filesystem::is_fifo(status);
}

inline void write_stream(const std::filesystem::path& path, std::string_view text) {
    const file_descriptor file = open_file(path, O_WRONLY | O_NOCTTY);
    if (!file.valid()) fail(path, "open", errno);
    write_all(file, text, path);
}

/// Only a regular file, or none yet, can be replaced: renaming over a folder fails, over a device destroys it.
inline void check_replaceable(const std::filesystem::path& target) {
    std::error_code code;
    const auto status = std::filesystem::status(target, code);
    if (std::filesystem::is_directory(status)) {
        throw file_error(target.string(), "is a folder; name a file in it");
    }
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
        throw file_error(target.string(), "is not a regular file and cannot be replaced; name another file");
    }
    if (std::filesystem::exists(status) && ::access(target.c_str(), W_OK) != 0) fail(target, "write", errno);
}

} // namespace detail

/// Whole contents of a regular file; file_error when it cannot be read, is no file or is larger than max_file_bytes.
[[nodiscard]] inline std::string read_file(const std::filesystem::path& path) {
    // Without O_NONBLOCK opening a FIFO waits for a writer for ever.
    const file_descriptor file = detail::open_file(path, O_RDONLY | O_NONBLOCK);
    if (!file.valid()) detail::fail(path, "open", errno);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) detail::fail(path, "read", errno);
    if (S_ISDIR(status.st_mode)) throw file_error(path.string(), "is a folder; name a file");
    if (!S_ISREG(status.st_mode)) throw file_error(path.string(), "is not a regular file; save it to a file first");
    if (static_cast<std::size_t>(status.st_size) > max_file_bytes) {
        throw file_error(path.string(), "is larger than " + std::to_string(max_file_bytes >> 20) +
                                            " MiB, the most that is read; is it the right file?");
    }
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t at = 0;
    while (at < text.size()) {
        const ssize_t got = ::read(file.get(), text.data() + at, text.size() - at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) detail::fail(path, "read", errno);
        if (got == 0) break; // shortened while it was read: the parser will say where it ends
        at += static_cast<std::size_t>(got);
    }
    text.resize(at);
    return text;
}

/// Replaces the file by `text` so that a kill at any moment leaves the old file or the new one: temporary file
/// in the same folder, fsync, rename, fsync of the folder. A symbolic link stays and its target is
/// replaced; the mode of an existing file is kept. `FILE.tmp.*` left by killed
/// processes are removed.
/// What is no file but takes bytes (/dev/stdout, /dev/null, a pipe) is simply written to.
/// file_error when it cannot be written; an existing file is then unchanged.
inline void write_atomically(const std::filesystem::path& path, std::string_view text) {
    if (detail::is_stream(path)) return detail::write_stream(path, text);
    const std::filesystem::path target = detail::resolve_links(path);
    detail::check_replaceable(target);
    detail::remove_leftovers(target);
    detail::temporary_file temporary(target);
    temporary.write(text, target);
    temporary.rename_to(target);
    // The rename is on disk only when the folder is. Some file systems cannot sync a folder; the file is whole anyway.
    const file_descriptor folder = detail::open_file(detail::folder_of(target), O_RDONLY | O_DIRECTORY);
    if (folder.valid()) static_cast<void>(::fsync(folder.get()));
}

/// Finds out whether write_atomically would work, before anything is measured: creates the missing folders and a
/// temporary file, and removes that again. The file itself is left alone. file_error with the remedy if it fails.
inline void check_writable(const std::filesystem::path& path) {
    if (path.empty()) throw file_error("\"\"", "is no file name; name a file to write");
    if (detail::is_stream(path)) {
        if (::access(path.c_str(), W_OK) != 0) detail::fail(path, "write", errno);
        return;
    }
    const std::filesystem::path target = detail::resolve_links(path);
    std::error_code code;
    std::filesystem::create_directories(detail::folder_of(target), code);
    if (code) detail::fail(detail::folder_of(target), "create the folder", code.value());
    detail::check_replaceable(target);
    detail::remove_leftovers(target);
    const detail::temporary_file trial(target);
}

} // namespace json

PLUMBLINE_NAMESPACE_END

#endif
