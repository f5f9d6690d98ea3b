// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "plumbline/cuda/catalogue.hpp"
#include "plumbline/measure/self_test.hpp"

using namespace plumbline;

static_assert(measure::backend<cuda::backend>);
static_assert(measure::spinner<cuda::backend>);

TEST_CASE("the mean clock is the median over multiprocessors that were read before and after") {
    using mark = cuda::kernels::clock_mark;
    const mark before[] = {{1000, 500}, {1000, 900}, {0, 0}, {1000, 100}, {2000, 7}};
    const mark after[] = {{2000, 2480}, {3000, 4860}, {5000, 99}, {2000, 1100}, {1000, 9}};
    const auto clock = cuda::mean_clock_mhz(before, after, 5);
    REQUIRE(clock.has_value());
    CHECK(*clock == doctest::Approx(1980.0)); // of 1980, 1980 and 1000; the other two have no pair
    CHECK_FALSE(cuda::mean_clock_mhz(before + 2, after + 2, 1).has_value());
    CHECK_FALSE(cuda::mean_clock_mhz(before, after, 0).has_value());
}

TEST_CASE("cold slots cover three times the L2, within 2 to 64 sets and 2 GiB") {
    constexpr std::size_t l2 = std::size_t{60} << 20;
    CHECK(cuda::cold_slots(std::size_t{100} << 20, l2) == 8);
    CHECK(cuda::cold_slots(std::size_t{6} << 20, l2) == 30);
    CHECK(cuda::cold_slots(1, l2) == 64);
    CHECK(cuda::cold_slots(0, l2) == 64);
    CHECK(cuda::cold_slots(std::size_t{3} << 30, l2) == 2);
    CHECK(cuda::cold_slots(std::size_t{600} << 20, std::size_t{1} << 30) == 3);
}

TEST_CASE("without a device the backend refuses with a precondition, not a crash") {
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return;
    static_cast<void>(cudaGetLastError());
    try {
        cuda::backend here;
        FAIL("it opened a device");
    } catch (const environment_error& failure) {
        CHECK(failure.code() == exit_code::precondition);
        CHECK(std::string(failure.what()).find("CUDA cannot start") == 0);
    }
}
