// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CPU_MEMORY_HPP
#define PLUMBLINE_CPU_MEMORY_HPP

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "plumbline/core/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cpu {

/// Bytes of the last-level cache as the C library says; 32 MiB where it does not know.
[[nodiscard]] inline std::size_t last_level_cache_bytes() {
    long found = 0;
#ifdef _SC_LEVEL4_CACHE_SIZE
    for (int name : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
        if (found <= 0) found = sysconf(name);
    }
#endif
    return found > 0 ? static_cast<std::size_t>(found) : std::size_t{32} << 20;
}

/// Bytes of memory that are free now, as the C library says; the page cache does not count.
[[nodiscard]] inline std::size_t free_memory_bytes() {
    const long pages = sysconf(_SC_AVPHYS_PAGES);
    const long page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) : 0;
}

/// Owns raw memory aligned to a page; a large one to huge pages, which it asks for: without them a gigabyte is 262,144
/// page faults, seconds on a virtual machine, and its address translation part of what is timed.
class buffer {
public:
    explicit buffer(std::size_t bytes) : bytes_(bytes) {
        constexpr std::size_t huge_page = std::size_t{2} << 20;
        const std::size_t page = bytes >= huge_page ? huge_page : 4096;
        const std::size_t whole = (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
        data_.reset(static_cast<std::byte*>(std::aligned_alloc(page, whole)));
        if (!data_) {
            throw error("cannot allocate " + std::to_string(bytes) + " bytes of host memory: use a smaller size");
        }
        // Where they are switched off this does nothing.
        if (page == huge_page) static_cast<void>(madvise(data_.get(), whole, MADV_HUGEPAGE));
    }

    [[nodiscard]] std::byte* data() const noexcept { return data_.get(); }
    [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

private:
    struct release {
        void operator()(std::byte* at) const noexcept { std::free(at); }
    };
    std::size_t bytes_;
    std::unique_ptr<std::byte, release> data_;
};

/// Buffer sets of `bytes` each that a cold kernel rotates over: together at least three times the last-level cache,
/// two at the least; fewer where that would be more than 1 GiB, which takes a second to fill, or a quarter of the free
/// memory. 1024 at the most: each is touched once before anything is timed, and 80,000 sets of a tiny product took
/// minutes on a machine that shares its 480 MiB cache.
[[nodiscard]] inline std::size_t cold_slots(std::size_t bytes, std::size_t cache_bytes, std::size_t free_bytes) {
    bytes = std::max<std::size_t>(bytes, 1);
    const std::size_t wanted = std::clamp<std::size_t>(1 + 3 * cache_bytes / bytes, 2, 1024);
    return std::max<std::size_t>(1, std::min(wanted, std::min(std::size_t{1} << 30, free_bytes / 4) / bytes));
}

[[nodiscard]] inline std::size_t cold_slots(std::size_t bytes) {
    return cold_slots(bytes, last_level_cache_bytes(), free_memory_bytes());
}

} // namespace cpu

PLUMBLINE_NAMESPACE_END

#endif
