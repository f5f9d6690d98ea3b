// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/result/alarm.hpp"
#include "plumbline/workload/conv.hpp"
#include "plumbline/workload/gemm.hpp"

using namespace plumbline;
namespace code = plumbline::result::alarm_code;

namespace {

using codes = std::vector<std::string>;

codes codes_of(const std::vector<result::alarm>& found) {
    codes all;
    for (const result::alarm& each : found) all.push_back(each.code);
    return all;
}

/// What cublasLt says of a plan, as an H200 did.
result::evidence plan(bool tensor_cores, const std::string& input) {
    result::evidence ran;
    ran.implementation = "lt/id66/t24/s35/k1/r0/z0/c7/i0/g5/f10202";
    ran.parts = {{"tensor_cores", tensor_cores}, {"input", input}};
    return ran;
}

codes alarms_of(const std::string& id, const result::evidence& ran) {
    return codes_of(result::alarms(workload::gemm::describe(workload::gemm::parse(id)), ran));
}

/// A result with these sessions; the times play no part in it.
result::result result_of(const std::string& id, const std::vector<result::evidence>& sessions) {
    result::result made;
    made.what = workload::gemm::describe(workload::gemm::parse(id));
    for (const result::evidence& each : sessions) {
        made.sessions.emplace_back();
        made.sessions.back().ran = each;
    }
    return made;
}

/// The same with these times, ns.
result::result at(result::result of, double fastest_ns) {
    for (result::session_result& each : of.sessions) each.samples = {fastest_ns * 3, fastest_ns, fastest_ns * 2};
    return of;
}

result::device h200() {
    result::device on;
    on.ceilings = {{"gemm_bf16_flop_per_s", 800e12}, {"copy_bytes_per_s", 4.2e12}};
    return on;
}

} // namespace

TEST_CASE("sound evidence raises nothing") {
    CHECK(alarms_of("gemm/bf16/tn/m64n64k64", plan(true, "fp16")).empty());
    CHECK(alarms_of("gemm/tf32/tn/m64n64k64", plan(true, "tf32")).empty());
    CHECK(alarms_of("gemm/fp32/tn/m64n64k64", plan(false, "fp32")).empty());
    CHECK(alarms_of("gemm/int8/tn/m64n64k64", plan(true, "int8")).empty());
    workload::description canary;
    canary.params["kind"] = std::string("canary_fma"); // no dtype: it means to do without
    CHECK(result::alarms(canary, plan(false, "fp32")).empty());
    workload::description norm;
    norm.family = "layernorm";
    norm.params["dtype"] = std::string("bf16");
    norm.flop = 8.0 * 4096; // two FLOP a byte
    norm.bytes = 4.0 * 4096;
    CHECK(result::alarms(norm, plan(false, "bf16")).empty());
    norm.flop = 40.0 * 4096;
    CHECK(codes_of(result::alarms(norm, plan(false, "bf16"))) == codes{code::no_tensor_cores});
    // A backend without tensor cores says nothing about them.
    result::evidence onednn;
    onednn.implementation = "brg:avx512_core_bf16";
    CHECK(alarms_of("gemm/bf16/tn/m64n64k64", onednn).empty());
    CHECK(alarms_of("gemm/bf16/tn/m64n64k64", {}).empty());
}

TEST_CASE("each alarm by its evidence") {
    CHECK(alarms_of("gemm/bf16/tn/m64n64k64", plan(false, "bf16")) == codes{code::no_tensor_cores});
    CHECK(alarms_of("gemm/fp8/tn/m64n64k64", plan(false, "e4m3")) == codes{code::no_tensor_cores});
    CHECK(alarms_of("gemm/int8/tn/m64n64k64", plan(false, "int8")) == codes{code::no_tensor_cores});
    CHECK(alarms_of("gemm/tf32/tn/m64n64k64", plan(false, "fp32")) == codes{code::no_tf32});
    CHECK(alarms_of("gemm/fp32/tn/m64n64k64", plan(true, "tf32")) == codes{code::tf32_in_fp32});
    CHECK(alarms_of("gemm/fp32/tn/m64n64k64", plan(false, "tf32")) == codes{code::tf32_in_fp32});
    CHECK(alarms_of("gemm/fp32/tn/m64n64k64", plan(true, "bf16")) == codes{code::tf32_in_fp32});
    result::evidence last_resort = plan(true, "fp16");
    last_resort.parts["mode"] = std::string("FALLBACK");
    CHECK(alarms_of("gemm/bf16/tn/m64n64k64", last_resort) == codes{code::fallback});
    last_resort.parts["mode"] = std::string("A");
    CHECK(alarms_of("gemm/bf16/tn/m64n64k64", last_resort).empty());
    last_resort.implementation = "cudnn/FALLBACK/eng0";
    CHECK(alarms_of("gemm/bf16/tn/m64n64k64", last_resort) == codes{code::fallback});
    result::evidence loops;
    loops.implementation = "ref:any";
    CHECK(alarms_of("gemm/int8/nn/m64n64k64", loops) == codes{code::fallback});
}

TEST_CASE("a convolution without whole vectors of channels in each group is sound without tensor cores") {
    for (const char* id :
         {"conv/fprop/bf16/nhwc/n64c256h56w56k256r3s3u1p1g256", "conv/fprop/bf16/nhwc/n64c3h28w28k16r3s3u1p1",
          "conv/fprop/fp16/nhwc/n64c64h28w28k12r3s3u1p1"}) {
        CAPTURE(std::string(id));
        CHECK(result::alarms(describe(workload::conv::parse(id)), plan(false, "bf16")).empty());
    }
    for (const char* id :
         {"conv/fprop/bf16/nhwc/n64c64h28w28k64r3s3u1p1", "conv/wgrad/bf16/nhwc/n64c256h56w56k256r3s3u1p1g32"}) {
        CAPTURE(std::string(id));
        CHECK(codes_of(result::alarms(describe(workload::conv::parse(id)), plan(false, "bf16"))) ==
              codes{code::no_tensor_cores});
    }
    // Four of TF32 fill what eight of 16 bits do.
    CHECK(codes_of(result::alarms(describe(workload::conv::parse("conv/fprop/tf32/nhwc/n64c12h28w28k12r3s3u1p1")),
                                  plan(false, "fp32"))) == codes{code::no_tf32});
}

TEST_CASE("an alarm of several sessions is one, and counts them") {
    const result::result of = result_of(
        "gemm/bf16/tn/m64n64k64", {plan(true, "fp16"), plan(false, "bf16"), plan(true, "fp16"), plan(false, "bf16")});
    const auto found = result::alarms(at(of, 1e3), {});
    REQUIRE(found.size() == 1);
    CHECK(found[0].code == code::no_tensor_cores);
    CHECK(found[0].sessions == 2);
}

TEST_CASE("far below the limit begins at a twentieth of it") {
    const result::result of = result_of("gemm/bf16/tn/m4096n4096k4096", {plan(true, "fp16")});
    const double limit_ns = of.what.flop / 800e12 * 1e9;
    CHECK(result::alarms(at(of, limit_ns * 19.9), h200()).empty());
    const auto found = result::alarms(at(of, limit_ns * 20.3), h200());
    REQUIRE(codes_of(found) == codes{code::far_below_limit});
    CHECK(found[0].text.find("4.9 % of the limit measured here") != std::string::npos);
    // Nothing is known of this device, or the work is too short for its limit to rule it.
    CHECK(result::alarms(at(of, limit_ns * 100), {}).empty());
    const result::result little = result_of("gemm/bf16/tn/m512n512k512", {plan(true, "fp16")});
    CHECK(result::alarms(at(little, 1e6), h200()).empty());
    // Bytes count too: 118 MB in 28 us.
    const result::result skinny = result_of("gemm/bf16/tn/m14336n16k4096", {plan(true, "fp16")});
    CHECK(codes_of(result::alarms(at(skinny, 600e3), h200())) == codes{code::far_below_limit});
}

TEST_CASE("the datasheet finds what a limit made by the result itself cannot") {
    const result::result of = result_of("gemm/bf16/tn/m4096n4096k4096", {plan(true, "fp16")});
    const double slow_ns = of.what.flop / 45e12 * 1e9;
    result::device on = h200();
    on.ceilings["gemm_bf16_flop_per_s"] = 45e12; // this very result
    CHECK(result::alarms(at(of, slow_ns), on).empty());
    on.properties = {{"datasheet.bf16_flop_per_s", 989.4e12}, {"datasheet.copy_bytes_per_s", 4.8e12}};
    const auto found = result::alarms(at(of, slow_ns), on);
    REQUIRE(codes_of(found) == codes{code::far_below_limit});
    CHECK(found[0].text.find("4.5 % of the datasheet's limit") != std::string::npos);
}

TEST_CASE("no alarm for what failed, for a probe, or for what is no kernel's time") {
    result::result of = result_of("gemm/bf16/tn/m4096n4096k4096", {plan(false, "fp16")});
    CHECK(result::alarms(at(of, 1e9), h200()).size() == 2);
    result::result other = of;
    other.status = result::result_status::failed;
    CHECK(result::alarms(at(other, 1e9), h200()).empty());
    other = of;
    other.what.family = "probe";
    CHECK(codes_of(result::alarms(at(other, 1e9), h200())) == codes{code::no_tensor_cores}); // by its own evidence
    other = of;
    other.what.kind = benchmark_class::training_step;
    CHECK(codes_of(result::alarms(at(other, 1e9), h200())) == codes{code::no_tensor_cores});
    other = of;
    other.what.unit = "1";
    CHECK(codes_of(result::alarms(at(other, 1e9), h200())) == codes{code::no_tensor_cores});
}
