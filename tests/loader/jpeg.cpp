// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/loader/jpeg/decoder.hpp"
#include "plumbline/loader/jpeg/encoder.hpp"
#include "plumbline/loader/jpeg/pipeline.hpp"
#include "plumbline/loader/reference.hpp"
#include "plumbline/loader/synthetic_image.hpp"

using namespace plumbline;

namespace {

std::vector<std::byte> encoded(std::size_t width, std::size_t height, const loader::jpeg_encoding& how = {},
                               std::uint64_t index = 0) {
    auto pixels = loader::synthetic_image(width, height, 1, index);
    if (how.components == 1) pixels.resize(width * height);
    if (how.components == 4) pixels.resize(width * height * 4, 200);
    return loader::encode_jpeg(pixels.data(), width, height, how);
}

/// Largest difference between a region and the same pixels of a whole decode.
int difference(const loader::image& region, const loader::image& whole, const loader::crop_box& box) {
    int most = 0;
    for (std::size_t y = box.y; y < box.y + box.height; ++y) {
        for (std::size_t x = box.x; x < box.x + box.width; ++x) {
            for (std::size_t c = 0; c < 3; ++c) {
                const int a = region.row(y - region.y)[(x - region.x) * 4 + c];
                const int b = whole.row(y)[x * 4 + c];
                most = std::max(most, std::abs(a - b));
            }
        }
    }
    return most;
}

loader::image whole_image(loader::jpeg_decoder& decoder, const std::vector<std::byte>& file) {
    loader::image whole;
    const loader::jpeg_header header = decoder.open(file);
    decoder.read({0, 0, header.width, header.height}, 1, whole);
    REQUIRE(whole.width == header.width);
    REQUIRE(whole.height == header.height);
    return whole;
}

} // namespace

TEST_CASE("a region has exactly the pixels that a decode of the whole image gives") {
    loader::jpeg_encoding grey;
    grey.components = 1;
    loader::jpeg_encoding full_chroma;
    full_chroma.subsampled = false;
    loader::jpeg_encoding progressive;
    progressive.progressive = true;
    loader::jpeg_decoder decoder;
    for (const loader::jpeg_encoding& how : {loader::jpeg_encoding{}, grey, full_chroma, progressive}) {
        const auto file = encoded(301, 203, how);
        const loader::image whole = whole_image(decoder, file);
        loader::image region; // reused, as a worker does
        for (std::uint64_t i = 0; i < 150; ++i) {
            loader::sample_random random(5, 0, i);
            (void)decoder.open(file);
            loader::crop_box box = loader::random_resized_crop(301, 203, loader::augmentation{}, random);
            if (i % 5 == 0) box = {random.below(300), random.below(202), 1, 1};
            decoder.read(box, 1, region);
            CAPTURE(box.x);
            CAPTURE(box.y);
            CAPTURE(box.width);
            CAPTURE(box.height);
            CHECK(region.x <= box.x);
            CHECK(region.y <= box.y);
            CHECK(difference(region, whole, box) == 0);
        }
    }
}

TEST_CASE("grey becomes three equal channels, and CMYK becomes RGB as Pillow makes it") {
    loader::jpeg_decoder decoder;
    loader::jpeg_encoding grey;
    grey.components = 1;
    const loader::image from_grey = whole_image(decoder, encoded(64, 48, grey));
    for (std::size_t i = 0; i < 64 * 48; ++i) {
        CHECK(from_grey.bytes[i * 4] == from_grey.bytes[i * 4 + 1]);
        CHECK(from_grey.bytes[i * 4] == from_grey.bytes[i * 4 + 2]);
    }
    loader::jpeg_encoding cmyk;
    cmyk.components = 4;
    cmyk.quality = 100;
    cmyk.subsampled = false;
    // Stored inverted: 255 is no ink. Half cyan over no black, and full colour under half black.
    std::vector<std::uint8_t> ink;
    for (int i = 0; i < 16 * 16; ++i) ink.insert(ink.end(), {128, 255, 255, 255});
    for (int i = 0; i < 16 * 16; ++i) ink.insert(ink.end(), {255, 0, 128, 128});
    const auto file = loader::encode_jpeg(ink.data(), 16, 32, cmyk);
    CHECK(decoder.open(file).components == 4);
    const loader::image from_cmyk = whole_image(decoder, file);
    const int expected[2][3] = {{128, 255, 255}, {128, 0, 64}};
    for (std::size_t half = 0; half < 2; ++half) {
        for (std::size_t c = 0; c < 3; ++c) {
            CHECK(std::abs(from_cmyk.row(8 + 16 * half)[8 * 4 + c] - expected[half][c]) <= 2);
        }
    }
}

TEST_CASE("a decode at reduced size is used only when enough pixels are left, and stays within half a level") {
    CHECK(loader::decoder_reduction({0, 0, 500, 375}, 224) == 1);
    CHECK(loader::decoder_reduction({0, 0, 895, 2000}, 224) == 1);
    CHECK(loader::decoder_reduction({0, 0, 896, 896}, 224) == 2);
    CHECK(loader::decoder_reduction({0, 0, 5000, 1792}, 224) == 4);
    CHECK(loader::decoder_reduction({0, 0, 20000, 20000}, 224) == 8);
    loader::augmentation how;
    how.size = 64;
    loader::resampler resize(how);
    std::vector<std::byte> out(how.sample_bytes());
    loader::jpeg_decoder decoder;
    for (std::uint64_t index = 0; index < 4; ++index) {
        const auto file = encoded(1203, 1001, {}, index);
        const loader::image whole = whole_image(decoder, file);
        for (std::uint64_t i = 0; i < 6; ++i) {
            loader::sample_random random(5, index, i);
            const loader::crop_box box = loader::random_resized_crop(1203, 1001, how, random);
            const std::size_t reduction = loader::decoder_reduction(box, how.size);
            loader::image reduced;
            (void)decoder.open(file);
            decoder.read(box, reduction, reduced);
            CHECK(reduced.reduction == reduction);
            resize.run(reduced, box, i % 2 == 1, out.data());
            const auto expected = loader::reference_levels(whole, box, i % 2 == 1, how.size);
            CAPTURE(reduction);
            CHECK(loader::mean_difference(loader::levels_of(out.data(), how), expected) < 0.5);
        }
    }
}

TEST_CASE("the EXIF orientation is found in either byte order, and only when it is one") {
    const auto with_exif = [](const std::vector<std::byte>& file, const std::string& tiff) {
        const std::string body = std::string("Exif\0\0", 6) + tiff;
        const std::size_t length = body.size() + 2;
        std::string segment = "\xff\xe1";
        segment += static_cast<char>(length >> 8);
        segment += static_cast<char>(length & 0xff);
        segment += body;
        std::vector<std::byte> out(file.begin(), file.begin() + 2);
        for (const char c : segment) out.push_back(static_cast<std::byte>(c));
        out.insert(out.end(), file.begin() + 2, file.end());
        return out;
    };
    using namespace std::string_literals;
    const auto file = encoded(16, 16);
    const auto little = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"s;
    const auto big = "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x03\0\0\0\0\0\0"s;
    const auto upright = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x01\0\0\0\0\0\0\0"s;
    const auto nonsense = "II*\0\xff\xff\xff\x7f\xff\xff"s;
    const auto many = "II*\0\x08\0\0\0\xff\xff\x11\x01\x03\0"s; // more entries than bytes
    loader::jpeg_decoder decoder;
    CHECK(decoder.open(file).oriented == 0);
    CHECK(decoder.open(with_exif(file, little)).oriented == 6);
    CHECK(decoder.open(with_exif(file, big)).oriented == 3);
    for (const auto& none : {upright, nonsense, many, ""s, "II"s}) {
        CHECK(decoder.open(with_exif(file, none)).oriented == 0);
    }
}

TEST_CASE("libjpeg's refusals come as errors from the encoder too") {
    const std::uint8_t pixel[3] = {};
    CHECK_THROWS_WITH_AS((void)loader::encode_jpeg(pixel, 0, 1), doctest::Contains("0 x 1"), error);
    CHECK_THROWS_AS((void)loader::encode_jpeg(pixel, 70000, 1), error);
}
