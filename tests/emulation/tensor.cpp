// SPDX-License-Identifier: Apache-2.0
#include "plumbline/cuda/kernels/tensor.cuh"

#include <cmath>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/workload/gemm_reference.hpp"
#include "plumbline/workload/projection.hpp"

using namespace plumbline;
namespace kernels = plumbline::cuda::kernels;
using kernels::storage;

TEST_CASE("inputs are those of the reference, bit by bit, and nothing is written behind them") {
    for (const auto& [as, type] : {std::pair{storage::fp32, workload::dtype::fp32},
                                   {storage::fp16, workload::dtype::fp16},
                                   {storage::bf16, workload::dtype::bf16},
                                   {storage::fp8, workload::dtype::fp8},
                                   {storage::int8, workload::dtype::int8}}) {
        for (std::uint64_t count : {1u, 255u, 257u}) {
            std::vector<unsigned char> data(count * workload::input_bytes(type));
            kernels::fill_normal(nullptr, data.data(), as, count, 77);
            std::vector<std::int64_t> all(count);
            std::vector<double> values(count);
            for (std::uint64_t i = 0; i < count; ++i) all[i] = static_cast<std::int64_t>(count - 1 - i);
            kernels::gather(nullptr, data.data(), as, all.data(), count, values.data());
            for (std::uint64_t i = 0; i < count; ++i) {
                CHECK(values[i] == workload::gemm::input_value(type, 77, count - 1 - i));
            }
        }
    }
}

TEST_CASE("poison and what is not finite is counted") {
    std::vector<float> data(1000, 1.0f);
    data[0] = data[999] = NAN;
    data[500] = INFINITY;
    std::uint64_t bad = 0;
    kernels::count_unwritten(nullptr, data.data(), storage::fp32, 1000, &bad);
    CHECK(bad == 3);
    std::vector<int> integers(1000, workload::poisoned_int32);
    integers[3] = 0;
    bad = 0;
    kernels::count_unwritten(nullptr, integers.data(), storage::int32, 1000, &bad);
    CHECK(bad == 999);
}

TEST_CASE("the hash sees every bit and the order") {
    std::vector<std::uint16_t> data(777);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint16_t>(i * 31);
    const auto hash = [&] {
        std::uint64_t sum = 0;
        kernels::hash(nullptr, data.data(), data.size() * 2, &sum);
        return sum;
    };
    const std::uint64_t first = hash();
    CHECK(hash() == first);
    std::swap(data[1], data[2]);
    CHECK(hash() != first);
    std::swap(data[1], data[2]);
    data[776] ^= 1u;
    CHECK(hash() != first);
}

TEST_CASE("a projection is that of the host, however rows and columns lie in memory") {
    std::vector<float> data(40000);
    kernels::fill_normal(nullptr, data.data(), storage::fp32, data.size(), 5);
    const auto element = [&](std::size_t i) { return static_cast<double>(data[i]); };
    for (const workload::matrix_view& view :
         {workload::matrix_view{7, 2100, 1, 8, 2, 20000}, workload::matrix_view{7, 2100, 2101, 1, 2, 20000},
          workload::matrix_view{300, 33, 1, 301, 1, 0}, workload::matrix_view{300, 33, 34, 1, 1, 0},
          workload::matrix_view{1, 1, 1, 1, 1, 1}, workload::matrix_view{5, 1, 1, 5, 4, 5}}) {
        CAPTURE(view.rows);
        CAPTURE(view.row_stride);
        const std::vector<double> shared = workload::random_signs(view.columns);
        std::vector<double> own = workload::random_signs(view.batch * view.columns);
        for (std::size_t i = 0; i < own.size(); ++i) own[i] *= 1.0 + static_cast<double>(i);
        for (const bool one_for_all : {true, false}) {
            const std::vector<double>& x = one_for_all ? shared : own;
            const std::vector<double> expected = workload::project(view, element, x);
            std::vector<double> found(expected.size());
            kernels::project(nullptr, data.data(), storage::fp32, view, x.data(), one_for_all ? 0 : view.columns,
                             found.data());
            for (std::size_t i = 0; i < found.size(); ++i)
                CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-12));
        }
    }
}
