// SPDX-License-Identifier: Apache-2.0
// The kernels themselves are in norm_forward.cpp and norm_backward.cpp.
#include "emulation.hpp"

#include <cstdlib>
#include <memory>

#include "../cuda/norm_harness.hpp"

using namespace norm_test;

namespace {

/// Memory of exactly the size asked for, so that the sanitizer sees an access behind it.
class host_memory {
public:
    void* place(const bytes& content) {
        void* at = nullptr;
        REQUIRE(posix_memalign(&at, 16, content.size()) == 0);
        std::memcpy(at, content.data(), content.size());
        kept_.emplace_back(at, &std::free);
        return at;
    }
    bytes read(void* from, std::size_t count) {
        const auto* at = static_cast<unsigned char*>(from);
        return {at, at + count};
    }
    cudaStream_t stream() { return nullptr; }

private:
    std::vector<std::unique_ptr<void, void (*)(void*)>> kept_;
};

constexpr int small_device = 2; // multiprocessors

void check(dtype type, bool rms, std::int64_t rows, std::int64_t hidden, rows_like like = rows_like::normal,
           double tolerance = 0) {
    CAPTURE(std::string(workload::name(type)));
    CAPTURE(rms);
    CAPTURE(rows);
    CAPTURE(hidden);
    const norm_case in = make_case(type, rms, rows, hidden, like);
    const std::size_t element = workload::input_bytes(type);
    {
        host_memory memory;
        check_forward(memory, in, kernels::plan_forward(rows, hidden, element, small_device), tolerance);
    }
    host_memory memory;
    check_backward(memory, in, kernels::plan_backward(rows, hidden, element, small_device), rms ? dtype::fp32 : type,
                   tolerance);
}

constexpr dtype types[] = {dtype::fp32, dtype::fp16, dtype::bf16};

} // namespace

TEST_CASE("norms: sizes that are no multiple of anything, every dtype") {
    std::size_t turn = 0;
    for (std::int64_t hidden : {1, 2, 3, 7, 31, 32, 33, 127, 255, 768, 1000, 1023}) {
        for (dtype type : types) {
            // Each size meets every schedule, and each dtype both norms.
            emulation::use(emulation::schedules()[turn % emulation::schedules().size()]);
            check(type, turn % 2 == 1, hidden < 256 ? 9 : 3, hidden);
            ++turn;
        }
    }
}

TEST_CASE("norms: every kernel there is, with more rows than groups") {
    std::size_t turn = 0;
    const auto next = [&] { emulation::use(emulation::schedules()[turn++ % emulation::schedules().size()]); };
    for (dtype type : types) {
        const std::size_t element = workload::input_bytes(type);
        const auto each = [&](const auto& shapes, bool backward) {
            for (const kernels::norm_shape& shape : shapes) {
                // Fewer than 512 threads show what fp16 does; the rest is the same code.
                if (type == dtype::fp16 && shape.threads > 256) continue;
                // Almost all it holds, with rows that begin in the middle of a unit, and several rows for each group.
                const auto hidden = static_cast<std::int64_t>(shape.capacity() * 16 / element) -
                                    kernels::elements_per_unit(element) / 2;
                const std::int64_t rows = shape.threads == 32 ? 9 : shape.capacity() > 1024 ? 3 : 5;
                kernels::norm_shape few = shape;
                few.blocks_per_sm = 1;
                const kernels::norm_plan plan = kernels::norm_plan_of(few, rows, hidden, element, 1);
                CAPTURE(shape.threads);
                CAPTURE(shape.units);
                CAPTURE(plan.blocks);
                const norm_case in = make_case(type, turn % 3 == 0, rows, hidden);
                next();
                host_memory memory;
                if (backward)
                    check_backward(memory, in, plan, type);
                else
                    check_forward(memory, in, plan);
            }
        };
        if (element == 4) {
            each(kernels::forward_shapes<4>, false);
            each(kernels::backward_shapes<4>, true);
        } else {
            each(kernels::forward_shapes<2>, false);
            each(kernels::backward_shapes<2>, true);
        }
    }
}

TEST_CASE("norms: rows that registers do not hold") {
    emulation::use(emulation::schedules()[2]);
    const norm_case in = make_case(dtype::bf16, false, 3, 2050);
    const kernels::norm_plan plan = kernels::long_rows_plan(in.rows, 1);
    CHECK(plan.blocks == 2);
    host_memory memory;
    check_forward(memory, in, plan);
    check_backward(memory, in, plan, dtype::bf16);
    const norm_case rms = make_case(dtype::fp32, true, 3, 1100);
    check_forward(memory, rms, plan);
    check_backward(memory, rms, plan, dtype::fp32);
}

TEST_CASE("norms: mean 1000, tiny, huge and constant rows, and one large element") {
    emulation::use(emulation::schedules()[0]);
    for (dtype type : types) {
        for (rows_like like : {rows_like::far, rows_like::tiny, rows_like::one_large}) {
            CAPTURE(static_cast<int>(like));
            // At mean 1000 the last bit of an fp32 x - m is 6e-5 of the deviation.
            check(type, false, 3, 509, like, like == rows_like::far ? std::max(1e-4, workload::tolerance(type)) : 0);
            check(type, true, 3, 512, like);
        }
        if (type != dtype::fp16) check(type, false, 3, 509, rows_like::huge); // 65504 is the end of fp16
        const norm_case same = make_case(type, false, 4, 1000, rows_like::constant);
        host_memory memory;
        const auto got = run_forward(memory, same, kernels::plan_forward(4, 1000, workload::input_bytes(type), 2));
        for (std::size_t i = 0; i < got.y.size(); ++i) {
            CHECK(got.y[i] == doctest::Approx(same.beta[i % 1000]).epsilon(1e-3));
        }
    }
}

TEST_CASE("norms: two backward passes give the same bits, whatever the order of threads and blocks") {
    for (std::int64_t hidden : {255, 1031, 1280}) {
        const norm_case in = make_case(dtype::bf16, false, 20, hidden);
        const kernels::norm_plan plan = kernels::plan_backward(20, hidden, 2, 1);
        bytes first;
        for (const emulation::schedule& how : emulation::schedules()) {
            emulation::use(how);
            host_memory memory;
            const bytes bits = run_backward(memory, in, plan, dtype::bf16).bits;
            if (first.empty()) first = bits;
            CHECK(bits == first);
        }
    }
}

TEST_CASE("norms: any number of stages gives the same bits") {
    emulation::use(emulation::schedules()[1]);
    const norm_case in = make_case(dtype::fp16, false, 9, 1500);
    bytes first;
    for (unsigned stages = 1; stages <= kernels::most_norm_stages; ++stages) {
        kernels::norm_plan plan = kernels::plan_forward(9, 1500, 2, 1);
        plan.stages = stages;
        host_memory memory;
        const bytes bits = run_forward(memory, in, plan).y_bits;
        if (first.empty()) first = bits;
        CHECK(bits == first);
    }
}

TEST_CASE("norms: what the kernels cannot do is refused") {
    host_memory memory;
    norm_case in = make_case(dtype::fp32, false, 2, 8);
    kernels::norm_plan plan = kernels::plan_forward(2, 8, 4, 1);
    plan.units = 5;
    CHECK_THROWS_WITH_AS(run_forward(memory, in, plan), doctest::Contains("no kernel has 32 threads a row and 5 units"),
                         error);
    plan = kernels::plan_forward(2, 8, 4, 1);
    plan.stages = 9;
    CHECK_THROWS_AS(run_forward(memory, in, plan), error);
    // Rows of 9 begin at every offset, which a stride of 4 does not keep.
    CHECK_THROWS_WITH_AS(run_backward(memory, in, {32, 2, 0, 1}, dtype::fp32), doctest::Contains("and no stages"),
                         error);
    const norm_case odd = make_case(dtype::fp16, false, 20, 9);
    CHECK_THROWS_WITH_AS(run_forward(memory, odd, {32, 1, 1, 1}), doctest::Contains("is not for rows of 9"), error);
    kernels::norm how = arguments(in);
    alignas(16) float data[16] = {};
    const auto start = [&](const void* x) {
        kernels::norm_forward(nullptr, how, kernels::plan_forward(2, 8, 4, 1), x, data, data, data, data, data);
    };
    CHECK_THROWS_WITH_AS(start(data + 1), doctest::Contains("16-byte boundary"), error);
    how.hidden = 65537;
    CHECK_THROWS_WITH_AS(start(data), doctest::Contains("1 to 65536"), error);
    how = arguments(in);
    how.rows = (std::int64_t{1} << 30) + 1;
    CHECK_THROWS_WITH_AS(start(data), doctest::Contains("1 to 2^30 rows"), error);
    how = arguments(in);
    CHECK_THROWS_WITH_AS(kernels::norm_backward(nullptr, how, kernels::plan_backward(2, 8, 4, 1), data, data, data,
                                                data, data, data, how.type, data, data, data + 1),
                         doctest::Contains("the workspace does not begin"), error);
    how = arguments(in);
    how.type = kernels::storage::int8;
    CHECK_THROWS_AS(start(data), error);
}
