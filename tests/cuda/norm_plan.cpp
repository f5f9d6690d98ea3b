// SPDX-License-Identifier: Apache-2.0
#include <initializer_list>

#include <doctest/doctest.h>

#include "plumbline/cuda/norm_plan.hpp"

using namespace plumbline::cuda::kernels;

namespace {

/// What every plan must satisfy on a device of `sms` multiprocessors.
void check(const norm_plan& plan, std::int64_t rows, std::int64_t hidden, std::size_t element, unsigned tensors) {
    CAPTURE(rows);
    CAPTURE(hidden);
    CAPTURE(element);
    REQUIRE(plan.blocks >= 1);
    CHECK(plan.block_threads() <= 1024);
    if (plan.threads == 0) return;
    CHECK(units_of_row(hidden, element) <= std::uint64_t{plan.threads} * plan.units);
    // A thread owns the same columns in all of its rows.
    const std::int64_t groups = std::int64_t{plan.blocks} * plan.groups();
    CHECK((plan.stages == 0 ? groups >= rows : groups % offset_period(hidden, element) == 0));
    CHECK(suits(plan, rows, hidden, element));
    // 227 KiB is the most that an H200 gives a block, less 2 KiB of static memory.
    CHECK(stage_bytes(plan, tensors) <= 225u << 10);
    if (tensors == 2) CHECK(plan.stages >= 1);
    CHECK(plan.stages <= most_norm_stages);
}

} // namespace

TEST_CASE("every row fits its plan, for each width, offset and number of rows") {
    for (std::size_t element : {2u, 4u}) {
        for (std::int64_t hidden = 1; hidden <= 65536; hidden += hidden < 1100 ? 1 : 997) {
            for (std::int64_t rows : {1, 3, 1000, 65536}) {
                check(plan_forward(rows, hidden, element, 132), rows, hidden, element, 1);
                check(plan_backward(rows, hidden, element, 132), rows, hidden, element, 2);
                check(plan_forward(rows, hidden, element, 1), rows, hidden, element, 1);
            }
        }
    }
}

TEST_CASE("units of a row count both ends, at the worst offset that occurs") {
    CHECK(units_of_row(4096, 2) == 512);
    CHECK(units_of_row(4095, 2) == 513); // offsets 0 to 7
    CHECK(units_of_row(4092, 2) == 512); // offsets 0 and 4
    CHECK(units_of_row(1, 4) == 1);
    CHECK(units_of_row(2, 2) == 1);
    CHECK(units_of_row(3, 2) == 2); // from 7 on
    CHECK(offset_period(4096, 2) == 1);
    CHECK(offset_period(4095, 2) == 8);
    CHECK(offset_period(4092, 2) == 2);
    CHECK(offset_period(4095, 4) == 4);
}

TEST_CASE("the plans of the standard suite fill the device, and few rows get few blocks") {
    CHECK(plan_forward(16384, 4096, 2, 132) == norm_plan{128, 4, 1, 660});
    CHECK(plan_backward(16384, 4096, 2, 132) == norm_plan{256, 2, 2, 396});
    CHECK(plan_forward(65536, 768, 2, 132) == norm_plan{32, 3, 0, 16384});
    CHECK(plan_backward(65536, 768, 2, 132) == norm_plan{32, 3, 2, 528});
    CHECK(plan_forward(8192, 4095, 2, 132).blocks % 8 == 0);
    CHECK(plan_forward(1, 4096, 2, 132).blocks == 1);
    CHECK(plan_forward(5, 768, 2, 132).blocks == 2); // four rows a block
    CHECK(plan_forward(4, 65536, 4, 132).threads == 0);
    CHECK(plan_forward(4, 65536, 2, 132).threads == 1024);
    CHECK(plan_backward(4, 65536, 2, 132).threads == 0);
}

TEST_CASE("the workspace has a place for each column of each block, and no two kernels have the same shape") {
    CHECK(partial_elements({256, 2, 3, 10}, 4096, 2) == 10u * 2 * 4096);
    CHECK(partial_elements({512, 2, 3, 10}, 4096, 4) == 10u * 2 * 4096);
    CHECK(partial_elements({256, 3, 3, 8}, 4095, 2) == 8u * 2 * 513 * 8); // whole units
    CHECK(partial_elements({32, 4, 3, 10}, 767, 2) == 10u * 2 * 768);     // columns in order, whole float4
    CHECK(partial_elements(long_rows_plan(10, 1), 65535, 2) == 2u * 2 * 65536);
    const auto differ = [](const auto& shapes) {
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                CHECK((shapes[i].threads != shapes[j].threads || shapes[i].units != shapes[j].units ||
                       (shapes[i].stages == 0) != (shapes[j].stages == 0)));
            }
        }
    };
    differ(forward_shapes<2>);
    differ(forward_shapes<4>);
    differ(backward_shapes<2>);
    differ(backward_shapes<4>);
}

TEST_CASE("less shared memory means fewer stages, and too little the kernel for long rows") {
    const norm_plan wide = plan_backward(4096, 16384, 2, 132);
    CHECK(wide == norm_plan{1024, 2, 2, 132});
    CHECK(fitted(wide, 2, 227u << 10, 4096, 132) == wide);
    CHECK(fitted({1024, 2, 3, 132}, 2, 163u << 10, 4096, 132) == wide);
    CHECK(fitted(wide, 2, 99u << 10, 4096, 132) == norm_plan{1024, 2, 1, 132});
    CHECK(fitted(wide, 2, 64u << 10, 4096, 132) == long_rows_plan(4096, 132));
}

TEST_CASE("a plan that does not keep the offset of its rows, or does not hold them, does not suit") {
    CHECK(suits({32, 1, 1, 2}, 20, 9, 2));
    CHECK_FALSE(suits({32, 1, 1, 1}, 20, 9, 2));
    CHECK(suits({32, 1, 1, 1}, 4, 9, 2)); // one row for each group
    CHECK_FALSE(suits({32, 1, 1, 1}, 4, 257, 2));
    CHECK(suits({32, 1, 0, 1}, 4, 8, 2)); // without stages there is a group for each row
    CHECK_FALSE(suits({32, 1, 0, 1}, 5, 8, 2));
    CHECK_FALSE(suits({32, 1, 1, 0}, 4, 8, 2));
    CHECK_FALSE(suits({32, 1, most_norm_stages + 1, 1}, 4, 8, 2));
    CHECK_FALSE(suits({32, 1, 1, 0}, 4, 8, 2));
}
