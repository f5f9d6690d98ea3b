// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include "device.hpp"
#include "plumbline/cuda/inspect.hpp"
#include "plumbline/workload/projection.hpp"

using namespace plumbline;
using workload::dtype;

namespace {

std::size_t element_bytes(cuda::kernels::storage as) {
    using cuda::kernels::storage;
    return as == storage::fp32 || as == storage::int32 ? 4 : as == storage::fp16 || as == storage::bf16 ? 2 : 1;
}

} // namespace

TEST_CASE("inputs made on the device are those of the host generator, bit for bit") {
    cuda::backend& on = device();
    const std::int64_t count = 100003;
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(i);
    for (dtype type : workload::all_dtypes) {
        CAPTURE(workload::name(type));
        const auto as = cuda::input_storage(type);
        const cuda::device_memory data(static_cast<std::size_t>(count) * element_bytes(as));
        cuda::kernels::fill_normal(on.stream(), data.data(), as, static_cast<std::uint64_t>(count), 0x6131);
        const std::vector<double> made = cuda::gather(on, data.data(), as, all);
        std::size_t wrong = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            const auto at = static_cast<std::uint64_t>(i);
            if (made[at] != workload::gemm::input_value(type, 0x6131, at)) ++wrong;
        }
        CHECK(wrong == 0);
    }
    CHECK_THROWS_AS(cuda::kernels::fill_normal(on.stream(), nullptr, cuda::kernels::storage::int32, 1, 1), error);
}

TEST_CASE("every element that nothing wrote is found, and a NaN or an infinity too") {
    cuda::backend& on = device();
    const std::uint64_t count = 10007;
    for (dtype type : workload::all_dtypes) {
        CAPTURE(workload::name(type));
        const auto as = cuda::output_storage(type);
        const cuda::device_memory data(count * element_bytes(as));
        const auto require = [&] { cuda::require_written(on, "it", data.data(), as, count); };
        cuda::poison(on, data.data(), data.size(), type);
        CHECK_THROWS_WITH_AS(require(), doctest::Contains("10007 of 10007 elements"), verification_error);
        REQUIRE(cudaMemsetAsync(data.data(), 0, data.size(), on.stream()) == cudaSuccess);
        CHECK_NOTHROW(require());
        char* const last = data.as<char>() + data.size() - element_bytes(as);
        cuda::poison(on, last, element_bytes(as), type);
        CHECK_THROWS_WITH_AS(require(), doctest::Contains("1 of 10007 elements"), verification_error);
    }
    const float infinity = std::numeric_limits<float>::infinity();
    const cuda::device_memory one(sizeof infinity);
    REQUIRE(cudaMemcpy(one.data(), &infinity, sizeof infinity, cudaMemcpyHostToDevice) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    CHECK_THROWS_AS(cuda::require_written(on, "it", one.data(), cuda::kernels::storage::fp32, 1), verification_error);
}

TEST_CASE("the hash sees each bit and the order") {
    cuda::backend& on = device();
    std::vector<std::uint16_t> values(5000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i * 7);
    const cuda::device_memory data(values.size() * 2);
    const auto hash_of = [&](const std::vector<std::uint16_t>& what) {
        REQUIRE(cudaMemcpy(data.data(), what.data(), data.size(), cudaMemcpyHostToDevice) == cudaSuccess);
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
        return cuda::hash(on, data.data(), data.size());
    };
    const std::string original = hash_of(values);
    CHECK(original.size() == 16);
    CHECK(hash_of(values) == original);
    auto flipped = values;
    flipped[4999] = static_cast<std::uint16_t>(flipped[4999] ^ 0x8000u);
    CHECK(hash_of(flipped) != original);
    auto swapped = values;
    std::swap(swapped[10], swapped[11]);
    CHECK(hash_of(swapped) != original);
}

TEST_CASE("a buffer times a vector is what the host makes of it, for rows and columns that lie together in memory") {
    cuda::backend& on = device();
    const std::int64_t count = 300 * 1200;
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(i);
    for (dtype type : workload::all_dtypes) {
        CAPTURE(workload::name(type));
        const auto as = cuda::input_storage(type);
        const cuda::device_memory data(static_cast<std::size_t>(count) * element_bytes(as));
        cuda::kernels::fill_normal(on.stream(), data.data(), as, static_cast<std::uint64_t>(count), 0x6131);
        const std::vector<double> values = cuda::gather(on, data.data(), as, all);
        for (const workload::matrix_view& view :
             {workload::matrix_view{300, 1200, 1, 300, 1, count}, workload::matrix_view{300, 1200, 1200, 1, 1, count},
              workload::matrix_view{7, 1100, 1, 8, 3, 10000}, workload::matrix_view{7, 1100, 1101, 1, 3, 10000},
              workload::matrix_view{1, 1, 1, 1, 1, 1}, workload::matrix_view{5, 1, 1, 5, 4, 5}}) {
            CAPTURE(view.rows);
            CAPTURE(view.row_stride);
            const std::vector<double> shared = workload::random_signs(view.columns);
            std::vector<double> own = workload::random_signs(view.batch * view.columns);
            for (std::size_t i = 0; i < own.size(); ++i) own[i] *= 1.0 + static_cast<double>(i);
            for (const std::vector<double>& x : {shared, own}) {
                const auto expected = workload::project(
                    view, [&](std::size_t i) { return values[i]; }, x);
                const auto found = cuda::project(on, data.data(), as, view, x);
                REQUIRE(found.size() == expected.size());
                CHECK(workload::compare_outputs(found, expected).relative_norm < 1e-13);
            }
        }
    }
}
