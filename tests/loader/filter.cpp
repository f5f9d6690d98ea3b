// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <numeric>

#include <doctest/doctest.h>

#include "plumbline/loader/filter.hpp"

using namespace plumbline;

namespace {

int weight_sum(const loader::axis_filter& filter, std::size_t output) {
    return std::accumulate(filter.weights(output), filter.weights(output) + filter.taps(), 0);
}

} // namespace

TEST_CASE("the weights of every output sum to exactly one and never touch an input outside the box") {
    for (const std::size_t extent : {1u, 2u, 3u, 17u, 223u, 224u, 225u, 448u, 500u, 5000u}) {
        for (const std::size_t start : {0u, 5u}) {
            for (const bool mirrored : {false, true}) {
                loader::axis_filter filter;
                filter.set(static_cast<double>(start), static_cast<double>(extent), 224, start, start + extent,
                           mirrored);
                CHECK(filter.taps() % 2 == 0);
                for (std::size_t i = 0; i < 224; ++i) {
                    CHECK(weight_sum(filter, i) == 1 << loader::axis_filter::weight_bits);
                    CHECK(filter.first(i) >= start);
                    for (std::size_t t = 0; t < filter.taps(); ++t) {
                        const bool outside = filter.first(i) + t >= start + extent;
                        if (outside) CHECK(filter.weights(i)[t] == 0);
                    }
                    // What vector loads may touch: one input behind the box, no more.
                    CHECK(filter.first(i) + filter.taps() <= start + extent + 1);
                }
            }
        }
    }
}

TEST_CASE("the same size copies, twice the size interpolates, half the size averages") {
    loader::axis_filter filter;
    filter.set(0, 8, 8, 0, 8, false);
    for (std::size_t i = 0; i < 8; ++i) {
        for (std::size_t t = 0; t < filter.taps(); ++t) {
            CHECK(filter.weights(i)[t] == (filter.first(i) + t == i ? 1 << 14 : 0));
        }
    }
    filter.set(0, 4, 8, 0, 4, false); // output 1 lies at 0.25 between the centres of inputs 0 and 1
    CHECK(filter.first(1) == 0);
    CHECK(filter.weights(1)[0] == (1 << 14) * 3 / 4);
    CHECK(filter.weights(1)[1] == (1 << 14) / 4);
    filter.set(0, 16, 8, 0, 16, false); // a triangle four inputs wide: 1/8, 3/8, 3/8, 1/8
    CHECK(filter.taps() == 4);
    CHECK(filter.first(3) == 5);
    CHECK(filter.weights(3)[0] == (1 << 14) / 8);
    CHECK(filter.weights(3)[1] == (1 << 14) * 3 / 8);
    CHECK(filter.weights(3)[2] == (1 << 14) * 3 / 8);
    CHECK(filter.weights(3)[3] == (1 << 14) / 8);
}

TEST_CASE("a mirrored filter gives the outputs in reverse") {
    loader::axis_filter straight;
    loader::axis_filter mirrored;
    straight.set(3, 100, 64, 3, 103, false);
    mirrored.set(3, 100, 64, 3, 103, true);
    REQUIRE(straight.taps() == mirrored.taps());
    for (std::size_t i = 0; i < 64; ++i) {
        CHECK(straight.first(i) == mirrored.first(63 - i));
        for (std::size_t t = 0; t < straight.taps(); ++t) {
            CHECK(straight.weights(i)[t] == mirrored.weights(63 - i)[t]);
        }
    }
}
