// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_LOADER_BROKEN_IMAGES_HPP
#define PLUMBLINE_TESTS_LOADER_BROKEN_IMAGES_HPP

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "plumbline/loader/file.hpp"
#include "plumbline/loader/jpeg/encoder.hpp"
#include "plumbline/loader/synthetic_image.hpp"

namespace test {

inline std::vector<std::byte> encoded(std::size_t width, std::size_t height,
                                      const plumbline::loader::jpeg_encoding& how = {}) {
    auto pixels = plumbline::loader::synthetic_image(width, height, 1, 0);
    if (how.components == 4) pixels.resize(width * height * 4, 200);
    return plumbline::loader::encode_jpeg(pixels.data(), width, height, how);
}

/// Position of the frame header (marker ff c0 or ff c2).
inline std::size_t frame_header(const std::vector<std::byte>& file) {
    for (std::size_t i = 2; i + 1 < file.size();) {
        const auto marker = std::to_integer<unsigned>(file[i + 1]);
        if (marker == 0xc0 || marker == 0xc2) return i;
        i += 2 + (std::to_integer<std::size_t>(file[i + 2]) << 8 | std::to_integer<std::size_t>(file[i + 3]));
    }
    return 0;
}

inline std::vector<std::byte> with_size(std::vector<std::byte> file, unsigned width, unsigned height) {
    const std::size_t at = frame_header(file) + 5;
    file[at] = static_cast<std::byte>(height >> 8);
    file[at + 1] = static_cast<std::byte>(height & 0xffu);
    file[at + 2] = static_cast<std::byte>(width >> 8);
    file[at + 3] = static_cast<std::byte>(width & 0xffu);
    return file;
}

inline std::vector<std::byte> with_bits(std::vector<std::byte> file, unsigned bits) {
    file[frame_header(file) + 4] = static_cast<std::byte>(bits);
    return file;
}

/// The image turned by a quarter, as EXIF says it: orientation 6.
inline std::vector<std::byte> turned(std::vector<std::byte> file) {
    using namespace std::string_literals;
    const auto exif = "\xff\xe1\0\x22"
                      "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"s;
    std::vector<std::byte> segment;
    for (const char c : exif) segment.push_back(static_cast<std::byte>(c));
    file.insert(file.begin() + 2, segment.begin(), segment.end());
    return file;
}

inline void write(const std::filesystem::path& path, const std::vector<std::byte>& content) {
    plumbline::loader::write_file(path, content.data(), content.size());
}

/// Images that are merely odd: every one of them is loaded. Six of them.
inline void write_odd_images(const std::filesystem::path& folder) {
    plumbline::loader::jpeg_encoding cmyk, progressive;
    cmyk.components = 4;
    progressive.progressive = true;
    auto trailing = encoded(100, 80);
    trailing.insert(trailing.end(), 1000, std::byte{0});
    write(folder / "good.jpg", encoded(100, 80));
    write(folder / "one_pixel.jpg", encoded(1, 1));
    write(folder / "cmyk.jpg", encoded(60, 50, cmyk));
    write(folder / "progressive.jpg", encoded(60, 50, progressive));
    write(folder / "long.jpg", encoded(3000, 2));
    write(folder / "trailing.jpg", trailing);
}

/// Files that cannot be loaded, whatever the crop, with the kind of failure by name. Reading the pipe would block for
/// ever; the link that leads nowhere is a file that has disappeared since the folder was listed.
inline std::map<std::string, plumbline::loader::failure_kind> write_broken_images(const std::filesystem::path& folder) {
    const auto good = encoded(100, 80);
    const auto part = [&](double share) {
        return std::vector<std::byte>(
            good.begin(), good.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(good.size())));
    };
    const auto text = [&](const std::string& name, const std::string& content) {
        plumbline::loader::write_file(folder / name, content.data(), content.size());
    };
    text("empty.jpg", "");
    text("one_byte.jpg", "\xff");
    text("text.jpg", "this is no image");
    text("png.jpg", "\x89PNG\r\n\x1a\n 16 bits a channel");
    write(folder / "cut_header.jpg", part(0.02));
    write(folder / "cut.jpg", part(0.7));
    text("no_frame.jpg", "\xff\xd8\xff\xd9");
    write(folder / "bits12.jpg", with_bits(good, 12));
    write(folder / "bits16.jpg", with_bits(good, 16));
    write(folder / "huge.jpg", with_size(good, 20000, 20000));
    if (mkfifo((folder / "pipe.jpg").c_str(), 0600) != 0) throw std::runtime_error("mkfifo failed");
    std::filesystem::create_symlink("nowhere", folder / "dangling.jpg");
    using kind = plumbline::loader::failure_kind;
    return {
        {"empty.jpg", kind::empty},        {"one_byte.jpg", kind::unknown},     {"text.jpg", kind::unknown},
        {"png.jpg", kind::unknown},        {"cut_header.jpg", kind::truncated}, {"cut.jpg", kind::truncated},
        {"no_frame.jpg", kind::truncated}, {"bits12.jpg", kind::unsupported},   {"bits16.jpg", kind::unsupported},
        {"huge.jpg", kind::too_large},     {"pipe.jpg", kind::unreadable},      {"dangling.jpg", kind::missing},
    };
}

} // namespace test

#endif
