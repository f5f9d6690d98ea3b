// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/cpu/training_step.hpp"
#include "plumbline/measure/engine.hpp"

using namespace plumbline;
using workload::training_step::parse;

namespace {

/// The largest difference, relative to the largest element, between oneDNN and plain loops.
template <class A, class C>
double difference(const training::product& p, std::size_t a_size, std::size_t b_size, std::size_t c_size) {
    std::vector<A> a(a_size), b(b_size);
    std::vector<C> c(c_size), exact(c_size);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = A(workload::random::normal(1, i));
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = A(workload::random::normal(2, i));
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = exact[i] = C(workload::random::normal(3, i));
    cpu::onednn_products library;
    training::plain_products loops;
    library.multiply(p, a.data(), b.data(), c.data());
    loops.multiply(p, a.data(), b.data(), exact.data());
    double off = 0, most = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
        off = std::max(off, std::abs(static_cast<double>(c[i]) - static_cast<double>(exact[i])));
        most = std::max(most, std::abs(static_cast<double>(exact[i])));
    }
    return off / most;
}

} // namespace

TEST_CASE("oneDNN's products are those of plain loops: transposed, added to, batched with gaps") {
    // x w^T, d_y^T x added to what is there, and attention scores out of interleaved heads.
    const training::product forward{5, 7, 6, 6, 1, 1, 6, 7};
    const training::product weight{7, 6, 5, 1, 7, 6, 1, 6, true};
    const training::product scores{4, 4, 3, 18, 1, 1, 18, 4, false, 2, 3, 3, 16};
    CHECK(difference<float, float>(forward, 30, 42, 35) < 1e-6);
    CHECK(difference<float, float>(weight, 35, 30, 42) < 1e-6);
    CHECK(difference<float, float>(scores, 72, 72, 32) < 1e-6);
    if (!cpu::has_native_bf16()) return;
    CHECK(difference<training::bfloat16, training::bfloat16>(forward, 30, 42, 35) < 8e-3);
    CHECK(difference<training::bfloat16, float>(weight, 35, 30, 42) < 1e-5);
    CHECK(difference<training::bfloat16, float>(scores, 72, 72, 32) < 1e-5);
}

TEST_CASE("a training step through the engine is verified and trains") {
    cpu::backend host;
    measure::engine<cpu::backend> engine(host);
    measure::options how;
    how.time.total = std::chrono::milliseconds(100);
    for (std::string id :
         {"training_step/transformer/fp32/l1d32h2f64v64b2t16", "training_step/bottleneck/fp32/n2c16h8k8/accumulate2"}) {
        CAPTURE(id);
        const auto results = engine.measure(cpu::make_training_step(id), how);
        REQUIRE(results.size() == 1);
        CAPTURE(results[0].reason);
        REQUIRE(results[0].status == result::result_status::ok);
        CHECK(results[0].verified);
        const auto& parts = results[0].sessions[0].ran.parts;
        CHECK(std::get<std::int64_t>(parts.at("items_per_step")) == parse(id).items());
        CHECK(std::get<std::int64_t>(parts.at("parameters")) == workload::training_step::parameters(parse(id)));
        CHECK(std::get<std::int64_t>(parts.at("skipped_steps")) == 0);
        CHECK(std::get<double>(parts.at("loss_50")) < 0.7 * std::get<double>(parts.at("loss_1")));
        CHECK_FALSE(results[0].sessions[0].ran.implementation.empty());
    }
}

TEST_CASE("bf16 trains where the processor has it; other legs say that they cannot") {
    cpu::backend host;
    measure::engine<cpu::backend> engine(host);
    measure::options how;
    how.time.total = std::chrono::milliseconds(50);
    const auto bf16 = engine.measure(cpu::make_training_step("training_step/transformer/bf16/l1d32h2f64v64b2t16"), how);
    CAPTURE(bf16[0].reason);
    CHECK(bf16[0].status == (cpu::has_native_bf16() ? result::result_status::ok : result::result_status::skipped));
    for (const char* id : {"training_step/transformer/tf32", "training_step/bottleneck/fp16"}) {
        const auto refused = engine.measure(cpu::make_training_step(id), how);
        CHECK(refused[0].status == result::result_status::skipped);
        CHECK(refused[0].what.id == id);
    }
}

TEST_CASE("the same step twice gives the same bits, and other weights other bits") {
    cpu::backend host;
    const auto p = parse("training_step/transformer/fp32/l1d32h2f64v64b2t16");
    cpu::training_step<float, training::transformer> step(host, p, 1);
    const std::string first = step.output_hash(host);
    CHECK(step.output_hash(host) == first);
    step.steps().plant(training::fault::unscale_twice); // nothing to unscale in fp32
    CHECK(step.output_hash(host) == first);
    auto other = p;
    other.transformer.hidden = 32;
    CHECK(cpu::training_step<float, training::transformer>(host, other, 1).output_hash(host) != first);
}
