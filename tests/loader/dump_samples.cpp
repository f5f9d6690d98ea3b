// SPDX-License-Identifier: Apache-2.0
// Writes what the loader makes of a set of images, for check_with_pillow.py:
//     dump_samples FOLDER
// makes FOLDER/images/*.jpg of several kinds, loads each, and writes the output's levels as FOLDER/NAME.rgb (8-bit
// red, green, blue, row by row) and the boxes and flips that were drawn as FOLDER/samples.txt.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "plumbline/loader/jpeg/encoder.hpp"
#include "plumbline/loader/jpeg/pipeline.hpp"
#include "plumbline/loader/reference.hpp"
#include "plumbline/loader/synthetic_image.hpp"

using namespace plumbline;
namespace fs = std::filesystem;

namespace {

void write_image(const fs::path& path, std::size_t width, std::size_t height, const loader::jpeg_encoding& how,
                 std::uint64_t index) {
    auto pixels = loader::synthetic_image(width, height, 3, index);
    if (how.components == 1) pixels.resize(width * height);
    if (how.components == 4) { // three inks like the colours, and some black
        std::vector<std::uint8_t> ink;
        for (std::size_t i = 0; i < width * height; ++i) {
            for (std::size_t c = 0; c < 3; ++c) ink.push_back(pixels[3 * i + c]);
            ink.push_back(static_cast<std::uint8_t>(128 + pixels[3 * i] / 2));
        }
        pixels = std::move(ink);
    }
    const auto file = loader::encode_jpeg(pixels.data(), width, height, how);
    loader::write_file(path, file.data(), file.size());
}

void make_images(const fs::path& folder) {
    fs::create_directories(folder);
    loader::jpeg_encoding usual, grey, cmyk, full_chroma, progressive;
    grey.components = 1;
    cmyk.components = 4;
    full_chroma.subsampled = false;
    progressive.progressive = true;
    for (std::uint64_t i = 0; i < 24; ++i) {
        write_image(folder / ("usual" + std::to_string(100 + i) + ".jpg"), 500, 375, usual, i);
    }
    write_image(folder / "grey.jpg", 500, 375, grey, 30);
    write_image(folder / "cmyk.jpg", 333, 250, cmyk, 31);
    write_image(folder / "chroma.jpg", 375, 500, full_chroma, 32);
    write_image(folder / "progressive.jpg", 500, 375, progressive, 33);
    write_image(folder / "tiny.jpg", 3, 2, usual, 34);
    write_image(folder / "narrow.jpg", 20, 900, usual, 35);
    for (std::uint64_t i = 0; i < 4; ++i) { // large enough to be decoded at reduced size
        write_image(folder / ("large" + std::to_string(i) + ".jpg"), 2400, 1800, usual, 40 + i);
    }
}

void dump(const fs::path& folder) {
    make_images(folder / "images");
    const loader::source from = loader::image_folder(folder / "images");
    loader::augmentation how;
    const loader::pipeline all = loader::jpeg_pipeline(from, how);
    const loader::stages own = all.make();
    std::ofstream list(folder / "samples.txt");
    std::vector<std::byte> sample(all.sample_bytes);
    loader::work w;
    for (w.sample = 0; w.sample < all.samples; ++w.sample) {
        w.random = loader::sample_random(1, 0, w.sample);
        own.read(w);
        own.decode(w);
        own.transform(w, sample.data());
        const auto levels = loader::levels_of(sample.data(), how);
        const std::size_t plane = how.size * how.size;
        std::vector<std::uint8_t> rgb(3 * plane);
        for (std::size_t i = 0; i < plane; ++i) {
            for (std::size_t c = 0; c < 3; ++c) {
                rgb[3 * i + c] = static_cast<std::uint8_t>(std::lround(levels[c * plane + i]));
            }
        }
        const std::string name = fs::path(from.name(w.sample)).filename().string();
        loader::write_file(folder / (name + ".rgb"), rgb.data(), rgb.size());
        list << name << ' ' << w.box.x << ' ' << w.box.y << ' ' << w.box.width << ' ' << w.box.height << ' '
             << (w.flipped ? 1 : 0) << ' ' << w.pixels.reduction << '\n';
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: dump_samples FOLDER\n");
        return 2;
    }
    try {
        dump(argv[1]);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "%s\n", problem.what());
        return 1;
    }
    return 0;
}
