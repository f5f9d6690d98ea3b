// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_PAGE_CACHE_HPP
#define PLUMBLINE_LOADER_PAGE_CACHE_HPP

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "plumbline/loader/failure.hpp"
#include "plumbline/loader/file.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// Asks the kernel to forget the cached pages of files (no root needed). Dirty pages are written first, since they
/// cannot be dropped. Whether it helped is what resident_share says: a tmpfs never forgets.
inline void drop_from_page_cache(const std::vector<std::filesystem::path>& files) {
    for (const std::filesystem::path& path : files) {
        const open_file file(path.string());
        if (!file.is_regular()) continue;
        (void)fdatasync(file.descriptor());
        (void)posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
    }
}

/// Reads files once, so that they are in the page cache if it is large enough. Files that cannot be read are left.
inline void read_into_page_cache(const std::vector<std::filesystem::path>& files) {
    std::vector<std::byte> chunk(std::size_t{1} << 20);
    for (const std::filesystem::path& path : files) {
        const open_file file(path.string());
        if (!file.is_regular()) continue;
        while (::read(file.descriptor(), chunk.data(), chunk.size()) > 0) {
        }
    }
}

/// Share of the files' pages that are in memory, by mincore; 1 where there is nothing to ask about.
[[nodiscard]] inline double resident_share(const std::vector<std::filesystem::path>& files) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::size_t pages = 0;
    std::size_t resident = 0;
    std::vector<unsigned char> in_memory;
    for (const std::filesystem::path& path : files) {
        const open_file file(path.string());
        if (!file.is_regular() || file.size() == 0) continue;
        void* const mapped = mmap(nullptr, file.size(), PROT_READ, MAP_SHARED, file.descriptor(), 0);
        if (mapped == MAP_FAILED) continue;
        in_memory.assign((file.size() + page - 1) / page, 0);
        if (mincore(mapped, file.size(), in_memory.data()) == 0) {
            pages += in_memory.size();
            resident += static_cast<std::size_t>(std::count_if(in_memory.begin(), in_memory.end(),
                                                               [](unsigned char flags) { return (flags & 1u) != 0; }));
        }
        (void)munmap(mapped, file.size());
    }
    return pages == 0 ? 1.0 : static_cast<double>(resident) / static_cast<double>(pages);
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
