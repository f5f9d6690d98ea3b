// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include <doctest/doctest.h>

#include "plumbline/core/hash.hpp"
#include "plumbline/cuda/canary/canary.hpp"

using namespace plumbline;

// The canaries once more, from the comments in canary.cu: what every warp must write.

namespace {

std::uint32_t mix(std::uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

double input(std::uint32_t key) {
    return (static_cast<int>(mix(key) & 31u) - 16) * 0.125;
}

std::uint32_t bits_of(float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

float fraction(std::uint32_t key, float scale) {
    return static_cast<float>(mix(key) & 0xffffu) * scale;
}

} // namespace

TEST_CASE("the matrix canary's checksum follows from its definition") {
    // A warp holds all of the eight 16x8 products, so the sum over its threads is the sum over all elements.
    std::uint32_t sum = 0;
    double largest = 0;
    for (std::uint32_t j = 0; j < 8; ++j) {
        for (std::uint32_t row = 0; row < 16; ++row) {
            for (std::uint32_t column = 0; column < 8; ++column) {
                double element = 0;
                for (std::uint32_t k = 0; k < 16; ++k) {
                    element += input(16 * row + k) * input(1000 + 1000 * j + 16 * column + k);
                }
                element *= cuda::canary::mma_rounds;
                largest = std::max(largest, std::abs(element));
                sum += static_cast<std::uint32_t>(static_cast<std::int32_t>(element * 64));
            }
        }
    }
    CHECK(sum == cuda::canary::mma_warp_sum);
    // Multiples of 1/64 below 2^18 are exact in fp32, so the checksum cannot depend on how a tensor core rounds.
    CHECK(largest < 262144);
}

TEST_CASE("the FMA canary's checksum follows from its definition") {
    std::uint32_t sum = 0;
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        for (std::uint32_t j = 0; j < 4; ++j) {
            float x = fraction(10 * lane + j, 1.0f / 65536.0f) + 0.5f;
            float y = fraction(2000 + 10 * lane + j, 1.0f / 65536.0f) - 0.5f;
            const float s = fraction(4000 + 10 * lane + j, 1.0f / 131072.0f) + 0.25f;
            for (int round = 0; round < cuda::canary::fma_rounds; ++round) {
                x = std::fmaf(s, y, x);
                y = std::fmaf(-s, x, y);
            }
            CHECK(std::abs(x) < 8);                   // it neither grows
            CHECK(std::abs(x) + std::abs(y) > 1e-3f); // nor settles
            sum += bits_of(x) + bits_of(y);
        }
    }
    CHECK(sum == cuda::canary::fma_warp_sum);
}

TEST_CASE("the frozen code is what its checksum says, and a fat binary") {
    CHECK(sha256(cuda::canary::frozen_code) == cuda::canary::frozen_sha256);
    const auto image = cuda::canary::decode_base64(cuda::canary::frozen_code);
    REQUIRE(image.size() > 1000);
    const std::vector<unsigned char> magic{0x50, 0xed, 0x55, 0xba};
    CHECK(std::vector<unsigned char>(image.begin(), image.begin() + 4) == magic);
}

TEST_CASE("base64 is decoded with and without padding") {
    const auto text = [](std::string_view encoded) {
        const auto bytes = cuda::canary::decode_base64(encoded);
        return std::string(bytes.begin(), bytes.end());
    };
    CHECK(text("Zm9vYmFy") == "foobar");
    CHECK(text("Zm9vYmE=") == "fooba");
    CHECK(text("Zm9vYg==") == "foob");
    CHECK(text("+/8=") == "\xfb\xff");
    CHECK(text("").empty());
}

TEST_CASE("machine code runs on the same major architecture from its minor version on") {
    CHECK(cuda::canary::has_machine_code(80));
    CHECK(cuda::canary::has_machine_code(89));
    CHECK(cuda::canary::has_machine_code(90));
    CHECK_FALSE(cuda::canary::has_machine_code(75));
    CHECK_FALSE(cuda::canary::has_machine_code(110));
}
