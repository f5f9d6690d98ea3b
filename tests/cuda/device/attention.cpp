// SPDX-License-Identifier: Apache-2.0
// Causal attention on the GPU: each implementation against float64, and how long each takes.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "../attention_harness.hpp"
#include "device.hpp"
#include "plumbline/cuda/training_step.hpp"

using namespace plumbline;
using attention_test::sized;
using attention_test::trial;
using cuda::attention_by;
using training::bfloat16;
using training::float16;

namespace {

/// What an implementation did and how long it took.
struct outcome {
    std::string forward, backward; ///< who computed, and by which plan
    double forward_us = 0, backward_us = 0;
};

std::string text(const result::evidence& ran, const std::string& name) {
    const auto by = ran.parts.find(name), plan = ran.parts.find("plan." + name),
               none = ran.parts.find("refused." + name);
    std::string said = by == ran.parts.end() ? "?" : to_string(by->second);
    if (said == "cudnn" && plan != ran.parts.end()) said = to_string(plan->second);
    if (none != ran.parts.end()) said += " (" + to_string(none->second) + ")";
    return said;
}

/// Fills y, log_sums and d_projected of a trial; outputs hold NaN before.
template <class Value>
outcome compute(trial<Value>& of, attention_by first, bool timed) {
    workload::training_step::params p;
    p.type = training::dtype_of_value<Value>();
    p.transformer = of.s;
    cuda::training_operations<Value, cuda::training_device<Value>> ops(device(), p);
    ops.compute_attention_by(first);
    const auto poison = [&](std::size_t count) { return ops.upload(std::vector<Value>(count, Value(NAN))); };
    const auto projected = ops.upload(of.projected), d_y = ops.upload(of.d_y);
    const auto y = poison(of.d_y.size()), d_projected = poison(of.projected.size());
    const auto sums = static_cast<std::size_t>(of.s.rows() * of.s.heads);
    const auto log_sums = ops.upload(std::vector<float>(sums, NAN));
    const auto forward = [&] { ops.attention(projected.data(), y.data(), log_sums.data(), of.s); };
    const auto backward = [&] {
        ops.attention_backward(d_y.data(), projected.data(), y.data(), log_sums.data(), d_projected.data(), of.s);
    };
    forward();
    backward();
    of.y = ops.download(y.data(), of.d_y.size());
    of.log_sums = ops.download(log_sums.data(), sums);
    of.d_projected = ops.download(d_projected.data(), of.projected.size());
    const result::evidence ran = ops.evidence();
    outcome found{text(ran, "attention"), text(ran, "attention_backward")};
    if (timed) {
        found.forward_us = shortest_us(forward);
        found.backward_us = shortest_us(backward);
    }
    return found;
}

constexpr std::pair<attention_by, const char*> implementations[] = {
    {attention_by::cudnn, "cudnn"}, {attention_by::native_flash, "native_flash"}, {attention_by::unfused, "unfused"}};

/// Every implementation against float64 in the given heads.
template <class Value>
void check(const attention_test::shape& s, const std::vector<std::pair<std::int64_t, std::int64_t>>& heads,
           float spread, bool timed = false) {
    const char* type = std::is_same_v<Value, bfloat16> ? "bf16" : "fp16";
    for (const auto& [by, name] : implementations) {
        trial<Value> of(s, spread);
        const outcome ran = compute(of, by, timed);
        const attention_test::deviations found = attention_test::off(of, heads);
        std::printf("  attention %s %lldx%lld, %lld heads of %lld, %s: off by y %.1e log_sums %.1e dq %.1e dk %.1e dv "
                    "%.1e; forward %s, backward %s\n",
                    type, static_cast<long long>(s.batch), static_cast<long long>(s.tokens),
                    static_cast<long long>(s.heads), static_cast<long long>(s.head_width()), name, found.y,
                    found.log_sums, found.d_query, found.d_key, found.d_value, ran.forward.c_str(),
                    ran.backward.c_str());
        if (timed) std::printf("    forward %.1f us, backward %.1f us a layer\n", ran.forward_us, ran.backward_us);
        CAPTURE(name);
        CAPTURE(s.tokens);
        const double allowed = std::is_same_v<Value, bfloat16> ? 8e-3 : 1e-3;
        CHECK(found.y < allowed);
        CHECK(found.log_sums < 1e-4 * static_cast<double>(spread * spread));
        // Weights and gradients of the scores are rounded in between.
        CHECK(found.d_query < 1.5 * allowed);
        CHECK(found.d_key < 1.5 * allowed);
        CHECK(found.d_value < 1.5 * allowed);
    }
}

} // namespace

TEST_CASE("attention: every implementation holds to float64, whole tiles or not, and where the softmax is sharp") {
    check<bfloat16>(sized(2, 3, 64, 128), {{0, 0}, {1, 1}, {1, 2}}, 1);
    check<float16>(sized(1, 2, 64, 256), {{0, 0}, {0, 1}}, 3);
    check<bfloat16>(sized(2, 2, 64, 100), {{0, 1}, {1, 0}}, 3);
    check<float16>(sized(1, 2, 64, 33), {{0, 0}, {0, 1}}, 1);
    check<bfloat16>(sized(2, 2, 32, 32), {{0, 1}, {1, 1}}, 1);
}

TEST_CASE("attention: time of one layer at the size of the training step") {
    if (small_tests()) return;
    const attention_test::shape s = sized(8, 16, 64, 1024);
    check<bfloat16>(s, {{0, 0}, {7, 15}}, 1, true);
    check<float16>(s, {{3, 5}}, 1, true);
}
