// SPDX-License-Identifier: Apache-2.0
// A training step as the consumer of a DataLoader.
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/cpu/loader_training.hpp"
#include "plumbline/loader/family.hpp"
#include "plumbline/training/host_operations.hpp"

using namespace plumbline;
using namespace std::chrono_literals;

namespace {

using training_type = training::image_training<cpu::training_operations<float>>;

/// Eight samples in memory. A worker transforms a sample once and copies it from then on, so that even a build without
/// optimisation loads fast; with `pause` it takes that long to read one.
loader::data_provider eight_samples(std::chrono::milliseconds pause) {
    loader::data_provider made = loader::memory_data(1, 8);
    made.open = [pause, open = made.open](const loader::augmentation& how) {
        loader::data_set data = open(how);
        const std::size_t bytes = data.all.sample_bytes;
        data.all.make = [pause, bytes, make = data.all.make] {
            loader::stages own = make();
            own.read = [pause, read = own.read](loader::work& w) {
                std::this_thread::sleep_for(pause);
                read(w);
            };
            const auto known = std::make_shared<std::map<std::size_t, std::vector<std::byte>>>();
            own.transform = [known, bytes, transform = own.transform](loader::work& w, std::byte* out) {
                auto& kept = (*known)[w.sample];
                if (kept.empty()) {
                    transform(w, out);
                    kept.assign(out, out + bytes);
                }
                std::memcpy(out, kept.data(), bytes);
                w.label = static_cast<std::int64_t>(w.sample);
            };
            return own;
        };
        return data;
    };
    return made;
}

measure::procedure_result load_and_train(std::chrono::milliseconds pause, const std::string& id) {
    cpu::backend on;
    loader::family_settings<cpu::backend> settings;
    settings.data.memory = eight_samples(pause);
    settings.trained = cpu::loader_training_id;
    settings.training_step = cpu::loader_training;
    return loader::family(std::move(settings)).make(id).measure(on, measure::budget{400ms});
}

double number(const scalar_map& state, const std::string& name) {
    const auto& value = state.at(name);
    const auto* whole = std::get_if<std::int64_t>(&value);
    return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value);
}

/// Pixel of an image that says where it is.
float pixel(std::int64_t n, std::int64_t row, std::int64_t column, std::int64_t colour) {
    return static_cast<float>(n * 1000 + row * 100 + column * 10 + colour);
}

std::vector<float> images(std::int64_t count, std::int64_t size, bool interleaved) {
    std::vector<float> made(static_cast<std::size_t>(count * size * size * 3));
    std::size_t at = 0;
    for (std::int64_t n = 0; n < count; ++n) {
        if (interleaved) {
            for (std::int64_t y = 0; y < size; ++y)
                for (std::int64_t x = 0; x < size; ++x)
                    for (std::int64_t c = 0; c < 3; ++c) made[at++] = pixel(n, y, x, c);
        } else {
            for (std::int64_t c = 0; c < 3; ++c)
                for (std::int64_t y = 0; y < size; ++y)
                    for (std::int64_t x = 0; x < size; ++x) made[at++] = pixel(n, y, x, c);
        }
    }
    return made;
}

} // namespace

TEST_CASE("a position of the network sees a window in the middle of its cell, whatever the layout of the images") {
    training::host_operations<double> on;
    for (const bool interleaved : {false, true}) {
        CAPTURE(interleaved);
        const auto from = images(2, 8, interleaved);
        // Cells of 4 rows, windows of 2 in their middle, and 2 channels that are none.
        const training::patch_shape small{2, 8, interleaved, 2, 14};
        CHECK(small.window() == 2);
        std::vector<double> x(static_cast<std::size_t>(small.outputs()), -1);
        on.patches(from.data(), x.data(), small);
        const auto at = [&x](std::size_t n, std::size_t row, std::size_t column, std::size_t c) {
            return x[((n * 2 + row) * 2 + column) * 14 + c];
        };
        CHECK(at(0, 0, 0, 0) == pixel(0, 1, 1, 0));
        CHECK(at(0, 0, 0, 5) == pixel(0, 1, 2, 2));
        CHECK(at(1, 1, 0, 7) == pixel(1, 6, 1, 1));
        CHECK(at(1, 0, 1, 11) == pixel(1, 2, 6, 2));
        CHECK(at(1, 1, 1, 12) == 0);
        CHECK(at(1, 1, 1, 13) == 0);
        // Windows of 5 in cells of 2 overlap, and reach over the border.
        const training::patch_shape wide{1, 8, interleaved, 4, 80};
        CHECK(wide.window() == 5);
        x.assign(static_cast<std::size_t>(wide.outputs()), -1);
        on.patches(from.data(), x.data(), wide);
        CHECK(x[0] == 0);                                        // row -1
        CHECK(x[(1 * 5 + 1) * 3 + 2] == pixel(0, 0, 0, 2));      // the cell's own first pixel
        CHECK(x[80 + (2 * 5 + 3) * 3 + 1] == pixel(0, 1, 4, 1)); // its neighbour on the right
        CHECK(x[15 * 80 + (4 * 5 + 0) * 3] == 0);                // row 9
        CHECK(x[15 * 80 + 75] == 0);                             // no channel of the window
    }
}

TEST_CASE("what is trained on are the images and classes that were loaded, in both types") {
    cpu::backend on;
    workload::training_step::params p = cpu::loader_training_step(workload::dataloader::params{});
    p.bottleneck.batch = 2;
    training_type training(p, 28, on, p);
    const auto loss_of = [&](const std::vector<float>& from, const std::vector<std::int64_t>& labels) {
        training.reset();
        training.load(from.data(), workload::dtype::fp32, false, 2);
        CHECK(training.classes(labels, training.labels()) == 2);
        training.step();
        scalar_map state;
        training.finish(state);
        CHECK(number(state, "trained_steps") == 1);
        return number(state, "loss");
    };
    std::vector<float> first(2 * 3 * 28 * 28), second(first.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
        first[i] = static_cast<float>(workload::random::normal(1, i));
        second[i] = static_cast<float>(workload::random::normal(2, i));
    }
    const double loss = loss_of(first, {3, 5});
    CHECK(loss_of(second, {3, 5}) != loss);
    CHECK(loss_of(first, {3, 6}) != loss);
    CHECK(loss_of(first, {3 + 64, 5 - 64}) == loss); // classes are labels modulo their number
    std::vector<training::float16> half;
    std::vector<float> rounded;
    for (const float value : first) {
        half.emplace_back(value);
        rounded.push_back(half.back());
    }
    const double of_rounded = loss_of(rounded, {3, 5});
    training.reset();
    training.load(half.data(), workload::dtype::fp16, false, 2);
    training.classes({3, 5}, training.labels());
    training.step();
    scalar_map state;
    training.finish(state);
    CHECK(number(state, "loss") == of_rounded);
    first[100] = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS_WITH_AS((void)loss_of(first, {3, 5}), doctest::Contains("took 0 steps and skipped 1"),
                         verification_error);
    CHECK_THROWS_AS(training_type(p, 30, on, p), usage_error); // 14 does not divide it
}

TEST_CASE("oneDNN works in the thread that calls it, while it is told to") {
    const auto before = cpu::onednn::threads();
    if (!before) return; // another runtime than OpenMP
    {
        const cpu::onednn::in_this_thread alone;
        CHECK(cpu::onednn::threads() == 1);
    }
    CHECK(cpu::onednn::threads() == before);
}

TEST_CASE("a slow loader makes the training step wait for most of its time, a fast one hardly") {
    const measure::procedure_result slow = load_and_train(60ms, "dataloader/memory/w1p2/b8/train");
    const measure::procedure_result fast = load_and_train(0ms, "dataloader/memory/w1p4/b8/train");
    const scalar_map& starved = slow.metrics.at(0).state;
    const scalar_map& fed = fast.metrics.at(0).state;
    CAPTURE(number(starved, "waiting_share"));
    CAPTURE(number(fed, "waiting_share"));
    CAPTURE(number(fed, "consumer_ms"));
    // A batch takes 480 ms to read.
    CHECK(number(starved, "waiting_share") > 0.7);
    CHECK(number(starved, "waiting_for_read_share") > 0.6);
    CHECK(number(fed, "waiting_share") < 0.5); // 0.15 to 0.2 were seen on two busy processors
    for (const scalar_map* state : {&starved, &fed}) {
        CHECK(to_string(state->at("trains")) == "training_step/bottleneck/fp32/n8c16h14k64");
        CHECK(number(*state, "trained_steps") >= 2);
        CHECK(number(*state, "skipped_steps") == 0);
        CHECK(std::isfinite(number(*state, "loss")));
        CHECK(number(*state, "consumer_ms") > 0);
    }
    CHECK(slow.verified);
    CHECK(slow.metrics.at(0).name == "time");
}
