// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_JPEG_DECODER_HPP
#define PLUMBLINE_LOADER_JPEG_DECODER_HPP

// JPEG by libjpeg-turbo. Only the headers of this folder include jpeglib.h, whose macros come with it: programs
// without libjpeg-turbo leave them out, and nothing else needs them.

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio> // jpeglib.h uses FILE and size_t without including them
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <jerror.h>
#include <jpeglib.h>

#ifndef LIBJPEG_TURBO_VERSION
#error "plumbline/loader/jpeg needs libjpeg-turbo (Debian and Ubuntu: apt-get install libjpeg-dev)"
#endif

#include "plumbline/loader/exif.hpp"
#include "plumbline/loader/failure.hpp"
#include "plumbline/loader/image.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// What a JPEG file says about itself before anything is decoded.
struct jpeg_header {
    std::size_t width = 0;
    std::size_t height = 0;
    int components = 3; ///< 1 grey, 3 colour, 4 CMYK
    bool progressive = false;
    std::size_t oriented = 0; ///< EXIF orientation if it is not upright (2 to 8), else 0
};

/// Decodes regions of JPEG files, one after the other, into one reused buffer. Not safe to share between threads.
///
/// The pixels are those of a full decode by libjpeg with its accurate inverse DCT and smooth chroma upsampling, which
/// is what Pillow gives. Only the rows down to the region's end are entropy-decoded, and only the blocks that
/// touch the region are transformed.
class jpeg_decoder {
public:
    /// Pillow refuses to decode more pixels than this ("decompression bomb").
    static constexpr std::size_t default_most_pixels = 178956970;

    explicit jpeg_decoder(std::size_t most_pixels = default_most_pixels);
    jpeg_decoder(const jpeg_decoder&) = delete;
    jpeg_decoder& operator=(const jpeg_decoder&) = delete;
    ~jpeg_decoder() { jpeg_destroy_decompress(&state_->info); }

    /// Reads the header of a file in memory, which must stay until read() is done. Throws sample_error for what is
    /// empty, no JPEG, cut short, damaged, too large or of an unsupported kind.
    [[nodiscard]] jpeg_header open(std::span<const std::byte> file);

    /// Decodes what covers `box` (full-size pixels, inside the image) at 1/reduction of the size (1, 2, 4 or 8).
    /// Grey and CMYK become RGB, as Pillow's convert("RGB") does. Throws sample_error.
    void read(const crop_box& box, std::size_t reduction, image& into);

private:
    struct state {
        jpeg_decompress_struct info{};
        jpeg_error_mgr errors{};
        jpeg_progress_mgr progress{};
        std::jmp_buf on_error{};
        int code = 0;
        int damage = 0; // first warning that means damaged data
        std::array<char, JMSG_LENGTH_MAX> message{};
    };

    // libjpeg reports errors by calling this; it must not return, and C code must not see an exception.
    [[noreturn]] static void fail(j_common_ptr any) {
        state& s = *static_cast<state*>(any->client_data);
        s.code = any->err->msg_code;
        any->err->format_message(any, s.message.data());
        std::longjmp(s.on_error, 1);
    }
    static void warn(j_common_ptr any, int level) {
        state& s = *static_cast<state*>(any->client_data);
        if (level >= 0 || s.damage != 0) return;
        const int code = any->err->msg_code;
        if (code != JWRN_JPEG_EOF && code != JWRN_HUFF_BAD_CODE && code != JWRN_HIT_MARKER &&
            code != JWRN_MUST_RESYNC && code != JWRN_BOGUS_PROGRESSION) {
            return; // such as stray bytes before a marker: every viewer shows these files unharmed
        }
        s.damage = code;
        any->err->format_message(any, s.message.data());
    }
    static void quiet(j_common_ptr) {}
    // A file of a few kilobytes can ask for thousands of scans of a huge image.
    static void count_scans(j_common_ptr any) {
        constexpr int most_scans = 500;
        if (!any->is_decompressor) return;
        auto* const info = reinterpret_cast<j_decompress_ptr>(any);
        if (info->input_scan_number <= most_scans) return;
        state& s = *static_cast<state*>(any->client_data);
        s.code = JERR_INPUT_EOF;
        std::snprintf(s.message.data(), s.message.size(), "more than %d scans", most_scans);
        std::longjmp(s.on_error, 1);
    }

    /// Runs `body`, which owns nothing that needs a destructor: libjpeg leaves it by longjmp when it fails.
    template <class Body>
    void guarded(const Body& body) {
        if (setjmp(state_->on_error) != 0) throw_sample_error(state_->code);
        body(state_->info);
    }

    [[noreturn]] void throw_sample_error(int code) {
        const std::string text(state_->message.data());
        jpeg_abort_decompress(&state_->info);
        throw sample_error(kind_of(code), "libjpeg: " + text);
    }

    static failure_kind kind_of(int code) noexcept {
        switch (code) {
        case JERR_NO_IMAGE:
        case JERR_INPUT_EMPTY:
        case JERR_INPUT_EOF:
        case JWRN_JPEG_EOF:
            return failure_kind::truncated;
        case JERR_NO_SOI:
            return failure_kind::unknown;
        case JERR_BAD_PRECISION:
        case JERR_SOF_UNSUPPORTED:
        case JERR_CONVERSION_NOTIMPL:
        case JERR_ARITH_NOTIMPL:
        case JERR_CCIR601_NOTIMPL:
        case JERR_COMPONENT_COUNT:
            return failure_kind::unsupported;
        case JERR_IMAGE_TOO_BIG:
        case JERR_WIDTH_OVERFLOW:
            return failure_kind::too_large;
        case JERR_OUT_OF_MEMORY:
            return failure_kind::other;
        default:
            return failure_kind::corrupt;
        }
    }

    static void check_signature(std::span<const std::byte> file);
    void read_rows(jpeg_decompress_struct& info, const crop_box& box, image& into);

    std::unique_ptr<state> state_; // libjpeg and longjmp need an address that does not move
    std::size_t most_pixels_;
};

inline jpeg_decoder::jpeg_decoder(std::size_t most_pixels)
    : state_(std::make_unique<state>()), most_pixels_(most_pixels) {
    jpeg_decompress_struct& info = state_->info;
    info.err = jpeg_std_error(&state_->errors);
    state_->errors.error_exit = fail;
    state_->errors.emit_message = warn;
    state_->errors.output_message = quiet;
    info.client_data = state_.get();
    guarded([](jpeg_decompress_struct& fresh) { jpeg_create_decompress(&fresh); });
    info.client_data = state_.get();
    state_->progress.progress_monitor = count_scans;
    info.progress = &state_->progress;
}

inline void jpeg_decoder::check_signature(std::span<const std::byte> file) {
    if (file.empty()) throw sample_error(failure_kind::empty, "the file is empty");
    if (file.size() < 2 || file[0] != std::byte{0xff} || file[1] != std::byte{0xd8}) {
        std::string seen;
        for (std::size_t i = 0; i < std::min<std::size_t>(file.size(), 4); ++i) {
            constexpr const char* digits = "0123456789abcdef";
            const auto value = std::to_integer<unsigned>(file[i]);
            seen += {' ', digits[value >> 4], digits[value & 15u]};
        }
        throw sample_error(failure_kind::unknown, "not a JPEG file: it begins with" + seen + ", expected ff d8");
    }
    // Reading stops at the end of the crop, so a missing end would go unseen. Bytes behind the end are common.
    for (std::size_t i = file.size(); i-- > 3;) {
        if (file[i] == std::byte{0xd9} && file[i - 1] == std::byte{0xff}) return;
    }
    throw sample_error(failure_kind::truncated,
                       "the file ends after " + std::to_string(file.size()) + " bytes without an end-of-image marker");
}

inline jpeg_header jpeg_decoder::open(std::span<const std::byte> file) {
    jpeg_abort_decompress(&state_->info);
    state_->damage = 0;
    check_signature(file);
    guarded([&](jpeg_decompress_struct& info) {
        jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
        jpeg_read_header(&info, TRUE);
    });
    const jpeg_decompress_struct& info = state_->info;
    jpeg_header header{info.image_width, info.image_height, info.num_components, info.progressive_mode != FALSE,
                       exif_orientation(file)};
    if (header.width * header.height > most_pixels_) {
        throw sample_error(failure_kind::too_large, std::to_string(header.width) + " x " +
                                                        std::to_string(header.height) + " pixels, more than the " +
                                                        std::to_string(most_pixels_) + " allowed");
    }
    return header;
}

inline void jpeg_decoder::read(const crop_box& box, std::size_t reduction, image& into) {
    guarded([&](jpeg_decompress_struct& info) {
        info.scale_num = 1;
        info.scale_denom = static_cast<unsigned>(reduction);
        info.dct_method = JDCT_ISLOW;
        info.do_fancy_upsampling = TRUE;
        info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
        jpeg_start_decompress(&info);
        into.reduction = reduction;
        read_rows(info, box, into);
    });
    const bool cmyk = state_->info.out_color_space == JCS_CMYK;
    jpeg_abort_decompress(&state_->info);
    if (state_->damage != 0) {
        throw sample_error(kind_of(state_->damage), "libjpeg: " + std::string(state_->message.data()));
    }
    if (!cmyk) return;
    // Adobe's inverted values, whether or not the file says so, with Pillow's rounding.
    for (std::size_t i = 0; i < into.width * into.height; ++i) {
        std::uint8_t* const pixel = into.bytes.data() + i * image::channels;
        for (std::size_t c = 0; c < 3; ++c) {
            const unsigned product = (255u - pixel[c]) * pixel[3] + 128u;
            pixel[c] = static_cast<std::uint8_t>(pixel[3] - (((product >> 8) + product) >> 8));
        }
    }
}

inline void jpeg_decoder::read_rows(jpeg_decompress_struct& info, const crop_box& box, image& into) {
    const std::size_t reduction = into.reduction;
    // Chroma at the border of a cropped decode lacks its neighbours; one block more on each side keeps it exact.
    const auto margin = static_cast<std::size_t>(info.max_h_samp_factor * DCTSIZE);
    const std::size_t low = box.x / reduction;
    const std::size_t high = std::min<std::size_t>((box.x + box.width + reduction - 1) / reduction, info.output_width);
    auto x = static_cast<JDIMENSION>(low > margin ? low - margin : 0);
    auto width = static_cast<JDIMENSION>(std::min<std::size_t>(high + margin, info.output_width) - x);
    // A crop as wide as the image gains nothing, and libjpeg takes a slower path for it.
    if (x != 0 || width != info.output_width) jpeg_crop_scanline(&info, &x, &width);
    const auto y = static_cast<JDIMENSION>(box.y / reduction);
    const std::size_t bottom =
        std::min<std::size_t>((box.y + box.height + reduction - 1) / reduction, info.output_height);
    into.x = x;
    into.y = y;
    into.resize(width, bottom - y);
    if (y != 0) jpeg_skip_scanlines(&info, y);
    while (info.output_scanline < bottom) {
        std::array<JSAMPROW, 8> rows{};
        const std::size_t count = std::min<std::size_t>(rows.size(), bottom - info.output_scanline);
        for (std::size_t i = 0; i < count; ++i) rows[i] = into.row(info.output_scanline - y + i);
        jpeg_read_scanlines(&info, rows.data(), static_cast<JDIMENSION>(count));
    }
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
