// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <doctest/doctest.h>

#include "plumbline/cpu/layernorm.hpp"
#include "plumbline/measure/engine.hpp"

using namespace plumbline;
using workload::layernorm::parse;

TEST_CASE("LayerNorm forward and backward give the float64 reference, at any width") {
    cpu::backend host;
    for (std::string pass : {"fwd", "bwd"}) {
        for (std::string size : {"r1h1", "r3h2", "r5h3", "r7h33", "r19h255", "r4h768", "r33h1000", "r3h4095"}) {
            const std::string id = "layernorm/" + pass + "/fp32/" + size + "/onednn";
            CAPTURE(id);
            cpu::layernorm norm(host, parse(id), 2);
            CHECK_NOTHROW(norm.verify(host));
            CHECK(norm.output_hash(host) == norm.output_hash(host));
        }
    }
}

TEST_CASE("what oneDNN has not is unsupported, and 16 bits are right where they run") {
    cpu::backend host;
    for (std::string id : {"layernorm/rms_fwd/fp32/r4h64/onednn", "layernorm/rms_bwd/fp32/r4h64/onednn",
                           "layernorm/fwd/fp32/r4h64/native", "layernorm/fwd/fp32/r4h64/cudnn"}) {
        CAPTURE(id);
        CHECK_THROWS_AS(cpu::layernorm(host, parse(id), 1), unsupported_error);
    }
    for (std::string id : {"layernorm/fwd/bf16/r32h768/onednn", "layernorm/bwd/bf16/r32h768/onednn"}) {
        CAPTURE(id);
        try {
            cpu::layernorm norm(host, parse(id), 1);
            CHECK_NOTHROW(norm.verify(host));
        } catch (const unsupported_error& refused) {
            MESSAGE(id << ": " << refused.what());
        }
    }
}

TEST_CASE("LayerNorm through the engine: verified, with the implementation that really ran") {
    cpu::backend host;
    measure::engine<cpu::backend> engine(host);
    measure::options how;
    how.time.total = std::chrono::milliseconds(200);
    how.rules.min_clean = 5;
    const auto results = engine.measure(
        measure::make_benchmark<cpu::layernorm, cpu::backend>(parse("layernorm/bwd/fp32/r256h1024/onednn/hot")), how);
    REQUIRE(results.size() == 1);
    const result::result& r = results[0];
    CAPTURE(r.reason);
    REQUIRE(r.status == result::result_status::ok);
    CHECK(r.verified);
    CHECK_FALSE(r.sessions[0].ran.implementation.empty());
    // Between 10 MB/s and 100 TB/s: the time is that of the work, not of nothing.
    const double rate = r.what.bytes / stats::median(r.sessions[0].samples) * 1e9;
    CHECK(rate > 1e7);
    CHECK(rate < 1e14);
}
