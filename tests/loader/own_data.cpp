// SPDX-License-Identifier: Apache-2.0
// A user's own data set and transform, timed: the example of the README, compiled and run.
#include <chrono>
#include <cmath>
#include <cstring>

#include <doctest/doctest.h>

#include "plumbline/loader/throughput.hpp"

using namespace plumbline;

TEST_CASE("a user's own data set is timed in twenty lines") {
    loader::pipeline mine; // windows of a long signal, to be normalised: nothing with images
    mine.samples = 500;
    mine.sample_bytes = 64 * sizeof(float);
    mine.make = [] { // called once in each worker
        loader::stages own;
        own.read = [](loader::work& w) { w.encoded.assign(64, static_cast<std::byte>(w.sample & 0x7f)); };
        own.transform = [](loader::work& w, std::byte* out) {
            float values[64];
            const float scale = static_cast<float>(w.random.uniform(0.5, 2)); // the same whichever worker does it
            for (std::size_t i = 0; i < 64; ++i)
                values[i] = scale * static_cast<float>(std::to_integer<int>(w.encoded[i]));
            std::memcpy(out, values, sizeof values);
        };
        return own;
    };
    loader::options how;
    how.num_workers = 2;
    how.batch_size = 50;
    loader::data_loader timed(mine, how);
    loader::throughput_plan plan;
    plan.budget = std::chrono::milliseconds(100);
    const loader::throughput seen = loader::measure_throughput(timed, plan);
    CHECK(seen.rate() > 0);
    CHECK(seen.failures.total() == 0);
}
