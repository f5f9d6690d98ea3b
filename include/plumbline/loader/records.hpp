// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_RECORDS_HPP
#define PLUMBLINE_LOADER_RECORDS_HPP

// Decoded images in one file: NumPy's .npy and CIFAR-10's binary format.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/loader/file.hpp"
#include "plumbline/loader/source.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// How 8-bit RGB images lie in a file: records of the same size, one after the other.
struct record_layout {
    std::size_t samples = 0;
    std::size_t width = 0;
    std::size_t height = 0;
    bool planes = false;         ///< red, green and blue one after the other; else pixel by pixel
    std::size_t offset = 0;      ///< of the first record in the file
    std::size_t label_bytes = 0; ///< before the pixels of each record; read as a little-endian number

    [[nodiscard]] std::size_t pixel_bytes() const noexcept { return 3 * width * height; }
    [[nodiscard]] std::size_t record_bytes() const noexcept { return label_bytes + pixel_bytes(); }
};

namespace detail {

/// The text behind `key` in the Python dictionary of a .npy header.
inline std::string_view npy_value(std::string_view header, std::string_view key) {
    const std::size_t at = header.find("'" + std::string(key) + "'");
    if (at == std::string_view::npos) return {};
    std::string_view rest = header.substr(header.find(':', at) + 1);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest;
}

inline std::vector<std::size_t> npy_shape(std::string_view text) {
    std::vector<std::size_t> shape;
    if (text.empty() || text.front() != '(') return shape;
    const char* at = text.data() + 1;
    const char* const end = text.data() + text.size();
    while (at != end && *at != ')') {
        std::size_t extent = 0;
        const auto [next, status] = std::from_chars(at, end, extent);
        if (status == std::errc{}) shape.push_back(extent);
        at = status == std::errc{} ? next : at + 1; // a comma or a blank
    }
    return shape;
}

} // namespace detail

/// Reads the header of a .npy file of unsigned bytes with shape (N, H, W, 3) or (N, 3, H, W) in C order (format
/// versions 1 to 3). Throws file_error for anything else, or when the file is shorter than the shape says.
[[nodiscard]] inline record_layout npy_layout(const std::filesystem::path& path) {
    std::vector<std::byte> start(12);
    const open_file file(path.string());
    const auto refuse = [&](const std::string& why) { return file_error(path.string(), why); };
    if (!file.is_regular()) throw refuse("cannot read it, or not a regular file");
    if (file.size() < start.size()) throw refuse("too short to be a .npy file");
    read_at(file.descriptor(), 0, start.size(), start.data());
    const std::string_view magic(reinterpret_cast<const char*>(start.data()), 6);
    const auto byte_at = [&](std::size_t i) { return std::to_integer<std::size_t>(start[i]); };
    if (magic != "\x93NUMPY" || byte_at(6) < 1 || byte_at(6) > 3) throw refuse("not a .npy file of version 1 to 3");
    const bool old = byte_at(6) == 1;
    const std::size_t begin = old ? 10 : 12;
    const std::size_t length = byte_at(8) | byte_at(9) << 8 | (old ? 0 : byte_at(10) << 16 | byte_at(11) << 24);
    if (length > 65536 || begin + length > file.size()) throw refuse("the header of the .npy file is cut short");
    std::string header(length, ' ');
    read_at(file.descriptor(), begin, length, reinterpret_cast<std::byte*>(header.data()));
    const std::string_view type = detail::npy_value(header, "descr").substr(0, 5);
    const std::vector<std::size_t> shape = detail::npy_shape(detail::npy_value(header, "shape"));
    const bool c_order = detail::npy_value(header, "fortran_order").substr(0, 5) == "False";
    const bool bytes = type == "'|u1'" || type == "'u1'," || type == "'<u1'";
    if (!bytes || !c_order || shape.size() != 4 || (shape[3] != 3 && shape[1] != 3)) {
        throw refuse("expected unsigned bytes ('|u1') in C order with shape (N, H, W, 3) or (N, 3, H, W), found " +
                     header.substr(0, header.find_last_not_of(" \n") + 1));
    }
    const bool planes = shape[3] != 3;
    record_layout found{shape[0], planes ? shape[3] : shape[2], planes ? shape[2] : shape[1], planes, begin + length,
                        0};
    constexpr std::size_t most = std::size_t{1} << 20;
    const bool sane = found.width >= 1 && found.height >= 1 && found.width <= most && found.height <= most;
    if (!sane || found.samples == 0 || found.samples > (file.size() - found.offset) / found.record_bytes()) {
        throw refuse("the file has " + std::to_string(file.size()) + " bytes, which is too short for its shape");
    }
    return found;
}

/// CIFAR-10's binary format: a label and 3 x 32 x 32 bytes in planes. Throws file_error if the size is no multiple.
[[nodiscard]] inline record_layout cifar10_layout(const std::filesystem::path& path) {
    const open_file file(path.string());
    record_layout layout{0, 32, 32, true, 0, 1};
    const bool fits = file.is_regular() && file.size() != 0 && file.size() % layout.record_bytes() == 0;
    if (!fits) throw file_error(path.string(), "expected a CIFAR-10 file: records of 3073 bytes and nothing else");
    layout.samples = file.size() / layout.record_bytes();
    return layout;
}

/// One file of records and how they lie in it.
struct record_file {
    std::filesystem::path path;
    record_layout layout;
};

/// The layout of a file by its name: .npy, or CIFAR-10's format for any other ending. Throws file_error.
[[nodiscard]] inline record_file find_layout(const std::filesystem::path& path) {
    return {path, path.extension() == ".npy" ? npy_layout(path) : cifar10_layout(path)};
}

/// Endings of the files that are read as records, those of one kind in a folder: the first kind that there is.
[[nodiscard]] inline std::vector<std::string> record_endings() {
    return {".npy", ".bin"};
}

/// The file itself, or all files of records below a folder, sorted. Throws file_error if there is none.
[[nodiscard]] inline std::vector<std::filesystem::path> list_records(const std::filesystem::path& path) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) return {path};
    const std::vector<std::string> kinds = record_endings();
    const bool first = !detail::find_files(path, {kinds[0]}, 1).empty();
    return list_files(path, {first ? kinds[0] : kinds[1]});
}

namespace detail {

/// Opened files of records, in their order.
struct open_records {
    struct part {
        open_file file;
        std::filesystem::path path;
        record_layout layout;
        std::size_t first = 0; ///< number of its first sample
    };
    std::vector<part> parts;
    std::size_t samples = 0;

    explicit open_records(const std::vector<record_file>& files) {
        for (const record_file& each : files) {
            const record_layout& one = each.layout;
            const record_layout& other = files.front().layout;
            if (one.record_bytes() != other.record_bytes() || one.width != other.width || one.planes != other.planes) {
                throw file_error(each.path.string(), "its records are not of the shape of those in " +
                                                         files.front().path.string() + "; give one file of the two");
            }
            parts.push_back({open_file(each.path.string()), each.path, one, samples});
            if (!parts.back().file.is_regular()) {
                throw file_error(each.path.string(), "cannot read it, or not a regular file");
            }
            samples += one.samples;
        }
    }

    [[nodiscard]] const part& of(std::size_t sample) const {
        const auto after = std::upper_bound(parts.begin(), parts.end(), sample,
                                            [](std::size_t number, const part& one) { return number < one.first; });
        return *std::prev(after);
    }
};

} // namespace detail

/// Records of files that all have the same shape, read with pread; the files stay open. Throws file_error.
[[nodiscard]] inline source record_files(const std::vector<record_file>& files) {
    const auto opened = std::make_shared<const detail::open_records>(files);
    const record_layout& layout = files.front().layout;
    source from;
    from.samples = opened->samples;
    from.identity = "records:" + short_hash(std::to_string(from.samples) + 'x' + std::to_string(layout.width) + 'x' +
                                            std::to_string(layout.height) + (layout.planes ? "planes" : "pixels"));
    for (const record_file& each : files) from.files.push_back(each.path);
    from.name = [opened](std::size_t sample) {
        const auto& part = opened->of(sample);
        return part.path.string() + " record " + std::to_string(sample - part.first);
    };
    from.read = [opened](work& w) {
        const auto& part = opened->of(w.sample);
        const std::size_t bytes = part.layout.record_bytes();
        w.encoded.resize(bytes);
        read_at(part.file.descriptor(), part.layout.offset + (w.sample - part.first) * bytes, bytes, w.encoded.data());
    };
    return from;
}

/// Decode stage of records: takes the label and spreads the pixels to four bytes each. Sets no box.
inline void unpack_record(const record_layout& layout, work& w) {
    if (w.encoded.size() != layout.record_bytes()) {
        throw sample_error(failure_kind::truncated, "a record of " + std::to_string(w.encoded.size()) +
                                                        " bytes, expected " + std::to_string(layout.record_bytes()));
    }
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(w.encoded.data());
    for (std::size_t i = layout.label_bytes; i-- > 0;) w.label = w.label << 8 | bytes[i];
    const std::uint8_t* const from = bytes + layout.label_bytes;
    w.pixels.x = w.pixels.y = 0;
    w.pixels.reduction = 1;
    w.pixels.resize(layout.width, layout.height);
    std::uint8_t* to = w.pixels.bytes.data();
    const std::size_t count = layout.width * layout.height;
    const std::size_t step = layout.planes ? 1 : 3;
    const std::size_t plane = layout.planes ? count : 1;
    for (std::size_t i = 0; i < count; ++i, to += image::channels) {
        for (std::size_t c = 0; c < 3; ++c) to[c] = from[i * step + c * plane];
    }
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
