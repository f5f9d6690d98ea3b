// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_FILE_HPP
#define PLUMBLINE_LOADER_FILE_HPP

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/loader/failure.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// A file descriptor that closes itself.
class open_file {
public:
    /// Opens for reading. Does not block on a pipe or device that lies where a file should: is_regular() tells.
    explicit open_file(const std::string& path) noexcept
        : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), problem_(descriptor_ < 0 ? errno : 0) {
        if (descriptor_ >= 0 && fstat(descriptor_, &status_) != 0) problem_ = errno;
    }
    open_file(open_file&& other) noexcept
        : descriptor_(std::exchange(other.descriptor_, -1)), problem_(other.problem_), status_(other.status_) {}
    open_file& operator=(open_file&&) = delete;
    ~open_file() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    [[nodiscard]] int problem() const noexcept { return problem_; } ///< errno of opening, 0 if it went well
    [[nodiscard]] bool is_regular() const noexcept { return problem_ == 0 && S_ISREG(status_.st_mode); }
    [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(status_.st_size); }

private:
    int descriptor_;
    int problem_;
    struct stat status_ {};
};

namespace detail {

[[noreturn]] inline void throw_read_problem(int code) {
    const failure_kind kind = code == ENOENT || code == ENOTDIR ? failure_kind::missing : failure_kind::unreadable;
    throw sample_error(kind, std::string("cannot read it: ") + std::strerror(code));
}

} // namespace detail

/// Reads exactly `size` bytes at `offset`; throws sample_error.
inline void read_at(int descriptor, std::size_t offset, std::size_t size, std::byte* into) {
    for (std::size_t done = 0; done < size;) {
        const ssize_t got = pread(descriptor, into + done, size - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) detail::throw_read_problem(errno);
        if (got == 0) {
            throw sample_error(failure_kind::truncated, "ends at byte " + std::to_string(offset + done) +
                                                            ", expected " + std::to_string(offset + size));
        }
        done += static_cast<std::size_t>(got);
    }
}

/// Reads a whole file, as long as it is now, into a reused buffer. Throws sample_error: missing, unreadable, empty.
inline void read_file(const std::string& path, std::vector<std::byte>& into) {
    const open_file file(path);
    if (file.problem() != 0) detail::throw_read_problem(file.problem());
    if (!file.is_regular()) throw sample_error(failure_kind::unreadable, "not a regular file");
    if (file.size() == 0) throw sample_error(failure_kind::empty, "the file is empty");
    into.resize(file.size());
    read_at(file.descriptor(), 0, into.size(), into.data());
}

/// Writes a whole file; throws file_error with what to do about it, and leaves no part of it behind.
inline void write_file(const std::filesystem::path& path, const void* data, std::size_t size) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int problem = descriptor < 0 ? errno : 0;
    for (std::size_t done = 0; problem == 0 && done < size;) {
        const ssize_t put = ::write(descriptor, static_cast<const std::byte*>(data) + done, size - done);
        if (put < 0 && errno != EINTR) problem = errno;
        if (put > 0) done += static_cast<std::size_t>(put);
    }
    struct stat status {};
    const bool regular = descriptor >= 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    if (descriptor >= 0 && ::close(descriptor) != 0 && problem == 0) problem = errno;
    if (problem == 0) return;
    if (regular) ::unlink(path.c_str()); // never a device
    throw file_error(path.string(), "cannot write " + std::to_string(size) + " bytes: " + std::strerror(problem) +
                                        "; free space there or set PLUMBLINE_CACHE_DIR to another folder");
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
