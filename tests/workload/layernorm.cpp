// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/workload/layernorm_reference.hpp"

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

namespace {

/// The check of one row of dx, with the standard inputs of the id.
struct row_check {
    layernorm::params p;
    std::vector<double> x, dx, terms;

    explicit row_check(const char* id) : p(layernorm::parse(id)) {
        x = layernorm::input(p.type, layernorm::seed_x, 0, p.hidden);
        use();
    }
    void use() {
        const auto dy = layernorm::input(p.type, layernorm::seed_dy, 0, p.hidden);
        const auto gamma = layernorm::input(p.type, layernorm::seed_gamma, 0, p.hidden);
        dx = layernorm::backward_row(x, dy, gamma, p.rms());
        terms = layernorm::backward_terms(x, dy, gamma, p.rms());
    }
    void operator()(const std::vector<double>& output, bool with_terms = true) const {
        std::vector<std::int64_t> places(dx.size());
        std::iota(places.begin(), places.end(), 0);
        layernorm::require_rows("row", p, output, dx, places, with_terms ? terms : std::vector<double>{});
    }
};

} // namespace

TEST_CASE("a dx that is a difference of nearly equal terms may be off by their roundings, and by no more") {
    for (const char* id : {"layernorm/rms_bwd/fp32/r1h1/native", "layernorm/bwd/fp32/r1h1/native"}) {
        CAPTURE(id);
        const row_check check(id);
        REQUIRE(check.terms.at(0) > 0.1);
        REQUIRE(std::abs(check.dx[0]) < 1e-4 * check.terms[0]);
        const double rounding = check.terms[0] / (1 << 24);
        CHECK_NOTHROW(check({check.dx[0] + 2 * rounding}));
        CHECK_THROWS_AS(check({check.dx[0] + 2 * rounding}, false), verification_error); // relative to dx it is much
        CHECK_THROWS_AS(check({check.dx[0] + 17 * rounding}), verification_error);
        CHECK_THROWS_AS(check({check.terms[0] / 2}), verification_error); // s g: the row's means forgotten
        CHECK_THROWS_AS(check({std::numeric_limits<double>::quiet_NaN()}), verification_error);
    }
    // Two elements that are almost equal: the rounding of their mean counts too.
    row_check two("layernorm/bwd/fp32/r1h2/native");
    two.x = {1.0, 1.0 + 1e-3};
    two.use();
    CHECK_NOTHROW(two({two.dx[0] + 8e-7 * two.terms[0], two.dx[1]}));
    CHECK_THROWS_AS(two({two.dx[0] + 2e-6 * two.terms[0], two.dx[1]}), verification_error);
}

TEST_CASE("an ordinary row of dx is held to the tolerance, whatever its terms") {
    for (const char* id : {"layernorm/bwd/fp32/r1h1000/native", "layernorm/rms_bwd/fp32/r1h1000/native",
                           "layernorm/bwd/bf16/r1h1000/native", "layernorm/rms_bwd/bf16/r1h64/native"}) {
        CAPTURE(id);
        const row_check check(id);
        for (double factor : {0.99, 1.01}) {
            std::vector<double> scaled = check.dx;
            for (double& each : scaled) each *= 1 + factor * tolerance(check.p.type);
            if (factor < 1)
                CHECK_NOTHROW(check(scaled));
            else
                CHECK_THROWS_AS(check(scaled), verification_error);
        }
    }
}
