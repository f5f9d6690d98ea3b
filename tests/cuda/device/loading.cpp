// SPDX-License-Identifier: Apache-2.0
// A training step on the GPU as the consumer of a DataLoader.
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "device.hpp"
#include "plumbline/cuda/loader_copy.hpp"
#include "plumbline/cuda/loader_training.hpp"
#include "plumbline/loader/family.hpp"
#include "plumbline/training/host_operations.hpp"

using namespace plumbline;
using namespace plumbline::training;

namespace {

template <class Value>
using operations = cuda::training_operations<Value, cuda::training_device<Value>>;

template <class From>
std::vector<From> pixels(std::size_t count) {
    std::vector<From> made(count);
    for (std::size_t i = 0; i < count; ++i) made[i] = From(workload::random::normal(1, i));
    return made;
}

/// The loss of the first step on these images, which lie where Ops runs.
template <class Ops, class... On>
double first_loss(const workload::training_step::params& p, const void* images, workload::dtype type, On&&... on) {
    image_training<Ops> training(p, 32, on...);
    training.load(images, type, true, static_cast<std::size_t>(p.bottleneck.batch));
    training.step();
    scalar_map state;
    training.finish(state);
    return std::get<double>(state.at("loss"));
}

} // namespace

TEST_CASE("images become the input of the network as on the host") {
    for (const patch_shape s : {patch_shape{3, 32, false, 8, 256}, patch_shape{2, 28, true, 14, 50}}) {
        CAPTURE(s.channels);
        const auto from = pixels<float>(static_cast<std::size_t>(s.batch * s.size * s.size * 3));
        std::vector<bfloat16> expected(static_cast<std::size_t>(s.outputs()));
        host_operations<bfloat16>().patches(from.data(), expected.data(), s);
        operations<bfloat16> on(device(), workload::training_step::params{});
        const auto images = on.upload(from);
        auto x = on.template make<bfloat16>(expected.size());
        on.patches(images.data(), x.data(), s);
        const std::vector<bfloat16> found = on.download(x.data(), expected.size());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < found.size(); ++i) wrong += found[i].bits != expected[i].bits;
        CHECK(wrong == 0);
    }
}

TEST_CASE("a step on loaded images has the loss that it has on the host") {
    workload::training_step::params p;
    p.net = workload::training_step::network::bottleneck;
    p.type = workload::dtype::fp32;
    p.bottleneck = {4, 32, 8, 16};
    const auto from = pixels<float16>(4 * 32 * 32 * 3);
    const double expected = first_loss<host_operations<float>>(p, from.data(), workload::dtype::fp16);
    operations<float> memory(device(), p);
    const auto images = memory.upload(from);
    const double found = first_loss<operations<float>>(p, images.data(), workload::dtype::fp16, device(), p);
    CHECK(std::abs(found / expected - 1) < 1e-3);
}

TEST_CASE("through the DataLoader: pinned and copied beside the step, or pageable and copied in its way") {
    loader::family_settings<cuda::backend> settings;
    settings.data.memory = loader::memory_data(4, 16);
    settings.pinned = [](cuda::backend& on) { return cuda::loader_transfer(on.shared<cuda::pinned_pool>()); };
    settings.trained = cuda::loader_training_id;
    settings.training_step = cuda::loader_training;
    const auto family = loader::family(std::move(settings));
    for (const char* id : {"dataloader/memory/w2p2/pinned/b16/train", "dataloader/memory/w2p2/fp16/hwc/b16/train"}) {
        CAPTURE(id);
        const auto benchmark = family.make(id);
        CHECK(to_string(benchmark.what.params.at("trained")) == "training_step/bottleneck/bf16/n16c256h56k1000");
        const auto seen = benchmark.measure(device(), measure::budget{std::chrono::milliseconds(400)});
        REQUIRE(seen.metrics.size() == 1);
        const scalar_map& state = seen.metrics[0].state;
        CHECK(seen.metrics[0].name == "time");
        CHECK(std::get<std::int64_t>(state.at("trained_steps")) > 3);
        CHECK(std::get<std::int64_t>(state.at("skipped_steps")) == 0);
        const double share = std::get<double>(state.at("waiting_share"));
        const double step_ms = std::get<double>(state.at("consumer_ms"));
        CHECK(share >= 0);
        CHECK(share <= 1.0001);
        CHECK(step_ms > 0.1);
        MESSAGE(id << ": a step of " << step_ms << " ms, waits for " << 100 * share << " % of its time, loss "
                   << std::get<double>(state.at("loss")));
    }
}
