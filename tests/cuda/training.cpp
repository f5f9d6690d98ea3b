// SPDX-License-Identifier: Apache-2.0
// What of a training step on a GPU is plain arithmetic.
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/cuda/training_step.hpp"
#include "plumbline/workload/random.hpp"

using namespace plumbline;

namespace {

/// What cublasLt computes: column-major matrices as they are described, op by op.
std::vector<float> by_columns(const training::product& p, const std::vector<float>& a, const std::vector<float>& b,
                              std::vector<float> out) {
    const cuda::lt_product with = cuda::as_columns(p);
    const auto element = [](const std::vector<float>& of, cublasOperation_t op,
                            const std::array<std::int64_t, 3>& shape, std::int64_t row, std::int64_t column,
                            std::int64_t from) {
        const std::int64_t i = op == CUBLAS_OP_N ? row : column, j = op == CUBLAS_OP_N ? column : row;
        REQUIRE(i < shape[0]);
        REQUIRE(j < shape[1]);
        REQUIRE(shape[2] >= shape[0]);
        return of[static_cast<std::size_t>(from + j * shape[2] + i)];
    };
    for (std::int64_t z = 0; z < p.batch; ++z) {
        for (std::int64_t j = 0; j < p.m; ++j) {
            for (std::int64_t i = 0; i < p.n; ++i) {
                float& d = out[static_cast<std::size_t>(z * p.c_batch + j * with.out_step + i)];
                float sum = p.add ? d : 0;
                for (std::int64_t q = 0; q < p.k; ++q) {
                    sum += element(b, with.first, with.first_shape, i, q, z * p.b_batch) *
                           element(a, with.second, with.second_shape, q, j, z * p.a_batch);
                }
                d = sum;
            }
        }
    }
    return out;
}

} // namespace

TEST_CASE("products of a training step, as cublasLt is told of them, are those products") {
    const training::product forward{5, 7, 6, 6, 1, 1, 6, 7};
    const training::product input{5, 6, 7, 7, 1, 6, 1, 6};
    const training::product weight{7, 6, 5, 1, 7, 6, 1, 6, true};
    const training::product scores{4, 4, 3, 18, 1, 1, 18, 4, false, 2, 3, 3, 16};
    const training::product attended{4, 3, 4, 4, 1, 18, 1, 6, false, 2, 16, 3, 3};
    const training::product transposed{4, 3, 4, 1, 4, 18, 1, 18, false, 2, 16, 3, 3};
    for (const training::product& p : {forward, input, weight, scores, attended, transposed}) {
        std::vector<float> a(100), b(100), out(100);
        for (std::size_t i = 0; i < a.size(); ++i) {
            a[i] = workload::random::normal(1, i);
            b[i] = workload::random::normal(2, i);
            out[i] = workload::random::normal(3, i);
        }
        std::vector<float> expected = out;
        training::plain_products().multiply(p, a.data(), b.data(), expected.data());
        const std::vector<float> found = by_columns(p, a, b, out);
        for (std::size_t i = 0; i < out.size(); ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-4));
    }
}

TEST_CASE("alignments that cublasLt may rely on") {
    const auto at = [](std::uintptr_t address) { return reinterpret_cast<const void*>(address); };
    CHECK(cuda::alignment_of(at(0x1000), 0) == 256);
    CHECK(cuda::alignment_of(at(0x1040), 0) == 64);
    CHECK(cuda::alignment_of(at(0x1000), 64) == 64);
    CHECK(cuda::alignment_of(at(0x1002), 128) == 2);
    CHECK(cuda::alignment_of(nullptr, 0) == 256);
}
