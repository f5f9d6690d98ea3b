// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/workload/projection.hpp"

using namespace plumbline;
using namespace plumbline::workload;

namespace {

/// A product on the host, as a library would leave it: its output is rounded to the dtype, and inputs of TF32 are cut
/// to 10 bits.
class host_product {
public:
    explicit host_product(const std::string& id) : p(gemm::parse(id)) {
        a = operand(p.a_view().stored(), gemm::seed_a);
        b = operand(p.b_view().stored(), gemm::seed_b);
        d.resize(static_cast<std::size_t>(p.d_view().stored()));
        const matrix_view va = p.a_view(), vb = p.b_view(), vd = p.d_view();
        std::vector<double> row(static_cast<std::size_t>(p.k));
        for (std::int64_t of = 0; of < p.batch; ++of) {
            for (std::int64_t i = 0; i < p.m; ++i) {
                for (std::int64_t q = 0; q < p.k; ++q) row[at(q)] = cut(a[at(va.at(of, i, q))]);
                for (std::int64_t j = 0; j < p.n; ++j) {
                    double sum = 0;
                    for (std::int64_t q = 0; q < p.k; ++q) sum += row[at(q)] * cut(b[at(vb.at(of, q, j))]);
                    if (p.after == gemm::epilogue::bias) sum += gemm::bias_value(p.type, static_cast<std::uint64_t>(i));
                    d[at(vd.at(of, i, j))] = rounded(sum);
                }
            }
        }
    }

    void verify() const {
        gemm::verify_rows("it", p, [&](gemm::operand which, const matrix_view& view, const std::vector<double>& x) {
            const auto& from = which == gemm::operand::a ? a : which == gemm::operand::b ? b : d;
            return project(
                view, [&](std::size_t i) { return from[i]; }, x);
        });
    }

    /// Swaps two tiles of D, as a kernel with a wrong block index would.
    void swap_tiles(std::int64_t rows, std::int64_t columns) {
        for (std::int64_t j = 0; j < columns; ++j) {
            for (std::int64_t i = 0; i < rows; ++i) {
                std::swap(d[at(p.d_view().at(0, i, j))], d[at(p.d_view().at(0, i + rows, j + columns))]);
            }
        }
    }

    gemm::params p;
    std::vector<double> a, b, d;

private:
    static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

    [[nodiscard]] std::vector<double> operand(std::int64_t count, std::uint64_t seed) const {
        std::vector<double> made(at(count));
        for (std::size_t i = 0; i < made.size(); ++i) made[i] = gemm::input_value(p.type, seed, i);
        return made;
    }

    [[nodiscard]] double cut(double x) const {
        if (p.type != dtype::tf32 || x == 0) return x;
        const double step = std::ldexp(1.0, std::ilogb(x) - 10);
        return std::trunc(x / step) * step;
    }

    [[nodiscard]] double rounded(double x) const {
        switch (p.type) {
        case dtype::fp16:
            return static_cast<double>(from_fp16(to_fp16(static_cast<float>(x))));
        case dtype::bf16:
        case dtype::fp8:
            return static_cast<double>(from_bf16(to_bf16(static_cast<float>(x))));
        case dtype::fp32:
        case dtype::tf32:
            return static_cast<double>(static_cast<float>(x));
        case dtype::int8:
            return x;
        }
        return x;
    }
};

} // namespace

TEST_CASE("a view of any strides is multiplied by a vector for all of the batch or by its own") {
    const std::vector<double> memory{1, 2, 3, 99, 4, 5, 6, 99}; // two columns of three and a gap
    const auto element = [&](std::size_t i) { return memory[i]; };
    const matrix_view tall{3, 2, 1, 4, 1, 8};
    CHECK(project(tall, element, {1, -1}) == std::vector<double>{-3, -3, -3});
    const matrix_view wide{2, 3, 4, 1, 1, 8}; // the same, transposed
    CHECK(project(wide, element, {1, 10, 100}) == std::vector<double>{321, 654});
    const matrix_view batch{3, 1, 1, 3, 2, 4};
    CHECK(project(batch, element, {2}) == std::vector<double>{2, 4, 6, 8, 10, 12});
    CHECK(project(batch, element, {1, -1}) == std::vector<double>{1, 2, 3, -4, -5, -6});
}

TEST_CASE("signs are both, and as many as asked for") {
    const std::vector<double> signs = random_signs(1000);
    const auto up = std::count(signs.begin(), signs.end(), 1.0);
    CHECK(up + std::count(signs.begin(), signs.end(), -1.0) == 1000);
    CHECK(up > 400);
    CHECK(up < 600);
}

TEST_CASE("roundings of every dtype pass; one wrong tile and one wrong element do not") {
    for (std::string id : {"gemm/fp32/tn/m192n320k96", "gemm/tf32/nn/m192n320k96", "gemm/fp16/nt/m192n320k96",
                           "gemm/bf16/tn/m192n320k96", "gemm/fp8/tn/m192n320k96", "gemm/int8/tn/m192n320k96",
                           "gemm/bf16/tn/m192n320k96/bias", "gemm/bf16/nn/m96n128k64b3/pad1", "gemm/bf16/tn/m64n64k64",
                           "gemm/bf16/tn/m64n2048k64", "gemm/bf16/tn/m2048n64k64"}) {
        CAPTURE(id);
        host_product right(id);
        CHECK_NOTHROW(right.verify());
        host_product swapped = right;
        swapped.swap_tiles(32, 32);
        CHECK_THROWS_AS(swapped.verify(), verification_error);
        for (std::size_t element : {std::size_t{0}, right.d.size() / 2, right.d.size() - 1}) {
            host_product wrong = right;
            wrong.d[element] += 2 * std::sqrt(static_cast<double>(right.p.k)) * (right.p.type == dtype::int8 ? 1e3 : 1);
            CHECK_THROWS_WITH_AS(wrong.verify(), doctest::Contains("random signs"), verification_error);
        }
    }
}

TEST_CASE("an exact product may not be off by one") {
    host_product product("gemm/int8/tn/m64n64k64");
    product.d[1234] += 1;
    CHECK_THROWS_AS(product.verify(), verification_error);
}

TEST_CASE("one wrong element among 8192 columns is beyond what rows are usually off by") {
    // The sums alone, as a large bf16 product has them: 64 rows, 8192 columns, 8192 terms.
    const double deviation = 8192; // of a sum of 8192 elements of deviation sqrt(8192)
    std::vector<double> expected(256), found(256);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] = deviation * static_cast<double>(random::normal(1, i));
        found[i] = expected[i] + 1.1e-3 * deviation * static_cast<double>(random::normal(2, i));
    }
    CHECK_NOTHROW(require_projection("it", found, expected, 8e-3, 8192, 8192));
    found[100] = expected[100] + std::sqrt(8192); // one element off by one deviation of its own
    CHECK_THROWS_WITH_AS(require_projection("it", found, expected, 8e-3, 8192, 8192),
                         doctest::Contains("row 100, added up with random signs"), verification_error);
    // The same for few columns or terms is what a single rounding may do: the tolerance alone decides.
    CHECK_NOTHROW(require_projection("it", found, expected, 8e-3, 63, 8192));
    CHECK_NOTHROW(require_projection("it", found, expected, 8e-3, 8192, 63));
    // Nothing at all is off in most rows: the eighth part of the tolerance is allowed.
    found = expected;
    found[5] += 0.9e-3 * deviation;
    CHECK_NOTHROW(require_projection("it", found, expected, 8e-3, 8192, 8192));
}

TEST_CASE("sums do not pass through GELU, and nothing is read for it") {
    const gemm::params p = gemm::parse("gemm/bf16/tn/m64n64k64/gelu");
    CHECK_NOTHROW(gemm::verify_rows("it", p, [](gemm::operand, const matrix_view&, const std::vector<double>&) {
        FAIL("must not be called");
        return std::vector<double>{};
    }));
}
