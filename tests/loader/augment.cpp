// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/loader/augment.hpp"

using namespace plumbline;

TEST_CASE("crop boxes lie inside the image and have the area and aspect ratio that were asked for") {
    const loader::augmentation how;
    double area = 0;
    double left = 0;
    constexpr std::size_t draws = 4000;
    for (std::size_t i = 0; i < draws; ++i) {
        loader::sample_random random(3, 0, i);
        const loader::crop_box box = loader::random_resized_crop(500, 375, how, random);
        CHECK(box.width >= 1);
        CHECK(box.height >= 1);
        CHECK(box.x + box.width <= 500);
        CHECK(box.y + box.height <= 375);
        const double share = static_cast<double>(box.width * box.height) / (500.0 * 375.0);
        CHECK(share >= 0.079);
        const double aspect = static_cast<double>(box.width) / static_cast<double>(box.height);
        CHECK(aspect >= 0.74);
        CHECK(aspect <= 1.35);
        area += share;
        if (box.width < 500) left += static_cast<double>(box.x) / static_cast<double>(500 - box.width);
    }
    // Uniform in [0.08, 1] would have mean 0.54; boxes that do not fit are drawn again, which makes it a little less.
    CHECK(area / draws == doctest::Approx(0.49).epsilon(0.06));
    CHECK(left / draws == doctest::Approx(0.5).epsilon(0.06));
}

TEST_CASE("an image too long for any box gets the largest allowed box in its middle, as torchvision does") {
    loader::augmentation how;
    how.area = {1, 1}; // never fits at these shapes
    loader::sample_random random(3, 0, 0);
    CHECK(loader::random_resized_crop(1000, 30, how, random) == loader::crop_box{480, 0, 40, 30});
    CHECK(loader::random_resized_crop(30, 1000, how, random) == loader::crop_box{0, 480, 30, 40});
}

TEST_CASE("an image of one pixel gives that pixel") {
    const loader::augmentation how;
    for (std::uint64_t i = 0; i < 100; ++i) {
        loader::sample_random random(3, 0, i);
        CHECK(loader::random_resized_crop(1, 1, how, random) == loader::crop_box{0, 0, 1, 1});
    }
}

TEST_CASE("rounding is Python's: half to even") {
    const double given[] = {0.5, 1.5, 2.5, 3.5, 2.4999, 2.5001, 7.0};
    const double expected[] = {0, 2, 2, 4, 2, 3, 7};
    for (std::size_t i = 0; i < 7; ++i) CHECK(loader::detail::round_half_even(given[i]) == expected[i]);
}

TEST_CASE("the boxes are those that the Python adapter draws") {
    // From tools/peers/pytorch_dataloader.py: crop_box(500, 375, SampleRandom(1, 0, i)) for i = 0, 1, 2.
    const loader::augmentation how;
    const loader::crop_box expected[] = {{264, 142, 169, 193}, {146, 34, 308, 243}, {72, 48, 352, 266}};
    for (std::uint64_t i = 0; i < 3; ++i) {
        loader::sample_random random(1, 0, i);
        CHECK(loader::random_resized_crop(500, 375, how, random) == expected[i]);
    }
}
