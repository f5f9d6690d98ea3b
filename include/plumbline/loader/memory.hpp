// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_MEMORY_HPP
#define PLUMBLINE_LOADER_MEMORY_HPP

// Where batches are built and how they reach a device. Both are handed in, so that nothing here needs CUDA.

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// Allocator of the ring of batches.
struct host_memory {
    std::function<std::byte*(std::size_t bytes)> allocate; ///< page-aligned; throws plumbline::error
    std::function<void(std::byte*, std::size_t bytes)> release;
    bool pinned = false; ///< page-locked
};

/// Copies batches to a device, on a stream of its own. All functions are called from one thread at a time.
struct device_copy {
    std::size_t buffers = 2;                                             ///< device buffers to rotate over
    std::function<void(std::size_t buffers, std::size_t bytes)> reserve; ///< called once, before the first copy
    /// Starts a copy into a buffer; returns at once.
    std::function<void(std::size_t buffer, const std::byte* from, std::size_t bytes)> start;
    std::function<void(std::size_t buffer)> wait;           ///< until the buffer's copy is done
    std::function<const void*(std::size_t buffer)> address; ///< device address of a buffer

    explicit operator bool() const noexcept { return static_cast<bool>(start); }
};

namespace detail {

inline std::byte* map_pages(std::size_t bytes) {
    void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        throw error("cannot allocate " + std::to_string(bytes) + " bytes for a batch: " + std::strerror(errno) +
                    "; use fewer workers, a smaller prefetch factor or smaller batches");
    }
    // Huge pages save thousands of faults; where they are off this does nothing.
    (void)madvise(pages, bytes, MADV_HUGEPAGE);
    // Touched here, so that the first batches do not pay for it.
    auto* const touched = static_cast<volatile std::byte*>(pages);
    for (std::size_t at = 0; at < bytes; at += 4096) touched[at] = std::byte{0};
    return static_cast<std::byte*>(pages);
}

inline void unmap_pages(std::byte* pages, std::size_t bytes) {
    (void)munmap(pages, bytes);
}

} // namespace detail

/// Ordinary memory.
[[nodiscard]] inline host_memory pageable_memory() {
    return {detail::map_pages, detail::unmap_pages, false};
}

/// Memory locked with mlock, for machines without a device. Throws unsupported_error where the limit on locked
/// memory (RLIMIT_MEMLOCK) is too small, and says so.
[[nodiscard]] inline host_memory locked_memory() {
    const auto allocate = [](std::size_t bytes) {
        std::byte* const pages = detail::map_pages(bytes);
        if (mlock(pages, bytes) == 0) return pages;
        const int code = errno;
        detail::unmap_pages(pages, bytes);
        rlimit limit{};
        (void)getrlimit(RLIMIT_MEMLOCK, &limit);
        throw unsupported_error("cannot lock " + std::to_string(bytes) + " bytes of a batch in memory (" +
                                std::strerror(code) + "): the limit is " + std::to_string(limit.rlim_cur) +
                                " bytes; raise it (ulimit -l, docker --ulimit memlock=-1) or do not ask for pinning");
    };
    return {allocate, detail::unmap_pages, true};
}

/// Memory for batches, and the way to the device where there is one.
struct transfer {
    host_memory memory = pageable_memory();
    device_copy copy;
};

/// One allocation of host_memory.
class host_buffer {
public:
    host_buffer(const host_memory& from, std::size_t bytes)
        : release_(from.release), bytes_(bytes), data_(from.allocate(bytes)) {}
    host_buffer(host_buffer&& other) noexcept
        : release_(std::move(other.release_)), bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}
    host_buffer& operator=(host_buffer&&) = delete;
    ~host_buffer() {
        if (data_ != nullptr) release_(data_, bytes_);
    }

    [[nodiscard]] std::byte* data() const noexcept { return data_; }

private:
    std::function<void(std::byte*, std::size_t)> release_;
    std::size_t bytes_;
    std::byte* data_;
};

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
