// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/cpu/conv.hpp"
#include "plumbline/measure/engine.hpp"

using namespace plumbline;
using workload::conv::parse;

TEST_CASE("every pass, layout and geometry of an fp32 convolution gives the float64 reference") {
    cpu::backend host;
    for (std::string size :
         {"n2c16h9w7k32r3s3u1p1", "n1c3h19w21k8r7s7u2p3", "n3c5h6w6k7r1s1u1p0", "n2c8h9w9k6r3s5u2p2",
          "n2c12h8w8k8r3s3u1p1g4", "n1c16h8w8k16r3s3u1p1g16", "n1c6h11w11k4r3s3u1p2l2", "n1c4h6w7d5k8r3s3t3u1p1"}) {
        for (std::string pass : {"fprop", "dgrad", "wgrad"}) {
            for (std::string layout : {"nhwc", "nchw"}) {
                const std::string id = "conv/" + pass + "/fp32/" + layout + '/' + size;
                CAPTURE(id);
                cpu::conv kernel(host, parse(id), 2);
                CHECK_NOTHROW(kernel.verify(host));
                CHECK(kernel.output_hash(host) == kernel.output_hash(host));
                CHECK_FALSE(kernel.evidence(host).implementation.empty());
            }
        }
    }
}

TEST_CASE("convolutions of other dtypes give the reference or say that they cannot") {
    cpu::backend host;
    int ran = 0;
    for (std::string id : {"conv/fprop/bf16/nhwc/n2c32h14w14k32r3s3u1p1", "conv/dgrad/bf16/nhwc/n2c32h14w14k32r3s3u1p1",
                           "conv/wgrad/bf16/nhwc/n2c32h14w14k32r3s3u1p1", "conv/fprop/fp16/nhwc/n1c8h8w8k8r3s3u1p1"}) {
        CAPTURE(id);
        try {
            cpu::conv kernel(host, parse(id), 1);
            kernel.verify(host);
            ++ran;
        } catch (const unsupported_error& e) {
            MESSAGE(id << ": " << std::string(e.what()));
        }
    }
    if (cpu::has_native_bf16()) CHECK(ran >= 3);
    for (std::string tail : {"tf32/nhwc/n1c8h8w8k8r3s3u1p1", "fp32/nhwc/n1c8h8w8k8r3s3u1p1/best",
                             "fp32/nhwc/n1c8h8w8k8r3s3u1p1/fallback", "fp32/nhwc/n1c8h8w8k8r3s3u1p1/deterministic",
                             "fp32/nhwc/n1c8h8w8k8r3s3u1p1/ws32", "fp32/nhwc/n1048576c1024h16w16k8r1s1u1p0"}) {
        CAPTURE(tail);
        CHECK_THROWS_AS(cpu::conv(host, parse("conv/fprop/" + tail), 1), unsupported_error);
    }
}

#if DNNL_VERSION_MAJOR >= 3 || (DNNL_VERSION_MAJOR == 2 && DNNL_VERSION_MINOR >= 6)
TEST_CASE("an fp32 convolution that is secretly computed in bf16 is a wrong result") {
    if (!cpu::has_native_bf16()) return;
    cpu::backend host;
    dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_bf16);
    cpu::conv kernel(host, parse("conv/fprop/fp32/nhwc/n2c32h14w14k32r3s3u1p1"), 1);
    dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_strict);
    if (kernel.evidence(host).implementation.find("bf16") == std::string::npos) return; // this oneDNN did not do it
    CHECK_THROWS_AS(kernel.verify(host), verification_error);
}
#endif

TEST_CASE("a convolution through the engine: verified, with the implementation that really ran, no reference loop") {
    cpu::backend host;
    measure::engine<cpu::backend> engine(host);
    measure::options how;
    how.time.total = std::chrono::milliseconds(200);
    how.rules.min_clean = 5;
    const char* const id = "conv/fprop/fp32/nhwc/n4c32h28w28k32r3s3u1p1/hot";
    const auto results = engine.measure(measure::make_benchmark<cpu::conv, cpu::backend>(parse(id)), how);
    REQUIRE(results.size() == 1);
    const result::result& r = results[0];
    CAPTURE(r.reason);
    REQUIRE(r.status == result::result_status::ok);
    CHECK(r.verified);
    CHECK(r.what.id == id);
    const result::evidence& ran = r.sessions[0].ran;
#if defined(__x86_64__)
    CHECK(ran.implementation.rfind("ref", 0) == std::string::npos);
#endif
    CHECK(std::get<std::int64_t>(ran.parts.at("slots")) == 1);
    const double rate = r.what.flop / stats::median(r.sessions[0].samples) * 1e9;
    CHECK(rate > 1e7);
    CHECK(rate < 1e14);
}
