// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "plumbline/result/limit.hpp"

using namespace plumbline;

TEST_CASE("the fraction of the limit follows the slower of compute and memory") {
    result::device on;
    on.ceilings = {{"gemm_bf16_flop_per_s", 800e12}, {"copy_bytes_per_s", 4e12}};
    workload::description what;
    what.params["dtype"] = std::string("bf16");
    what.flop = 800e9; // 1 ms
    what.bytes = 2e9;  // 0.5 ms
    CHECK(result::fraction_of_limit(what, on, 2e6) == doctest::Approx(0.5));
    what.bytes = 8e9; // 2 ms
    CHECK(result::fraction_of_limit(what, on, 4e6) == doctest::Approx(0.5));
    what.unit = "ms";
    CHECK(result::fraction_of_limit(what, on, 4) == doctest::Approx(0.5));
}

TEST_CASE("without a limit that is needed there is no fraction") {
    result::device on;
    on.ceilings = {{"copy_bytes_per_s", 4e12}};
    workload::description what;
    CHECK_FALSE(result::fraction_of_limit(what, on, 1e6)); // no formula
    what.bytes = 4e9;
    CHECK(result::fraction_of_limit(what, on, 1e6) == doctest::Approx(1.0));
    CHECK_FALSE(result::fraction_of_limit(what, on, 0));
    what.flop = 1; // of a dtype whose peak nobody measured
    what.params["dtype"] = std::string("fp8_e4m3");
    CHECK_FALSE(result::fraction_of_limit(what, on, 1e6));
    what.flop = 0;
    what.unit = "items/s";
    CHECK_FALSE(result::fraction_of_limit(what, on, 1e6));
    what.unit = "ns";
    on.ceilings.clear();
    CHECK_FALSE(result::fraction_of_limit(what, on, 1e6));
}

TEST_CASE("work of bytes alone is held against the copy that moves as many, where one was measured") {
    result::device on;
    on.ceilings = {{"copy_bytes_per_s", 4.2e12}, {"copy_128MiB_bytes_per_s", 4e12}};
    workload::description norm;
    norm.family = "layernorm";
    norm.bytes = 256.0 * 1048576 + 150000; // a little more than the copy: vectors and statistics
    CHECK(result::fraction_of_limit(norm, on, norm.bytes / 4e12 * 1e9) == doctest::Approx(1.0));
    norm.bytes *= 1.5; // no copy of 192 MiB
    CHECK(result::fraction_of_limit(norm, on, norm.bytes / 4.2e12 * 1e9) == doctest::Approx(1.0));
    workload::description probe;
    probe.family = "probe";
    probe.bytes = 256.0 * 1048576; // would else always reach its own limit
    CHECK(result::fraction_of_limit(probe, on, probe.bytes / 4e12 * 1e9) == doctest::Approx(4.0 / 4.2));
    norm.bytes = 1000; // less than any copy
    CHECK(result::fraction_of_limit(norm, on, 1000 / 4.2e12 * 1e9) == doctest::Approx(1.0));
}
