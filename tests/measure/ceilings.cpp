// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "plumbline/measure/ceilings.hpp"
#include "plumbline/workload/gemm.hpp"
#include "plumbline/workload/probe.hpp"

using namespace plumbline;

namespace {

result::result timed(workload::description what, std::vector<double> samples, std::vector<bool> clean = {}) {
    result::result made;
    made.what = std::move(what);
    made.verified = true;
    made.sessions.resize(1);
    made.sessions[0].samples = std::move(samples);
    made.sessions[0].clean = std::move(clean);
    return made;
}

} // namespace

TEST_CASE("ceilings are the best verified product of each dtype and the best large cold copy") {
    const auto bf16 = workload::gemm::parse("gemm/bf16/tn/m1000n1000k1000");
    const auto hot = workload::probe::parse("probe/device_copy/hot");
    std::vector<result::result> results{
        timed(workload::gemm::describe(bf16), {4e3, 2e3, 9e9}, {true, true, false}), // median of 4 and 2 us, 2 GFLOP
        timed(workload::gemm::describe(workload::gemm::parse("gemm/bf16/nn/m1000n1000k1000")), {4e3}),
        timed(workload::gemm::describe(workload::gemm::parse("gemm/fp8/tn/m16n16k16")), {1}),
        timed(workload::probe::describe(workload::probe::of(workload::probe::kind::device_copy)), {5e5}),
        timed(workload::probe::describe(workload::probe::parse("probe/canary_copy/64MiB")), {1e5}),
        timed(workload::probe::describe(workload::probe::parse("probe/canary_copy/32MiB")), {1}), // fits into a cache
        timed(workload::probe::describe(hot), {1}),
        timed(workload::probe::describe(workload::probe::of(workload::probe::kind::h2d_pinned)), {1}),
        timed(workload::gemm::describe(workload::gemm::parse("gemm/bf16/tn/m1000n1000k1000/sustained")), {1}),
    };
    results[2].verified = false;
    const auto found = measure::ceilings(results);
    REQUIRE(found.size() == 6);
    CHECK(found.at("copy_1GiB_bytes_per_s") == found.at("copy_bytes_per_s"));
    CHECK(found.at("copy_64MiB_bytes_per_s") == doctest::Approx(134217728.0 / 1e-4));
    CHECK(found.at("copy_32MiB_bytes_per_s") == doctest::Approx(67108864.0 / 1e-9));
    CHECK(found.at("h2d_pinned_bytes_per_s") == doctest::Approx(268435456.0 / 1e-9));
    CHECK(found.at("gemm_bf16_flop_per_s") == doctest::Approx(2e9 / 3e-6));
    CHECK(found.at("copy_bytes_per_s") == doctest::Approx(2147483648.0 / 5e-4));
    results.resize(1);
    results[0].status = result::result_status::failed;
    CHECK(measure::ceilings(results).empty());
}
