// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <doctest/doctest.h>

#include "plumbline/workload/layernorm.hpp"

using namespace plumbline;
using namespace plumbline::workload;

TEST_CASE("an id is read and written back, and anything else is refused with a right example") {
    for (std::string id : {"layernorm/fwd/bf16/r16384h4096/native", "layernorm/bwd/fp32/r1h1/cudnn/best/hot",
                           "layernorm/rms_fwd/fp16/r65536h768/native/sustained",
                           "layernorm/rms_bwd/bf16/r8192h4095/native", "layernorm/fwd/fp32/r1024h1024/onednn/stream"}) {
        CHECK(layernorm::id(layernorm::parse(id)) == id);
        CHECK(layernorm::describe(layernorm::parse(id)).id == id);
    }
    for (std::string id :
         {"layernorm/fwd/bf16/r16384h4096", "layernorm/fwd/int8/r4h4/native", "layernorm/fwd/tf32/r4h4/native",
          "layernorm/forward/bf16/r4h4/native", "layernorm/fwd/bf16/r0h4/native", "layernorm/fwd/bf16/r4h65537/native",
          "layernorm/fwd/bf16/r4h0/native", "layernorm/fwd/bf16/r16777217h4/native", "layernorm/fwd/bf16/h4r4/native",
          "layernorm/fwd/bf16/r4h4/native/best", "layernorm/fwd/bf16/r4h4/onednn/pinned",
          "layernorm/fwd/bf16/r4h4/native/native", "layernorm/fwd/bf16/r4h4/hot"}) {
        CAPTURE(id);
        CHECK_THROWS_WITH_AS(static_cast<void>(layernorm::parse(id)), doctest::Contains("r16384h4096/native"),
                             usage_error);
    }
}

TEST_CASE("bytes follow the formulas; FLOP are not counted") {
    const auto bytes = [](const char* id) { return layernorm::describe(layernorm::parse(id)).bytes; };
    CHECK(bytes("layernorm/fwd/bf16/r16h64/native") == (2 * 16 * 64 + 2 * 64) * 2 + 8 * 16);
    CHECK(bytes("layernorm/bwd/fp16/r16h64/native") == (3 * 16 * 64 + 3 * 64) * 2 + 8 * 16);
    CHECK(bytes("layernorm/rms_fwd/fp32/r16h64/cudnn") == (2 * 16 * 64 + 64) * 4 + 4 * 16);
    CHECK(bytes("layernorm/bwd/bf16/r16h64/cudnn") == 3 * 16 * 64 * 2 + 3 * 64 * 4 + 8 * 16); // fp32 gamma
    CHECK(bytes("layernorm/rms_bwd/bf16/r16h64/native") == (3 * 16 * 64 + 2 * 64) * 2 + 4 * 16);
    CHECK(layernorm::describe(layernorm::parse("layernorm/fwd/bf16/r16h64/native")).flop == 0);
}

TEST_CASE("whatever changes the work changes its hash") {
    const auto hash = [](const char* id) { return layernorm::describe(layernorm::parse(id)).hash(); };
    const std::string base = hash("layernorm/fwd/bf16/r16h64/native");
    for (const char* other :
         {"layernorm/bwd/bf16/r16h64/native", "layernorm/rms_fwd/bf16/r16h64/native",
          "layernorm/fwd/fp16/r16h64/native", "layernorm/fwd/bf16/r17h64/native", "layernorm/fwd/bf16/r16h65/native",
          "layernorm/fwd/bf16/r16h64/cudnn", "layernorm/fwd/bf16/r16h64/native/hot"}) {
        CHECK(hash(other) != base);
    }
}
