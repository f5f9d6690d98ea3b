// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/loader/reference.hpp"
#include "plumbline/loader/resample.hpp"
#include "plumbline/loader/synthetic_image.hpp"

using namespace plumbline;
using workload::dataloader::layout;

namespace {

loader::image synthetic(std::size_t width, std::size_t height, std::uint64_t index = 0) {
    const auto bytes = loader::synthetic_image(width, height, 1, index);
    loader::image made;
    made.resize(width, height);
    for (std::size_t i = 0; i < width * height; ++i) {
        for (std::size_t c = 0; c < 3; ++c) made.bytes[i * 4 + c] = bytes[i * 3 + c];
        made.bytes[i * 4 + 3] = 77; // must not matter
    }
    return made;
}

std::vector<std::byte> run(const loader::augmentation& how, const loader::pixel_kernels& kernels,
                           const loader::image& from, const loader::crop_box& box, bool flipped) {
    constexpr std::size_t guard = 64;
    std::vector<std::byte> out(how.sample_bytes() + guard, std::byte{0xff});
    loader::resampler(how, kernels).run(from, box, flipped, out.data());
    for (std::size_t i = how.sample_bytes(); i < out.size(); ++i) CHECK(out[i] == std::byte{0xff});
    out.resize(how.sample_bytes());
    return out;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (!(std::fabs(a[i] - b[i]) <= most)) most = std::fabs(a[i] - b[i]);
    }
    return most;
}

struct shape {
    std::size_t width, height;
    loader::crop_box box;
};

const shape shapes[] = {
    {500, 375, {0, 0, 500, 375}}, {500, 375, {120, 33, 301, 250}}, {500, 375, {480, 360, 20, 15}},
    {500, 375, {0, 0, 224, 224}}, {64, 48, {1, 1, 62, 46}},        {1, 1, {0, 0, 1, 1}},
    {2, 900, {0, 3, 2, 890}},     {1500, 900, {7, 5, 1490, 880}},  {3, 3, {2, 2, 1, 1}},
};

} // namespace

TEST_CASE("resized and normalised pixels are those of the float64 reference to one level, in every type and layout") {
    for (const shape& each : shapes) {
        const loader::image from = synthetic(each.width, each.height);
        for (const bool flipped : {false, true}) {
            const auto expected = loader::reference_levels(from, each.box, flipped, 224);
            for (const auto type : {workload::dtype::fp32, workload::dtype::fp16}) {
                for (const auto order : {layout::chw, layout::hwc}) {
                    loader::augmentation how;
                    how.type = type;
                    how.layout = order;
                    for (const auto& kernels : {loader::portable_kernels(), loader::best_kernels()}) {
                        CAPTURE(kernels.name);
                        CAPTURE(each.width);
                        CAPTURE(each.box.width);
                        const auto levels = loader::levels_of(run(how, kernels, from, each.box, flipped).data(), how);
                        CHECK(loader::mean_difference(levels, expected) < 0.5);
                        CHECK(largest_difference(levels, expected) < 1.6); // two roundings, and half a bit of fp16
                    }
                }
            }
        }
    }
}

TEST_CASE("the fast loops and the portable ones agree for sizes that fill no vector") {
    const loader::image from = synthetic(131, 97);
    for (const std::size_t size : {1u, 2u, 3u, 5u, 7u, 8u, 9u, 31u, 33u, 100u, 227u}) {
        for (const auto type : {workload::dtype::fp32, workload::dtype::fp16}) {
            for (const auto order : {layout::chw, layout::hwc}) {
                loader::augmentation how;
                how.size = size;
                how.type = type;
                how.layout = order;
                const loader::crop_box box{11, 7, 100, 83};
                const auto a = loader::levels_of(run(how, loader::portable_kernels(), from, box, true).data(), how);
                const auto b = loader::levels_of(run(how, loader::best_kernels(), from, box, true).data(), how);
                CAPTURE(size);
                CHECK(largest_difference(a, b) < (type == workload::dtype::fp16 ? 0.13 : 1e-4));
            }
        }
    }
}

TEST_CASE("a constant image stays constant, and normalisation is torchvision's") {
    loader::image from;
    from.resize(300, 200);
    for (std::size_t i = 0; i < 300 * 200; ++i) {
        from.bytes[i * 4] = 255;
        from.bytes[i * 4 + 1] = 0;
        from.bytes[i * 4 + 2] = 128;
    }
    const loader::augmentation how;
    const auto out = run(how, loader::best_kernels(), from, {10, 20, 211, 150}, false);
    // (value / 255 - mean) / deviation
    const double expected[] = {(1 - 0.485) / 0.229, (0 - 0.456) / 0.224, (128.0 / 255 - 0.406) / 0.225};
    for (std::size_t c = 0; c < 3; ++c) {
        for (const std::size_t at : {std::size_t{0}, std::size_t{224 * 224 - 1}, std::size_t{12345}}) {
            float value = 0;
            std::memcpy(&value, out.data() + (c * 224 * 224 + at) * sizeof value, sizeof value);
            CHECK(value == doctest::Approx(expected[c]).epsilon(1e-6));
        }
    }
}

TEST_CASE("a box outside of what was decoded is an error, not a read behind the buffer") {
    const loader::augmentation how;
    loader::resampler one(how);
    std::vector<std::byte> out(how.sample_bytes());
    loader::image from = synthetic(100, 80);
    CHECK_THROWS_AS(one.run(from, {50, 0, 51, 80}, false, out.data()), error);
    CHECK_THROWS_AS(one.run(from, {0, 10, 100, 71}, false, out.data()), error);
    CHECK_THROWS_AS(one.run(from, {0, 0, 0, 80}, false, out.data()), error);
    from.x = 8;
    CHECK_THROWS_AS(one.run(from, {0, 0, 50, 80}, false, out.data()), error);
    one.run(from, {8, 0, 100, 80}, false, out.data());
}

TEST_CASE("the synthetic image is the same for the same seed and differs for another") {
    CHECK(loader::synthetic_image(40, 30, 1, 0) == loader::synthetic_image(40, 30, 1, 0));
    CHECK(loader::synthetic_image(40, 30, 1, 0) != loader::synthetic_image(40, 30, 1, 1));
    CHECK(loader::synthetic_image(40, 30, 1, 0) != loader::synthetic_image(40, 30, 2, 0));
    CHECK(loader::synthetic_image(1, 1, 1, 0).size() == 3);
}
