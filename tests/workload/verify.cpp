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

TEST_CASE("a few wrong elements among many are found although the norm hardly moves") {
    std::vector<double> reference(100000);
    for (std::size_t i = 0; i < reference.size(); ++i) reference[i] = i % 2 == 0 ? 1.0 : -1.0;
    std::vector<double> output = reference;
    output[4711] = -0.9; // relative norm 3e-4
    CHECK(compare_outputs(output, reference).relative_norm < 1e-3);
    CHECK(compare_outputs(output, reference).element == doctest::Approx(0.1));
    CHECK_THROWS_WITH_AS(require_close("x", output, reference, 8e-3, same),
                         doctest::Contains("element 4711 is -0.9, expected -1"), verification_error);
    CHECK_NOTHROW(require_close("x", output, reference, 0.0126, same)); // 8 x 0.0126 allows it
    output[4711] = reference[4711] + 0.9 * element_factor * 1e-3;
    CHECK_NOTHROW(require_close("x", output, reference, 1e-3, same));
    output[4711] = reference[4711] + 1.1 * element_factor * 1e-3;
    CHECK_THROWS_AS(require_close("x", output, reference, 1e-3, same), verification_error);
}

TEST_CASE("an element is judged by itself where it is large and by the others where it is small") {
    const std::vector<double> reference{100, 1, 1e-9, 1};
    CHECK(compare_outputs({100.5, 1, 1e-9, 1}, reference).element == doctest::Approx(0.005));
    const double typical = std::sqrt((1e4 + 2) / 4);
    CHECK(compare_outputs({100, 1, 0.5, 1}, reference).element == doctest::Approx(0.5 / typical));
    CHECK(compare_outputs({100, 1, 0.5, 1}, reference).worst_element == 2);
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
