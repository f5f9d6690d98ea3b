// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/cpu/gemm.hpp"
#include "plumbline/measure/engine.hpp"

using namespace plumbline;
using workload::gemm::parse;

namespace {

measure::options quick() {
    measure::options how;
    how.time.total = std::chrono::milliseconds(200);
    how.rules.min_clean = 5;
    return how;
}

} // namespace

TEST_CASE("every layout, batch and epilogue of fp32 gives the float64 reference") {
    cpu::backend host;
    for (std::string id :
         {"gemm/fp32/tn/m33n17k65", "gemm/fp32/nn/m33n17k65", "gemm/fp32/nt/m33n17k65", "gemm/fp32/tt/m33n17k65",
          "gemm/fp32/tn/m16n24k8b5", "gemm/fp32/nn/m16n24k8b5", "gemm/fp32/tn/m33n17k65/bias",
          "gemm/fp32/nt/m33n17k65/gelu", "gemm/fp32/tn/m16n24k8b5/bias", "gemm/fp32/tn/m1n1k1",
          "gemm/fp32/tn/m300n400k500", "gemm/fp32/tn/m300n400k50/pad1", "gemm/fp32/nt/m33n17k65/pad3/offset1",
          "gemm/fp32/nn/m16n24k8b5/bias/pad1", "gemm/fp32/tn/m300n400k50b2/gelu/offset1"}) {
        CAPTURE(id);
        cpu::gemm kernel(host, parse(id), 2);
        CHECK_NOTHROW(kernel.verify(host));
        CHECK(kernel.output_hash(host) == kernel.output_hash(host));
    }
}

TEST_CASE("other dtypes give the reference or say that they cannot") {
    cpu::backend host;
    int ran = 0;
    for (std::string id : {"gemm/bf16/tn/m128n96k256", "gemm/bf16/nn/m65n33k129/bias", "gemm/fp16/tn/m64n64k64",
                           "gemm/int8/tn/m64n64k64", "gemm/int8/nn/m33n65k129", "gemm/int8/tn/m300n400k50/pad1",
                           "gemm/bf16/tn/m300n400k50/gelu/pad1"}) {
        CAPTURE(id);
        try {
            cpu::gemm kernel(host, parse(id), 1);
            kernel.verify(host);
            ++ran;
        } catch (const unsupported_error& e) {
            MESSAGE(id << ": " << std::string(e.what()));
        }
    }
    if (cpu::has_native_bf16()) CHECK(ran >= 2);
    for (std::string id :
         {"gemm/tf32/tn/m8n8k8", "gemm/fp8/tn/m8n8k8", "gemm/fp32/tn/m8n8k8/best", "gemm/int8/tn/m8n8k8/bias",
          "gemm/fp32/tn/m8n8k8/ws0", "gemm/fp32/tn/m1048576n1048576k1048576"}) {
        CAPTURE(id);
        CHECK_THROWS_AS(cpu::gemm(host, parse(id), 1), unsupported_error);
    }
}

#if DNNL_VERSION_MAJOR >= 3 || (DNNL_VERSION_MAJOR == 2 && DNNL_VERSION_MINOR >= 6)
TEST_CASE("fp32 that is secretly computed in bf16 is a wrong result") {
    if (!cpu::has_native_bf16()) return;
    cpu::backend host;
    dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_bf16);
    cpu::gemm kernel(host, parse("gemm/fp32/tn/m128n128k128"), 1);
    dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_strict);
    if (kernel.evidence(host).implementation.find("bf16") == std::string::npos) return; // this oneDNN did not do it
    CHECK_THROWS_AS(kernel.verify(host), verification_error);
}
#endif

TEST_CASE("through the engine: verified, with the implementation and threads that really ran") {
    cpu::backend host;
    measure::engine<cpu::backend> engine(host);
    const auto what = measure::make_benchmark<cpu::gemm, cpu::backend>(parse("gemm/fp32/tn/m256n256k256/hot"));
    measure::options how = quick();
    const auto results = engine.measure(what, how);
    REQUIRE(results.size() == 1);
    const result::result& r = results[0];
    CAPTURE(r.reason);
    REQUIRE(r.status == result::result_status::ok);
    CHECK(r.backend == "cpu");
    CHECK(r.verified);
    CHECK_FALSE(r.sessions[0].ran.implementation.empty());
    CHECK(std::get<std::int64_t>(r.sessions[0].ran.parts.at("threads")) >= 1);
    CHECK(std::get<std::int64_t>(r.sessions[0].ran.parts.at("slots")) == 1);
    CHECK(r.sessions[0].samples.size() >= 5);
    // Between 10 MFLOP/s and 100 TFLOP/s: the time is that of the work, not of nothing.
    const double rate = r.what.flop / stats::median(r.sessions[0].samples) * 1e9;
    CHECK(rate > 1e7);
    CHECK(rate < 1e14);

    // The next session knows the output and does not verify again.
    how.known = measure::known_output{r.sessions[0].ran.implementation,
                                      std::get<std::string>(r.sessions[0].state.at("output_hash"))};
    const auto again = engine.measure(what, how);
    CHECK(again[0].verified);
    CHECK(std::get<std::string>(again[0].sessions[0].state.at("verified_by")) == "hash");
}

TEST_CASE("more work takes longer") {
    cpu::backend host;
    measure::engine<cpu::backend> engine(host);
    const auto fastest = [&](const char* id) {
        const auto results = engine.measure(measure::make_benchmark<cpu::gemm, cpu::backend>(parse(id)), quick());
        REQUIRE(results[0].status == result::result_status::ok);
        const std::vector<double>& samples = results[0].sessions[0].samples;
        return *std::min_element(samples.begin(), samples.end());
    };
    // Eight times the work; the small one is less efficient, and others may be using the machine: their share is in
    // every median, so the fastest samples are compared.
    CHECK(fastest("gemm/fp32/tn/m512n512k512/hot") > 2 * fastest("gemm/fp32/tn/m256n256k256/hot"));
}
