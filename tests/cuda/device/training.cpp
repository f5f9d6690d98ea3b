// SPDX-License-Identifier: Apache-2.0
// Training steps on the GPU: each leg held to float64, planted mistakes found, graph and stream alike.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "device.hpp"
#include "plumbline/cuda/loss_scaler.hpp"
#include "plumbline/cuda/training_step.hpp"
#include "plumbline/measure/engine.hpp"

using namespace plumbline;
using namespace plumbline::training;
using workload::training_step::params;
using workload::training_step::parse;

namespace {

template <class Value>
using operations = cuda::training_operations<Value, cuda::training_device<Value>>;

template <class Value, template <class> class Model>
struct device_run {
    operations<Value> ops;
    trainer<operations<Value>, Model> steps;

    device_run(const params& p, const loss_scale_rules& rules) : ops(device(), p), steps(ops, p, rules) {}
};

params small_of(const std::string& id) {
    return small_version(parse(id));
}

template <class Value, template <class> class Model>
std::string complaint(const std::string& id, fault mistake) {
    params p = small_of(id);
    if (p.net == workload::training_step::network::bottleneck) p.accumulation = 2;
    device_run<Value, Model> of(p, {1024.0f, 2.0f, 0.5f, 1});
    of.steps.plant(mistake);
    try {
        step_check<operations<Value>, Model>(of.steps, id).check_all();
    } catch (const verification_error& e) {
        return e.what();
    }
    return "";
}

} // namespace

TEST_CASE("one step of every leg holds to float64") {
    CHECK(complaint<float, transformer>("training_step/transformer/fp32", fault::none) == "");
    CHECK(complaint<float, transformer>("training_step/transformer/tf32", fault::none) == "");
    CHECK(complaint<float16, transformer>("training_step/transformer/fp16", fault::none) == "");
    CHECK(complaint<bfloat16, transformer>("training_step/transformer/bf16/accumulate4", fault::none) == "");
    CHECK(complaint<float, bottleneck>("training_step/bottleneck/fp32", fault::none) == "");
    CHECK(complaint<float, bottleneck>("training_step/bottleneck/tf32", fault::none) == "");
    CHECK(complaint<float16, bottleneck>("training_step/bottleneck/fp16", fault::none) == "");
    CHECK(complaint<bfloat16, bottleneck>("training_step/bottleneck/bf16", fault::none) == "");
}

TEST_CASE("mistakes planted into a step on the device are named") {
    const auto names = [](const std::string& message, const char* words) {
        CAPTURE(message);
        CHECK(message.find(words) != std::string::npos);
    };
    const std::string id = "training_step/transformer/fp16";
    names(complaint<float16, transformer>(id, fault::clip_before_unscale), "clipped before it was unscaled");
    names(complaint<float16, transformer>(id, fault::update_before_unscale), "scale was updated before");
    names(complaint<float16, transformer>(id, fault::unscale_twice), "unscaled twice");
    names(complaint<float16, bottleneck>("training_step/bottleneck/fp16", fault::statistics_per_micro_batch),
          "updated for each micro-batch");
}

TEST_CASE("a graph of the step trains as its stream does") {
    const params p = small_of("training_step/transformer/bf16");
    device_run<bfloat16, transformer> stream(p, no_scaling()), graph(p, no_scaling());
    const auto step = [&](std::size_t) { graph.steps.step(); };
    // record() runs it once, capturing does not; play() replays.
    auto tape = device().record(step, {1, 1, true});
    static_cast<void>(device().play(tape, 4));
    for (int i = 0; i < 5; ++i) stream.steps.step();
    const step_control a = stream.ops.read_control(), b = graph.ops.read_control();
    CHECK(a.scaler.taken == 5);
    CHECK(b.scaler.taken == 5);
    // Gradients of the embedding are added up in any order, so not bit for bit.
    CHECK(std::abs(a.loss / b.loss - 1) < 1e-3);
}

namespace {

/// relative difference, norm over norm.
template <class A, class B>
double off(const std::vector<A>& found, const std::vector<B>& expected) {
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const double e = static_cast<double>(expected[i]);
        error += std::pow(static_cast<double>(found[i]) - e, 2);
        norm += e * e;
    }
    return std::sqrt(error / norm);
}

/// What linear_gelu and its gradient make of random input, and how long they take.
struct gelu_run {
    std::vector<bfloat16> x, w, d_y, raised, y, d_raised;
    double forward_us = 0, backward_us = 0;

    gelu_run(std::int64_t rows, std::int64_t in, std::int64_t out, bool in_products) {
        const auto draw = [](std::int64_t count, std::uint64_t seed) {
            std::vector<bfloat16> made;
            for (std::int64_t i = 0; i < count; ++i) {
                made.emplace_back(workload::random::normal(seed, static_cast<std::uint64_t>(i)));
            }
            return made;
        };
        x = draw(rows * in, 1);
        w = draw(out * in, 2);
        for (bfloat16& each : w) each = bfloat16(each / std::sqrt(static_cast<float>(in)));
        d_y = draw(rows * in, 3);
        operations<bfloat16> ops(device(), parse("training_step/transformer/bf16"));
        ops.compute_gelu_in_products(in_products);
        const auto nothing = std::vector<bfloat16>(static_cast<std::size_t>(rows * out), bfloat16(NAN));
        const auto on_x = ops.upload(x), on_w = ops.upload(w), on_d_y = ops.upload(d_y), kept = ops.upload(nothing),
                   made = ops.upload(nothing), gradient = ops.upload(nothing);
        // The weights of the product after GELU have its inputs as columns: those of the one before, read so.
        const auto forward = [&] {
            ops.linear_gelu(on_x.data(), on_w.data(), kept.data(), made.data(), rows, in, out);
        };
        const auto backward = [&] {
            ops.linear_backward_input_gelu(on_d_y.data(), on_w.data(), kept.data(), gradient.data(), rows, out, in);
        };
        forward();
        backward();
        raised = ops.download(kept.data(), nothing.size());
        y = ops.download(made.data(), nothing.size());
        d_raised = ops.download(gradient.data(), nothing.size());
        forward_us = shortest_us(forward);
        backward_us = shortest_us(backward);
        for (const auto& [part, value] : ops.evidence().parts) {
            if (part.find("gelu") != std::string::npos) {
                std::printf("    %s: %s\n", part.c_str(), to_string(value).c_str());
            }
        }
        std::printf("  GELU %s, %lldx%lldx%lld: forward %.1f us, backward %.1f us\n",
                    in_products ? "in products" : "after products", static_cast<long long>(rows),
                    static_cast<long long>(in), static_cast<long long>(out), forward_us, backward_us);
    }
};

} // namespace

TEST_CASE("products: GELU as what a product does last holds to float64, and how long it takes at full size") {
    const std::int64_t rows = 96, in = 64, out = 136;
    host_operations<double> exact;
    const auto wide = [](const std::vector<bfloat16>& from) { return std::vector<double>(from.begin(), from.end()); };
    for (bool in_products : {true, false}) {
        CAPTURE(in_products);
        const gelu_run found(rows, in, out, in_products);
        const auto x = wide(found.x), w = wide(found.w), d_y = wide(found.d_y);
        std::vector<double> raised(found.raised.size()), y(raised.size()), d_raised(raised.size());
        exact.linear_gelu(x.data(), w.data(), raised.data(), y.data(), rows, in, out);
        exact.linear_backward_input_gelu(d_y.data(), w.data(), raised.data(), d_raised.data(), rows, out, in);
        CHECK(off(found.raised, raised) < 4e-3);
        CHECK(off(found.y, y) < 6e-3);
        CHECK(off(found.d_raised, d_raised) < 8e-3);
    }
    if (small_tests()) return;
    const gelu_run joined(8192, 1024, 4096, true), apart(8192, 1024, 4096, false);
    CHECK(off(joined.y, apart.y) < 6e-3);
    CHECK(off(joined.d_raised, apart.d_raised) < 8e-3);
}

TEST_CASE("through the engine: verified, with plans, launches, losses and memory") {
    measure::engine<cuda::backend> engine(device());
    measure::options how;
    how.time.total = std::chrono::milliseconds(300);
    how.rules.min_clean = 5;
    for (const char* id :
         {"training_step/transformer/bf16/l1d64h2f128v128b2t32", "training_step/bottleneck/bf16/n4c32h8k16/stream"}) {
        CAPTURE(id);
        const auto results = engine.measure(cuda::make_training_step(id), how);
        REQUIRE(results.size() == 1);
        CAPTURE(results[0].reason);
        REQUIRE(results[0].status == result::result_status::ok);
        CHECK(results[0].verified);
        const auto& parts = results[0].sessions[0].ran.parts;
        CHECK(std::get<std::int64_t>(parts.at("launches_per_step")) > 20);
        CHECK(std::get<std::int64_t>(parts.at("allocated_bytes")) > 0);
        CHECK(std::get<double>(parts.at("loss_50")) < 0.7 * std::get<double>(parts.at("loss_1")));
    }
}

TEST_CASE("the scaler on the device moves as the host's does, and refuses the same mistakes") {
    const loss_scale_rules rules{8.0f, 2.0f, 0.5f, 2};
    cuda::loss_scaler scaler(device().stream(), rules);
    loss_scaler expected(rules);
    cuda::device_memory memory(64 * sizeof(float));
    for (float gradient : {1.0f, 1.0f, INFINITY, 1.0f, 1.0f, 1.0f}) {
        std::vector<float> host(64, gradient);
        cuda::check(
            cudaMemcpyAsync(memory.data(), host.data(), 64 * sizeof(float), cudaMemcpyHostToDevice, device().stream()),
            "cudaMemcpyAsync");
        scaler.scale();
        scaler.unscale(memory.as<float>(), 32);
        scaler.unscale(memory.as<float>() + 32, 32);
        scaler.step();
        scaler.update();
        static_cast<void>(expected.scaled(1));
        expected.unscale(host);
        static_cast<void>(expected.step());
        expected.update();
        CHECK(scaler.state().scale == expected.scale());
        CHECK(scaler.state().clean_steps == expected.state().clean_steps);
        CHECK(scaler.state().skipped == expected.state().skipped);
    }
    CHECK_THROWS_AS(scaler.update(), usage_error);
    scaler.unscale(memory.as<float>(), 64);
    CHECK_THROWS_AS(scaler.scale(), usage_error);
}
