// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/workload/verify.hpp"

using namespace plumbline;
using namespace plumbline::workload;

namespace {

const auto same = [](std::size_t i) { return i; };
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

} // namespace

TEST_CASE("the difference is a norm over a norm, and knows its worst element") {
    const difference d = compare_outputs({3.0, 4.0, 0.5}, {3.0, 5.0, 0.0});
    CHECK(d.relative_norm == doctest::Approx(std::sqrt(1.25 / 34.0)));
    CHECK(d.max_abs == 1.0);
    CHECK(d.worst == 1);
    CHECK(d.max_rel == doctest::Approx(0.2)); // the zero has no relative difference
}

TEST_CASE("a NaN or an infinity never passes, whatever the tolerance") {
    for (double bad : {not_a_number, inf, -inf}) {
        CHECK_THROWS_AS(require_close("x", {1, bad}, {1, 2}, inf, same), verification_error);
    }
    CHECK_THROWS_AS(require_close("x", {1, not_a_number}, {1, not_a_number}, 1e300, same), verification_error);
}

TEST_CASE("a wrong element is reported with its own index and both values") {
    try {
        require_close("gemm/x", {1, 2, 9}, {1, 2, 3}, 1e-3, [](std::size_t i) { return 100 + i; });
        FAIL("must throw");
    } catch (const verification_error& e) {
        CHECK(e.index() == 102);
        CHECK(e.max_abs() == 6);
        CHECK(e.max_rel() == 2);
        const std::string text = e.what();
        CHECK(text.find("gemm/x") != std::string::npos);
        CHECK(text.find("element 102 is 9, expected 3") != std::string::npos);
    }
}

TEST_CASE("the tolerance is a limit on both sides of it") {
    CHECK_NOTHROW(require_close("x", {1.0009}, {1}, 1e-3, same));
    CHECK_THROWS_AS(require_close("x", {1.0011}, {1}, 1e-3, same), verification_error);
    CHECK_NOTHROW(require_close("x", {7, -3}, {7, -3}, 0, same)); // int8 is exact
    CHECK_THROWS_AS(require_close("x", {7, -2}, {7, -3}, 0, same), verification_error);
    CHECK_NOTHROW(require_close("x", {0.0}, {0.0}, 0, same));
    CHECK_THROWS_AS(require_close("x", {1e-9}, {0.0}, 1e-3, same), verification_error);
    CHECK_THROWS_AS(require_close("x", {1}, {1, 2}, 1, same), error);
}

TEST_CASE("tolerances are those of each dtype; fp32 grows with the square root beyond 16384 terms") {
    CHECK(tolerance(dtype::fp32, 16384) == 1e-5);
    CHECK(tolerance(dtype::fp32, 65536) == doctest::Approx(2e-5));
    CHECK(tolerance(dtype::int8, 1e6) == 0);
    CHECK(tolerance(dtype::bf16, 1e6) == 8e-3);
    CHECK(tolerance(dtype::fp8) == 1e-2);
    CHECK(tolerance(dtype::fp16) == 1e-3);
    CHECK(tolerance(dtype::tf32) == 1e-3);
}
