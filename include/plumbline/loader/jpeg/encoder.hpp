// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_JPEG_ENCODER_HPP
#define PLUMBLINE_LOADER_JPEG_ENCODER_HPP

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio> // jpeglib.h uses FILE and size_t without including them
#include <cstdlib>
#include <string>
#include <vector>

#include <jpeglib.h>

#include "plumbline/core/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// How a JPEG file is written.
struct jpeg_encoding {
    int quality = 90;
    int components = 3; ///< 1 grey, 3 RGB, 4 CMYK as Adobe stores it (inverted)
    bool progressive = false;
    bool subsampled = true; ///< chroma at half the resolution in both directions, which most files have
};

namespace detail {

/// Everything that libjpeg's longjmp must find unharmed.
struct jpeg_compressor {
    jpeg_compress_struct info{};
    jpeg_error_mgr errors{};
    std::jmp_buf on_error{};
    unsigned char* bytes = nullptr;
    unsigned long size = 0;
    char message[JMSG_LENGTH_MAX] = {};

    jpeg_compressor() = default;
    jpeg_compressor(const jpeg_compressor&) = delete;
    jpeg_compressor& operator=(const jpeg_compressor&) = delete;
    ~jpeg_compressor() {
        jpeg_destroy_compress(&info);
        std::free(bytes); // libjpeg allocates it with malloc
    }
};

/// Plain function without objects, so that longjmp may leave it; false when libjpeg failed.
inline bool compress(jpeg_compressor& to, const std::uint8_t* pixels, std::size_t width, std::size_t height,
                     const jpeg_encoding& how) {
    if (setjmp(to.on_error) != 0) return false;
    jpeg_create_compress(&to.info);
    to.info.client_data = &to;
    jpeg_mem_dest(&to.info, &to.bytes, &to.size);
    to.info.image_width = static_cast<JDIMENSION>(width);
    to.info.image_height = static_cast<JDIMENSION>(height);
    to.info.input_components = how.components;
    to.info.in_color_space = how.components == 1 ? JCS_GRAYSCALE : how.components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&to.info);
    jpeg_set_quality(&to.info, how.quality, TRUE);
    if (!how.subsampled) to.info.comp_info[0].h_samp_factor = to.info.comp_info[0].v_samp_factor = 1;
    if (how.progressive) jpeg_simple_progression(&to.info);
    jpeg_start_compress(&to.info, TRUE);
    const std::size_t stride = width * static_cast<std::size_t>(how.components);
    while (to.info.next_scanline < to.info.image_height) {
        JSAMPROW row = const_cast<JSAMPROW>(pixels + to.info.next_scanline * stride); // libjpeg does not write to it
        jpeg_write_scanlines(&to.info, &row, 1);
    }
    jpeg_finish_compress(&to.info);
    return true;
}

} // namespace detail

/// Encodes width x height pixels of `components` bytes each, row by row. Throws error with libjpeg's message.
[[nodiscard]] inline std::vector<std::byte> encode_jpeg(const std::uint8_t* pixels, std::size_t width,
                                                        std::size_t height, const jpeg_encoding& how = {}) {
    detail::jpeg_compressor to;
    to.info.err = jpeg_std_error(&to.errors);
    to.info.client_data = &to;
    to.errors.error_exit = [](j_common_ptr any) {
        auto& failed = *static_cast<detail::jpeg_compressor*>(any->client_data);
        any->err->format_message(any, failed.message);
        std::longjmp(failed.on_error, 1);
    };
    if (!detail::compress(to, pixels, width, height, how)) {
        throw error("cannot encode an image of " + std::to_string(width) + " x " + std::to_string(height) +
                    " pixels: " + to.message);
    }
    const auto* const begin = reinterpret_cast<const std::byte*>(to.bytes);
    return {begin, begin + to.size};
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
