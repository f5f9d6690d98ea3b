// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_EXIF_HPP
#define PLUMBLINE_LOADER_EXIF_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

namespace detail {

/// Bytes of a file read as numbers in either byte order; 0 behind the end.
struct byte_reader {
    std::span<const std::byte> bytes;
    bool little = false;

    [[nodiscard]] std::size_t at(std::size_t offset, std::size_t size) const noexcept {
        if (offset > bytes.size() || bytes.size() - offset < size) return 0;
        std::size_t value = 0;
        for (std::size_t i = 0; i < size; ++i) {
            value = value << 8 | std::to_integer<std::size_t>(bytes[offset + (little ? size - 1 - i : i)]);
        }
        return value;
    }
};

/// Orientation tag (0x0112) of the first directory of a TIFF block (EXIF 2.32, 4.6.4); 0 if there is none.
inline std::size_t tiff_orientation(std::span<const std::byte> tiff) noexcept {
    byte_reader reader{tiff, false};
    const std::size_t order = reader.at(0, 2);
    if (order != 0x4949 && order != 0x4d4d) return 0;
    reader.little = order == 0x4949;
    const std::size_t directory = reader.at(4, 4);
    const std::size_t entries = reader.at(directory, 2);
    for (std::size_t i = 0; i < entries; ++i) {
        const std::size_t entry = directory + 2 + 12 * i;
        if (entry + 12 > tiff.size()) return 0;
        if (reader.at(entry, 2) == 0x0112) return reader.at(entry + 8, 2);
    }
    return 0;
}

} // namespace detail

/// The EXIF orientation of a JPEG file if it asks for the image to be turned or mirrored (2 to 8), else 0.
/// torchvision's image folder ignores it, and so does this loader: it is only counted.
[[nodiscard]] inline std::size_t exif_orientation(std::span<const std::byte> jpeg) noexcept {
    const detail::byte_reader reader{jpeg, false};
    std::size_t at = 2; // behind the start-of-image marker
    while (reader.at(at, 1) == 0xff) {
        const std::size_t marker = reader.at(at + 1, 1);
        const std::size_t length = reader.at(at + 2, 2);
        if (marker == 0xda || length < 2 || at + 2 + length > jpeg.size()) return 0; // pixels begin, or no marker
        constexpr std::size_t prefix = 6;                                            // "Exif\0\0"
        if (marker == 0xe1 && length > 2 + prefix && std::memcmp(jpeg.data() + at + 4, "Exif\0", prefix) == 0) {
            const std::size_t value = detail::tiff_orientation(jpeg.subspan(at + 4 + prefix, length - 2 - prefix));
            return value >= 2 && value <= 8 ? value : 0;
        }
        at += 2 + length;
    }
    return 0;
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
