// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/workload/gemm_reference.hpp"

using namespace plumbline::workload;

namespace {

/// D by the definition, from the stored operands, written independently of gemm::reference.
std::vector<double> by_definition(const gemm::params& p) {
    const std::int64_t a_rows = (p.a_transposed() ? p.k : p.m) + p.pad, a_columns = p.a_transposed() ? p.m : p.k;
    const std::int64_t b_rows = (p.b_transposed() ? p.n : p.k) + p.pad, b_columns = p.b_transposed() ? p.k : p.n;
    std::vector<double> a(static_cast<std::size_t>(p.batch * a_rows * a_columns));
    std::vector<double> b(static_cast<std::size_t>(p.batch * b_rows * b_columns));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = gemm::input_value(p.type, gemm::seed_a, i);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = gemm::input_value(p.type, gemm::seed_b, i);
    std::vector<double> d(static_cast<std::size_t>(p.d_elements()));
    const auto at = [](std::int64_t column, std::int64_t rows, std::int64_t row) {
        return static_cast<std::size_t>(column * rows + row); // column by column
    };
    for (std::int64_t batch = 0; batch < p.batch; ++batch) {
        const double* a0 = a.data() + batch * a_rows * a_columns;
        const double* b0 = b.data() + batch * b_rows * b_columns;
        for (std::int64_t i = 0; i < p.m; ++i) {
            for (std::int64_t j = 0; j < p.n; ++j) {
                double sum = 0;
                for (std::int64_t q = 0; q < p.k; ++q) {
                    sum += (p.a_transposed() ? a0[at(i, a_rows, q)] : a0[at(q, a_rows, i)]) *
                           (p.b_transposed() ? b0[at(q, b_rows, j)] : b0[at(j, b_rows, q)]);
                }
                d[static_cast<std::size_t>(batch * p.m * p.n) + at(j, p.m, i)] = sum;
            }
        }
    }
    return d;
}

} // namespace

TEST_CASE("FLOP and bytes follow the formulas") {
    const gemm::params p = gemm::parse("gemm/bf16/tn/m8n16k32b3");
    CHECK(gemm::flop(p) == 2.0 * 8 * 16 * 32 * 3);
    CHECK(gemm::bytes(p) == 3.0 * 2 * (8 * 32 + 32 * 16 + 8 * 16));
    CHECK(gemm::bytes(gemm::parse("gemm/fp8/tn/m8n16k32")) == 8 * 32 + 32 * 16 + 2.0 * 8 * 16);
    CHECK(gemm::bytes(gemm::parse("gemm/int8/tn/m8n16k32")) == 8 * 32 + 32 * 16 + 4.0 * 8 * 16);
    CHECK(gemm::bytes(gemm::parse("gemm/fp32/tn/m8n16k32/bias")) == 4.0 * (8 * 32 + 32 * 16 + 8 * 16 + 8));
    CHECK(gemm::flop(gemm::parse("gemm/bf16/tn/m8192n8192k8192")) == 1099511627776.0);
}

TEST_CASE("gaps and displaced operands cost no bytes by formula, and say where everything lies") {
    const gemm::params p = gemm::parse("gemm/bf16/tn/m8n16k32b3/pad1/offset1");
    CHECK(gemm::bytes(p) == 3.0 * 2 * (8 * 32 + 32 * 16 + 8 * 16));
    CHECK(p.lda() == 33);
    CHECK(p.ldb() == 33);
    CHECK(p.ldd() == 8);
    CHECK(p.a_view().stored() == 3 * 33 * 8);
    CHECK(p.b_view().stored() == 3 * 33 * 16);
    CHECK(p.d_view().stored() == p.d_elements());
    CHECK(gemm::parse("gemm/bf16/nt/m8n16k32/pad1").lda() == 9);
    CHECK(gemm::parse("gemm/bf16/nt/m8n16k32/pad1").ldb() == 17);
    CHECK(gemm::parse("gemm/bf16/nt/m8n16k32").a_view().stored() == 8 * 32);
}

TEST_CASE("the reference of a small product is its definition, for every layout and dtype") {
    for (std::string id : {"gemm/fp32/tn/m3n5k7b2", "gemm/bf16/nn/m4n2k9", "gemm/fp16/nt/m5n3k8", "gemm/tf32/tt/m2n7k6",
                           "gemm/fp8/tn/m3n3k5", "gemm/int8/nn/m6n4k3b3", "gemm/bf16/tn/m3n5k7b2/pad1",
                           "gemm/bf16/nn/m3n5k7b2/pad3/offset1", "gemm/fp32/nt/m3n5k7/pad1"}) {
        CAPTURE(id);
        const gemm::params p = gemm::parse(id);
        const gemm::grid all = gemm::check_grid(p);
        REQUIRE(all.size() == static_cast<std::size_t>(p.d_elements()));
        const std::vector<double> expected = by_definition(p);
        const std::vector<double> got = gemm::reference(p, all);
        for (std::size_t i = 0; i < got.size(); ++i) {
            CHECK(got[i] == doctest::Approx(expected[static_cast<std::size_t>(all.index(p, i))]).epsilon(1e-14));
        }
    }
}

TEST_CASE("bias is added per row, GELU after it") {
    const gemm::params plain = gemm::parse("gemm/fp32/tn/m3n2k4");
    const gemm::params biased = gemm::parse("gemm/fp32/tn/m3n2k4/bias");
    const gemm::params gelu = gemm::parse("gemm/fp32/tn/m3n2k4/gelu");
    const gemm::grid all = gemm::check_grid(plain);
    const auto d = gemm::reference(plain, all);
    const auto with_bias = gemm::reference(biased, all);
    const auto with_gelu = gemm::reference(gelu, all);
    for (std::size_t i = 0; i < d.size(); ++i) {
        const double x = d[i] + gemm::bias_value(dtype::fp32, i % 3);
        CHECK(with_bias[i] == doctest::Approx(x));
        // The exact GELU is x Phi(x); the tanh form is within 1e-3 of it everywhere.
        CHECK(std::abs(with_gelu[i] - x * 0.5 * std::erfc(-x / std::sqrt(2.0))) < 1e-3);
    }
}

TEST_CASE("a large product is checked at its corners and thousands of other elements") {
    const gemm::params p = gemm::parse("gemm/bf16/tn/m8192n16384k8192b8");
    const gemm::grid chosen = gemm::check_grid(p);
    CHECK(chosen.size() >= 8000);
    CHECK(chosen.size() <= 16384);
    std::set<std::int64_t> indices;
    for (std::size_t i = 0; i < chosen.size(); ++i) indices.insert(chosen.index(p, i));
    CHECK(indices.size() == chosen.size());
    for (std::int64_t b : {0, 7}) {
        for (std::int64_t i : {0, 8191}) {
            for (std::int64_t j : {0, 16383}) CHECK(indices.count(p.d_view().at(b, i, j)) == 1);
        }
    }
    CHECK(*indices.rbegin() == p.d_elements() - 1);
    CHECK(gemm::check_grid(p, 1).rows != chosen.rows);
    // Long sums of few outputs are not all computed.
    CHECK(gemm::check_grid(gemm::parse("gemm/bf16/tn/m256n256k65536")).size() < 65536);
}
