// SPDX-License-Identifier: Apache-2.0
// Training steps on the GPU: each leg held to float64, planted mistakes found, graph and stream alike.
#include <cmath>
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
