// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "../norm_harness.hpp"
#include "device.hpp"
#include "plumbline/cuda/catalogue.hpp"
#include "plumbline/stats/descriptive.hpp"

using namespace norm_test;
using namespace std::chrono_literals;

namespace {

/// Device memory for the harness.
class device_pool {
public:
    void* place(const bytes& content) {
        kept_.emplace_back(content.size());
        cuda::check(
            cudaMemcpyAsync(kept_.back().data(), content.data(), content.size(), cudaMemcpyHostToDevice, stream()),
            "cudaMemcpyAsync");
        device().synchronize(); // the content is a temporary of the caller
        return kept_.back().data();
    }
    bytes read(void* from, std::size_t count) {
        bytes content(count);
        cuda::check(cudaMemcpyAsync(content.data(), from, count, cudaMemcpyDeviceToHost, stream()), "cudaMemcpyAsync");
        device().synchronize();
        return content;
    }
    cudaStream_t stream() { return device().stream(); }

private:
    std::vector<cuda::device_memory> kept_;
};

constexpr dtype types[] = {dtype::fp32, dtype::fp16, dtype::bf16};

layernorm::params parameters(const std::string& pass, dtype type, std::int64_t rows, std::int64_t hidden) {
    return layernorm::parse("layernorm/" + pass + '/' + std::string(workload::name(type)) + "/r" +
                            std::to_string(rows) + 'h' + std::to_string(hidden) + "/native");
}

kernels::norm_plan forward_plan(const norm_case& in) {
    return kernels::plan_forward(in.rows, in.hidden, workload::input_bytes(in.type), device().device().sm_count);
}
kernels::norm_plan backward_plan(const norm_case& in) {
    return kernels::plan_backward(in.rows, in.hidden, workload::input_bytes(in.type), device().device().sm_count);
}

} // namespace

TEST_CASE(
    "norms: every dtype, pass and size of the grid is within the tolerance, and the backward repeats bit by bit") {
    std::vector<std::int64_t> sizes{1,    2,    3,    7,    31,   32,   33,    127,   255,   768,  1000,
                                    1023, 1024, 4095, 4096, 5120, 8192, 12288, 16384, 65535, 65536};
    std::vector<std::int64_t> rows{1, 3, 1000};
    if (small_tests()) {
        sizes = {1, 7, 33, 255, 768, 1023, 4095, 8192, 65536};
        rows = {1, 37};
    }
    std::size_t checked = 0;
    for (std::int64_t hidden : sizes) {
        for (std::int64_t row_count : rows) {
            for (dtype type : types) {
                for (const char* pass : {"fwd", "bwd", "rms_fwd", "rms_bwd"}) {
                    const auto p = parameters(pass, type, row_count, hidden);
                    const std::string id = layernorm::id(p);
                    CAPTURE(id);
                    cuda::native_norm norm(device(), p, 1);
                    CHECK_NOTHROW(norm.verify(device()));
                    CHECK(norm.output_hash(device()) == norm.output_hash(device()));
                    ++checked;
                }
            }
        }
    }
    std::printf("  %zu norms verified\n", checked);
}

// For compute-sanitizer's racecheck, which is too slow for the rest.
TEST_CASE("norms: a small set for racecheck: one block of every kernel, aligned and not") {
    for (dtype type : {dtype::fp32, dtype::bf16}) {
        const std::size_t element = workload::input_bytes(type);
        const auto each = [&](const auto& shapes, bool backward) {
            for (const kernels::norm_shape& shape : shapes) {
                const auto full = static_cast<std::int64_t>(shape.capacity() * 16 / element);
                for (std::int64_t hidden : {full, full - kernels::elements_per_unit(element) - 1}) {
                    // Several rows for each group; the wide ones aligned only.
                    if (hidden > 65536 || (hidden < full && shape.threads > 128)) continue;
                    CAPTURE(shape.threads);
                    CAPTURE(hidden);
                    const norm_case in = make_case(type, false, shape.threads == 32 ? 9 : 3, hidden);
                    kernels::norm_shape few = shape;
                    few.blocks_per_sm = 1;
                    const kernels::norm_plan plan = kernels::norm_plan_of(few, in.rows, hidden, element, 1);
                    device_pool memory;
                    if (backward)
                        check_backward(memory, in, plan, type);
                    else
                        check_forward(memory, in, plan);
                }
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

TEST_CASE("norms: every kernel there is, at sizes that fill it, aligned and not") {
    const int sms = small_tests() ? 1 : device().device().sm_count;
    for (dtype type : types) {
        const std::size_t element = workload::input_bytes(type);
        const auto each = [&](const auto& shapes, bool backward) {
            for (const kernels::norm_shape& shape : shapes) {
                for (std::int64_t less : {std::int64_t{0}, kernels::elements_per_unit(element) + 1}) {
                    const auto hidden = static_cast<std::int64_t>(shape.capacity() * 16 / element) - less;
                    if (hidden > 65536) continue;
                    CAPTURE(shape.threads);
                    CAPTURE(shape.units);
                    CAPTURE(hidden);
                    const auto p = parameters(backward ? "bwd" : "fwd", type, small_tests() ? 19 : 700, hidden);
                    cuda::native_norm norm(device(), p, 1);
                    norm.use(kernels::norm_plan_of(shape, p.rows, hidden, element, sms));
                    CHECK_NOTHROW(norm.verify(device()));
                }
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

TEST_CASE("norms: mean 1000, tiny, huge and constant rows, and one large element, against float64 everywhere") {
    for (dtype type : types) {
        for (std::int64_t hidden : {509, 1024, 4095}) {
            for (rows_like like : {rows_like::far, rows_like::tiny, rows_like::one_large, rows_like::huge}) {
                if (type == dtype::fp16 && like == rows_like::huge) continue; // 65504 is the end of fp16
                CAPTURE(static_cast<int>(like));
                CAPTURE(hidden);
                // At mean 1000 the last bit of an fp32 x - m is 6e-5 of the deviation.
                const double tolerance = like == rows_like::far ? std::max(1e-4, workload::tolerance(type)) : 0;
                const norm_case in = make_case(type, false, 5, hidden, like);
                device_pool memory;
                check_forward(memory, in, forward_plan(in), tolerance);
                check_backward(memory, in, backward_plan(in), type, tolerance);
            }
            const norm_case same = make_case(type, false, 4, hidden, rows_like::constant);
            device_pool memory;
            const auto got = run_forward(memory, same, forward_plan(same));
            for (std::size_t i = 0; i < got.y.size(); ++i) {
                const double beta = same.beta[i % static_cast<std::size_t>(hidden)];
                if (std::abs(got.y[i] - beta) > 2e-3 * (1 + std::abs(beta))) FAIL("a constant row is not beta");
            }
        }
    }
}

TEST_CASE("norms: a wrong result is caught, in the first and in the last buffer set") {
    for (const char* pass : {"fwd", "bwd", "rms_fwd", "rms_bwd"}) {
        for (std::size_t slot : {0u, 2u}) {
            CAPTURE(pass);
            cuda::native_norm norm(device(), parameters(pass, dtype::bf16, 64, 1000), 3);
            CHECK_NOTHROW(norm.verify(device()));
            // One column of x is 0: a thousandth of the input.
            REQUIRE(cudaMemset2D(norm.data().x(slot), 2000, 0, 2, 64) == cudaSuccess);
            REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
            CHECK_THROWS_AS(norm.verify(device()), verification_error);
        }
    }
}

namespace {

/// Median time of one launch, ns, from bursts at the reference clock.
template <class Kernel>
double time_ns(Kernel& kernel, std::size_t slots) {
    cuda::backend& on = device();
    measure::recording_request how{1, slots, true};
    const auto one = [&](std::size_t slot) { kernel.run(on, slot); };
    auto probe = on.record(one, how);
    const double first = on.play(probe, 3).back().elapsed_ns;
    how.launches = static_cast<std::size_t>(std::clamp(200e3 / first, 1.0, 64.0));
    auto tape = on.record(one, how);
    on.idle(150ms);
    std::vector<double> times;
    const auto samples =
        static_cast<std::size_t>(std::clamp(6e6 / (first * static_cast<double>(how.launches)), 5.0, 25.0));
    for (const measure::sample& each : on.play(tape, samples)) {
        times.push_back(each.elapsed_ns / static_cast<double>(how.launches));
    }
    times.erase(times.begin()); // the clock still ramps up
    return stats::median(times);
}

struct target {
    const char* id;
    double copy_fraction; ///< of the speed of our copy kernel moving the same bytes
};

} // namespace

// With PLUMBLINE_NORM_VARIANTS=1 also prints the time of every other way to divide the work.
TEST_CASE("norms: fraction of the speed of our copy kernel moving the same bytes") {
    if (small_tests()) return;
    const char* asked = std::getenv("PLUMBLINE_NORM_VARIANTS");
    const bool variants = asked != nullptr && std::string(asked) != "0";
    cuda::backend& on = device();
    // At the least; the aims are 90/80, 80/65 and 70/50 %.
    for (const target& each : {target{"fwd/bf16/r16384h4096", 0.85}, target{"bwd/bf16/r16384h4096", 0.70},
                               target{"fwd/bf16/r8192h8192", 0.85}, target{"bwd/bf16/r8192h8192", 0.70},
                               target{"fwd/bf16/r4096h16384", 0.85}, target{"bwd/bf16/r4096h16384", 0.70},
                               target{"fwd/bf16/r65536h768", 0.80}, target{"bwd/bf16/r65536h768", 0.65},
                               target{"fwd/bf16/r1024h12288", 0.70}, target{"bwd/bf16/r1024h12288", 0.50},
                               target{"fwd/bf16/r8192h4095", 0.70}, target{"bwd/bf16/r8192h4095", 0.50},
                               target{"fwd/fp32/r16384h4096", 0.85}, target{"bwd/fp32/r16384h4096", 0.70},
                               target{"fwd/fp32/r4096h16384", 0.85}, target{"bwd/fp32/r4096h16384", 0.70},
                               target{"rms_fwd/bf16/r16384h4096", 0.85}, target{"rms_bwd/bf16/r16384h4096", 0.70}}) {
        const auto p = layernorm::parse(std::string("layernorm/") + each.id + "/native");
        const std::size_t slots = cuda::native_norm::slots(on, p);
        cuda::native_norm norm(on, p, slots);
        norm.verify(on);
        auto copy = workload::probe::of(workload::probe::kind::canary_copy);
        copy.bytes = static_cast<std::int64_t>(layernorm::bytes(p) / 2) / 16 * 16; // read and written
        const std::size_t copy_slots = cuda::copy_probe::slots(on, copy);
        cuda::copy_probe peer(on, copy, copy_slots);
        const double copy_ns = time_ns(peer, copy_slots);
        const double own = time_ns(norm, slots);
        std::printf("  %-26s %8.2f us, copy %8.2f us: %5.1f %%  %s\n", each.id, own / 1e3, copy_ns / 1e3,
                    100 * copy_ns / own, norm.evidence(on).implementation.c_str());
        const std::size_t element = workload::input_bytes(p.type);
        const auto try_all = [&](const auto& shapes) {
            for (kernels::norm_shape shape : shapes) {
                const std::uint64_t units = kernels::units_of_row(p.hidden, element);
                if (units > shape.capacity() || 2 * units < shape.capacity()) continue;
                const auto time = [&](const kernels::norm_shape& with) {
                    const auto plan = kernels::norm_plan_of(with, p.rows, p.hidden, element, on.device().sm_count);
                    if (kernels::stage_bytes(plan, p.backward() ? 2 : 1) > 200u << 10) return;
                    norm.use(plan);
                    const double ns = time_ns(norm, slots);
                    std::printf("      threads %4u units %u stages %u blocks %5u: %8.2f us %5.1f %%\n", plan.threads,
                                plan.units, plan.stages, plan.blocks, ns / 1e3, 100 * copy_ns / ns);
                };
                if (shape.stages == 0) {
                    time(shape);
                    continue;
                }
                for (unsigned stages : {1u, 2u, 3u}) {
                    shape.stages = stages;
                    time(shape);
                }
                shape.stages = 2;
                if (--shape.blocks_per_sm > 0) time(shape);
            }
        };
        if (variants && !p.backward() && element == 4) try_all(kernels::forward_shapes<4>);
        if (variants && !p.backward() && element == 2) try_all(kernels::forward_shapes<2>);
        if (variants && p.backward() && element == 4) try_all(kernels::backward_shapes<4>);
        if (variants && p.backward() && element == 2) try_all(kernels::backward_shapes<2>);
        CHECK(copy_ns / own >= each.copy_fraction);
    }
}
