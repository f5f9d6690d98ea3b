// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <set>

#include <doctest/doctest.h>

#include "plumbline/workload/random.hpp"

using namespace plumbline::workload;

TEST_CASE("philox gives the known answers of Random123 for counters and keys that fit") {
    // kat_vectors of Random123, philox 4x32 10: all zeros.
    const random::block zero = random::philox(0, 0);
    CHECK(zero.word[0] == 0x6627e8d5u);
    CHECK(zero.word[1] == 0xe169c58du);
    CHECK(zero.word[2] == 0xbc57ac4cu);
    CHECK(zero.word[3] == 0x9b00dbd8u);
    // Every bit of seed and counter matters, the upper halves too.
    std::set<std::uint32_t> first{zero.word[0]};
    for (int bit = 0; bit < 64; ++bit) {
        first.insert(random::philox(std::uint64_t{1} << bit, 0).word[0]);
        first.insert(random::philox(0, std::uint64_t{1} << bit).word[0]);
    }
    CHECK(first.size() == 129);
}

TEST_CASE("normal numbers have the moments they promise and do not repeat") {
    const std::uint64_t n = 200000;
    double sum = 0;
    double square = 0;
    double fourth = 0;
    double neighbour = 0;
    double before = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
        const double x = static_cast<double>(random::normal(7, i));
        REQUIRE(std::abs(x) < 4.9);
        sum += x;
        square += x * x;
        fourth += x * x * x * x;
        neighbour += x * before;
        before = x;
    }
    const double count = static_cast<double>(n);
    // Four standard errors each: 1/sqrt(n), sqrt(2/n), about sqrt(96/n), 1/sqrt(n).
    CHECK(std::abs(sum / count) < 4 * std::sqrt(1 / count));
    CHECK(std::abs(square / count - 1) < 4 * std::sqrt(2 / count));
    CHECK(std::abs(fourth / count - 2.85) < 4 * std::sqrt(96 / count));
    CHECK(std::abs(neighbour / count) < 4 * std::sqrt(1 / count));
    CHECK(random::normal(7, 0) != random::normal(8, 0));
}

TEST_CASE("values are pinned: a change would silently change every workload") {
    static_assert(random::normal_sum(1, 2) == random::normal_sum(1, 2));
    std::uint64_t digest = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        digest = digest * 1099511628211u + static_cast<std::uint32_t>(random::normal_sum(0x6131, i)) +
                 static_cast<std::uint8_t>(random::normal_int8(3, i));
    }
    CHECK(digest == 9789481122220026332u);
}

TEST_CASE("int8 values fill the range without leaving it") {
    int low = 0;
    int high = 0;
    double square = 0;
    for (std::uint64_t i = 0; i < 100000; ++i) {
        const int x = random::normal_int8(5, i);
        low = std::min(low, x);
        high = std::max(high, x);
        square += x * x;
    }
    CHECK(low >= -127);
    CHECK(low < -110);
    CHECK(high > 110);
    CHECK(std::sqrt(square / 100000) == doctest::Approx(32).epsilon(0.02));
}

TEST_CASE("below stays below and reaches every value") {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        const std::uint64_t x = random::below(1, i, 7);
        REQUIRE(x < 7);
        seen.insert(x);
    }
    CHECK(seen.size() == 7);
    CHECK(random::below(1, 0, 1) == 0);
    for (std::uint64_t i = 0; i < 100; ++i) CHECK(random::below(1, i, std::uint64_t{1} << 40) < std::uint64_t{1} << 40);
}
