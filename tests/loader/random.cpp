// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/loader/random.hpp"

using namespace plumbline;

TEST_CASE("a sample's random numbers depend on seed, epoch and position, and on nothing else") {
    std::set<std::uint64_t> first;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
            for (std::uint64_t position = 0; position < 64; ++position) {
                loader::sample_random a(seed, epoch, position);
                loader::sample_random b(seed, epoch, position);
                const std::uint64_t value = a.next();
                CHECK(value == b.next());
                first.insert(value);
            }
        }
    }
    CHECK(first.size() == 4 * 4 * 64);
}

TEST_CASE("the numbers are those that the Python adapter draws") {
    // From tools/peers/pytorch_dataloader.py: SampleRandom(1, 2, 3).
    loader::sample_random random(1, 2, 3);
    CHECK(random.next() == 12560079469515091432u);
    CHECK(random.uniform() == doctest::Approx(0.5227867381786614).epsilon(1e-14));
    CHECK(random.below(1000) == 227);
}

TEST_CASE("uniform numbers fill their range evenly, and below() never reaches its bound") {
    std::vector<int> bins(10);
    double sum = 0;
    for (std::uint64_t i = 0; i < 10000; ++i) {
        loader::sample_random random(7, 0, i); // one number of each stream: streams must not resemble each other
        const double value = random.uniform();
        CHECK(value >= 0);
        CHECK(value < 1);
        sum += value;
        ++bins[static_cast<std::size_t>(value * 10)];
        CHECK(random.below(3) < 3);
        CHECK(random.below(1) == 0);
        CHECK(random.below(0) == 0);
    }
    CHECK(sum / 10000 == doctest::Approx(0.5).epsilon(0.02));
    double chi_square = 0;
    for (const int count : bins) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
    CHECK(chi_square < 27.9); // 99.9 % quantile with 9 degrees of freedom
}

TEST_CASE("an epoch visits every sample once, in another order each time, or in order without shuffling") {
    std::vector<std::size_t> expected(100);
    std::iota(expected.begin(), expected.end(), std::size_t{0});
    const auto first = loader::epoch_order(100, 100, true, 5, 0);
    const auto again = loader::epoch_order(100, 100, true, 5, 0);
    const auto second = loader::epoch_order(100, 100, true, 5, 1);
    CHECK(first == again);
    CHECK(first != second);
    CHECK(first != expected);
    for (auto order : {first, second}) {
        std::sort(order.begin(), order.end());
        CHECK(order == expected);
    }
    CHECK(loader::epoch_order(100, 100, false, 5, 0) == expected);
}

TEST_CASE("a longer epoch is several passes, each complete and shuffled anew; a shorter one is part of a pass") {
    const auto order = loader::epoch_order(10, 25, true, 5, 0);
    REQUIRE(order.size() == 25);
    CHECK(std::set<std::size_t>(order.begin(), order.begin() + 10).size() == 10);
    CHECK(std::set<std::size_t>(order.begin() + 10, order.begin() + 20).size() == 10);
    CHECK(std::set<std::size_t>(order.begin() + 20, order.end()).size() == 5);
    CHECK(!std::equal(order.begin(), order.begin() + 10, order.begin() + 10));
    CHECK(loader::epoch_order(10, 4, true, 5, 0).size() == 4);
    CHECK(loader::epoch_order(0, 4, true, 5, 0).empty());
}
