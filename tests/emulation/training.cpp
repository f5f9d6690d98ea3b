// SPDX-License-Identifier: Apache-2.0
// The kernels of a training step on the host: each against the host's operators, and whole steps against float64. Only
// products and convolutions are the host's own; on a device they are a library's.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "emulation.hpp"
#include "plumbline/cuda/training_operations.hpp"
#include "plumbline/training/bottleneck.hpp"
#include "plumbline/training/invariants.hpp"
#include "plumbline/training/transformer.hpp"

using namespace plumbline;
using namespace plumbline::training;
using workload::training_step::parse;

namespace {

/// "Device" memory and libraries on the host.
template <class Value>
class host_device {
public:
    struct memory {
        std::vector<double> bytes; // aligned enough for 16-byte accesses by malloc
        [[nodiscard]] void* data() const noexcept {
            return bytes.empty() ? nullptr : const_cast<double*>(bytes.data());
        }
    };
    [[nodiscard]] static cudaStream_t stream() { return nullptr; }
    [[nodiscard]] static memory allocate(std::size_t bytes) { return {std::vector<double>(bytes / 8 + 1)}; }
    static void zero(void* data, std::size_t bytes) { std::memset(data, 0, bytes); }
    static void download(const void* from, void* to, std::size_t bytes) { std::memcpy(to, from, bytes); }
    static void upload(const void* from, void* to, std::size_t bytes) { std::memcpy(to, from, bytes); }

    [[nodiscard]] static std::size_t workspace_bytes() noexcept { return 0; }
    [[nodiscard]] static int capability() noexcept { return 90; }

    template <class C>
    void multiply(const product& p, const Value* a, const Value* b, const C* c, C* out) {
        if (p.add && c != nullptr && c != out) std::copy(c, c + p.m * p.c_row, out);
        host_.products().multiply(p, a, b, out);
    }
    void convolve(const Value* x, const Value* w, Value* y, const convolution_shape& s) { host_.convolve(x, w, y, s); }
    void convolve_backward_input(const Value* d_y, const Value* w, Value* d_x, const convolution_shape& s) {
        host_.convolve_backward_input(d_y, w, d_x, s);
    }
    void convolve_backward_weight(const Value* d_y, const Value* x, float* d_w, const convolution_shape& s, bool add) {
        host_.convolve_backward_weight(d_y, x, d_w, s, add);
    }

private:
    host_operations<Value> host_;
};

template <class Value>
using emulated = cuda::training_operations<Value, host_device<Value>>;

template <class Value, template <class> class Model>
void check_steps(const std::string& id) {
    CAPTURE(id);
    emulated<Value> on;
    trainer<emulated<Value>, Model> steps(on, parse(id), {1024.0f, 2.0f, 0.5f, 1});
    step_check<emulated<Value>, Model> check(steps, id);
    CHECK_NOTHROW(check.check_all());
}

} // namespace

TEST_CASE("whole steps by the device's kernels hold to float64, in any order of threads") {
    // Sizes that need whole packs of 16 bytes, several of them for a thread, and the scalar paths.
    for (const emulation::schedule& how : emulation::schedules()) {
        CAPTURE(how.name);
        emulation::use(how);
        check_steps<float, transformer>("training_step/transformer/fp32/l1d16h2f32v24b2t6");
    }
    for (const emulation::schedule& how : {emulation::schedules().back(), emulation::schedules().front()}) {
        emulation::use(how);
        check_steps<float, bottleneck>("training_step/bottleneck/fp32/n2c16h4k8/accumulate2");
    }
    check_steps<float, transformer>("training_step/transformer/fp32/l1d6h2f10v11b2t5/accumulate2");
    check_steps<bfloat16, transformer>("training_step/transformer/bf16/l1d32h2f64v40b1t8");
    check_steps<float16, transformer>("training_step/transformer/fp16/l1d16h2f32v24b2t6/accumulate2");
    check_steps<bfloat16, transformer>("training_step/transformer/bf16/l1d64h1f64v40b1t8"); // by fused attention
    check_steps<float16, bottleneck>("training_step/bottleneck/fp16/n4c32h4k8");
    check_steps<float, bottleneck>("training_step/bottleneck/fp32/n2c12h3k5");
}

TEST_CASE("gradients are unscaled in place, and one that is not finite is noticed wherever it lies") {
    for (std::size_t bad : {std::size_t{0}, std::size_t{777}, std::size_t{1000}}) { // 1000: none
        std::vector<float> gradients(1000, 3.0f);
        if (bad < gradients.size()) gradients[bad] = std::numeric_limits<float>::infinity();
        step_control control;
        control.scaler.scale = 4;
        cuda::kernels::unscale_gradients(nullptr, gradients.data(), 1000, &control);
        CHECK(control.scaler.found_inf == (bad < 1000 ? 1 : 0));
        CHECK(gradients[500] == 0.75f);
        cuda::kernels::update_scale(nullptr, &control, {4.0f, 2.0f, 0.5f, 1});
        CHECK(control.scaler.scale == (bad < 1000 ? 2.0f : 8.0f));
    }
}
