// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include <doctest/doctest.h>

#include "plumbline/workload/number.hpp"

using namespace plumbline;
using namespace plumbline::workload;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Every finite value of a format, and for each pair of neighbours the points just below, at, and just above their
/// middle: the middle must go to the even one, the others to the nearer one.
template <class Bits, class To, class From>
void check_rounding(Bits largest, To to, From from) {
    for (unsigned i = 0; i < largest; ++i) {
        const float low = from(static_cast<Bits>(i));
        const float high = from(static_cast<Bits>(i + 1));
        REQUIRE(low < high);
        const float middle = low + (high - low) / 2; // exact: the formats are far narrower than float
        const unsigned even = i % 2 == 0 ? i : i + 1;
        REQUIRE(to(low) == i);
        REQUIRE(to(middle) == even);
        REQUIRE(to(std::nextafter(middle, -inf)) == i);
        REQUIRE(to(std::nextafter(middle, inf)) == i + 1);
        // The sign changes nothing else.
        const unsigned sign = 1u << (8 * sizeof(Bits) - 1);
        REQUIRE(to(-middle) == (even | sign));
        REQUIRE(from(static_cast<Bits>(i | sign)) == -low);
    }
}

} // namespace

TEST_CASE("fp16 conversion rounds every interval to nearest, ties to even, subnormal ones too") {
    check_rounding<std::uint16_t>(0x7bff, to_fp16, from_fp16);
    CHECK(from_fp16(0x3c00) == 1.0f);
    CHECK(from_fp16(0x7bff) == 65504.0f);
    CHECK(from_fp16(0x0001) == std::ldexp(1.0f, -24));
}

TEST_CASE("fp16 overflow gives infinity, NaN stays NaN") {
    CHECK(to_fp16(65519.996f) == 0x7bff);
    CHECK(to_fp16(65520.0f) == 0x7c00);
    CHECK(to_fp16(-inf) == 0xfc00);
    CHECK(from_fp16(0xfc00) == -inf);
    CHECK(std::isnan(from_fp16(to_fp16(not_a_number))));
    CHECK(to_fp16(std::numeric_limits<float>::denorm_min()) == 0);
}

TEST_CASE("bf16 conversion rounds every interval to nearest, ties to even, and keeps infinity and NaN") {
    // Neighbouring bf16 share all float bits but the lower 16, so the middle is the bits in between.
    for (std::uint32_t i = 0x80; i < 0x7f7f; ++i) {
        const float middle = std::bit_cast<float>(i << 16 | 0x8000u);
        REQUIRE(to_bf16(from_bf16(static_cast<std::uint16_t>(i))) == i);
        REQUIRE(to_bf16(middle) == (i % 2 == 0 ? i : i + 1));
        REQUIRE(to_bf16(std::nextafter(middle, 0.0f)) == i);
        REQUIRE(to_bf16(std::nextafter(middle, inf)) == i + 1);
    }
    CHECK(from_bf16(0x3f80) == 1.0f);
    CHECK(to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
    CHECK(to_bf16(inf) == 0x7f80);
    CHECK(std::isnan(from_bf16(to_bf16(not_a_number))));
    // A NaN whose payload is only in the dropped bits must not become infinity.
    CHECK(std::isnan(from_bf16(to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

TEST_CASE("fp8 e4m3 conversion rounds to nearest even, saturates at 448 and keeps NaN") {
    check_rounding<std::uint8_t>(0x7e, to_fp8, from_fp8);
    CHECK(from_fp8(0x38) == 1.0f);
    CHECK(from_fp8(0x7e) == 448.0f);
    CHECK(from_fp8(0x01) == std::ldexp(1.0f, -9));
    for (float large : {449.0f, 480.0f, 1e30f, inf}) {
        CHECK(to_fp8(large) == 0x7e);
        CHECK(to_fp8(-large) == 0xfe);
    }
    CHECK(to_fp8(not_a_number) == 0x7f);
    CHECK(std::isnan(from_fp8(0xff)));
}
