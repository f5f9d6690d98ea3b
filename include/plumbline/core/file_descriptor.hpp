// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CORE_FILE_DESCRIPTOR_HPP
#define PLUMBLINE_CORE_FILE_DESCRIPTOR_HPP

#include <utility>

#include <unistd.h>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Owns a POSIX file descriptor and closes it; -1 is none.
class file_descriptor {
public:
    file_descriptor() = default;
    explicit file_descriptor(int fd) noexcept : fd_(fd) {}
    file_descriptor(file_descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    file_descriptor(const file_descriptor&) = delete;
    file_descriptor& operator=(const file_descriptor&) = delete;
    file_descriptor& operator=(file_descriptor&& other) noexcept {
        if (this != &other) {
            close();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    ~file_descriptor() { close(); }

    [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }
    [[nodiscard]] int get() const noexcept { return fd_; }
    void close() noexcept {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }

private:
    int fd_ = -1;
};

PLUMBLINE_NAMESPACE_END

#endif
