// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstddef>
#include <thread>

#include <doctest/doctest.h>

#include "plumbline/loader/throughput.hpp"
#include "support.hpp"

using namespace plumbline;
using namespace std::chrono_literals;

namespace {

/// Samples that take 2 ms each without using the CPU, so that the expected rate does not depend on this machine.
loader::pipeline sleeping(std::size_t samples) {
    return test::numbered(samples, [](loader::work& w) {
        std::this_thread::sleep_for(2ms);
        w.encoded.resize(1000);
    });
}

loader::options with(std::size_t workers, std::size_t epoch_samples = 0) {
    loader::options how;
    how.num_workers = workers;
    how.batch_size = 5;
    how.drop_last = true;
    how.epoch_samples = epoch_samples;
    return how;
}

} // namespace

TEST_CASE("the rate is that of the workers, and the consumer without work of its own waits all the time") {
    for (const std::size_t workers : {0u, 1u, 4u}) {
        loader::data_loader timed(sleeping(100), with(workers, 5000));
        loader::throughput_plan plan;
        plan.budget = 400ms;
        const loader::throughput seen = loader::measure_throughput(timed, plan);
        // What the samples really took: on a busy machine a sleep is longer than asked for.
        const double sample_ns =
            seen.stage_ns[static_cast<std::size_t>(loader::stage::read)] / static_cast<double>(seen.samples);
        const double expected = static_cast<double>(std::max<std::size_t>(workers, 1)) * 1e9 / sample_ns;
        CAPTURE(workers);
        CHECK(sample_ns >= 2e6);
        CHECK(seen.rate() <= expected * 1.5);
        CHECK(seen.rate() >= expected * 0.3);
        CHECK(!seen.images_per_s.empty());
        CHECK(seen.images_per_s.size() <= 9);
        CHECK(seen.waiting_share() > 0.9);
        CHECK(seen.waiting_share() <= 1.0001);
        CHECK(seen.bytes_read == 1000 * seen.samples);
        CHECK(seen.read_bytes_per_s() == doctest::Approx(1000.0 * static_cast<double>(seen.samples) / seen.seconds));
        CHECK(seen.epochs == 1);
        CHECK(seen.first_batch_ns >= 10e6);
        CHECK(seen.cpu_ns_per_image() < 1e6);
        CHECK(seen.samples + 5 * std::max<std::size_t>(workers, 1) <= timed.statistics().samples); // warm-up left out
    }
}

TEST_CASE("with a slow consumer the loader keeps ahead, and its steps take the consumer's time") {
    loader::data_loader timed(sleeping(100), with(4, 5000)); // a batch every 2.5 ms
    loader::throughput_plan plan;
    plan.budget = 400ms;
    plan.consumer = loader::timed_consumer(30ms);
    const loader::throughput seen = loader::measure_throughput(timed, plan);
    CHECK(seen.waiting_share() < 0.6);
    CHECK(stats::median(seen.step_ns) >= 30e6);
    CHECK(seen.step_ns.size() >= seen.batches); // a window that was not full is not in the totals
}

TEST_CASE("epochs that end within the budget are followed by others, and their starts are not in the rate") {
    loader::data_loader timed(sleeping(40), with(2));
    loader::throughput_plan plan;
    plan.budget = 400ms;
    plan.shortest_window = 15ms;
    std::size_t prepared = 0;
    plan.before_epoch = [&] { ++prepared; };
    const loader::throughput seen = loader::measure_throughput(timed, plan);
    CHECK(seen.epochs >= 2);
    CHECK(prepared == seen.epochs);
    CHECK(seen.later_first_batch_ns > 0);
    CHECK(seen.rate() <= 1000 * 1.05); // two workers at 2 ms a sample
}

TEST_CASE("a cold measurement gives one rate for each epoch, behind its first batch") {
    loader::data_loader timed(sleeping(40), with(2));
    loader::throughput_plan plan;
    plan.budget = 300ms;
    plan.whole_epochs = true;
    const loader::throughput seen = loader::measure_throughput(timed, plan);
    CHECK(seen.images_per_s.size() == seen.epochs);
    CHECK(seen.epochs >= 1);
    CHECK(seen.samples == 35 * seen.epochs);
}

TEST_CASE("a data set of one batch still gives a figure, and failures of all epochs are counted") {
    loader::pipeline faulty = test::numbered(5, [](loader::work& w) {
        std::this_thread::sleep_for(1ms);
        if (w.sample == 2) throw loader::sample_error(loader::failure_kind::corrupt, "broken");
    });
    loader::data_loader timed(faulty, with(1));
    loader::throughput_plan plan;
    plan.budget = 50ms;
    const loader::throughput seen = loader::measure_throughput(timed, plan);
    REQUIRE(!seen.images_per_s.empty());
    CHECK(seen.rate() > 0);
    CHECK(seen.failures.total() == seen.epochs);
    CHECK(seen.failures.named.size() == 1);
}
