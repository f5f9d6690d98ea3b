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

// Others may work on this machine, so that anything may take longer than it should. What is checked is what holds then.
TEST_CASE("windows hold whole rounds behind the warm-up, and totals, waits and rates belong together") {
    for (const std::size_t workers : {0u, 1u, 4u}) {
        loader::data_loader timed(sleeping(100), with(workers, 5000));
        loader::throughput_plan plan;
        plan.budget = 400ms;
        const auto begin = std::chrono::steady_clock::now();
        const loader::throughput seen = loader::measure_throughput(timed, plan);
        const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        CAPTURE(workers);
        const std::size_t round = 5 * std::max<std::size_t>(workers, 1);
        CHECK(!seen.images_per_s.empty());
        CHECK(seen.images_per_s.size() <= 9); // of 50 ms and more
        CHECK(seen.samples % round == 0);
        CHECK(seen.samples + round <= timed.statistics().samples); // the warm-up is left out
        CHECK(seen.seconds <= took);
        // A sample sleeps for 2 ms in its worker, behind begin_epoch: more cannot have been loaded.
        CHECK(static_cast<double>(timed.statistics().samples) * 2e-3 <= took * static_cast<double>(round) / 5);
        CHECK(seen.stage_ns[static_cast<std::size_t>(loader::stage::read)] >= 2e6 * static_cast<double>(seen.samples));
        if (workers == 0) CHECK(seen.wait_ns >= 2e6 * static_cast<double>(seen.samples)); // it loads in next()
        if (workers == 0) CHECK(seen.rate() <= 500);
        CHECK(seen.wait_ns > 0);
        CHECK(seen.waiting_share() == doctest::Approx(seen.wait_ns * 1e-9 / seen.seconds));
        CHECK(seen.waiting_share() <= 1.0001);
        CHECK(seen.bytes_read == 1000 * seen.samples);
        CHECK(seen.read_bytes_per_s() == doctest::Approx(1000.0 * static_cast<double>(seen.samples) / seen.seconds));
        CHECK(seen.cpu_ns_per_image() == doctest::Approx(seen.cpu_ns / static_cast<double>(seen.samples)));
        CHECK(seen.epochs == 1);
        CHECK(seen.first_batch_ns >= 10e6);
    }
}

TEST_CASE("the consumer's own time is in its steps and not in its waits") {
    loader::data_loader timed(test::numbered(100), with(2, 5000));
    loader::throughput_plan plan;
    plan.budget = 300ms;
    plan.consumer = loader::timed_consumer(20ms);
    const loader::throughput seen = loader::measure_throughput(timed, plan);
    CHECK(stats::median(seen.step_ns) >= 20e6);
    CHECK(seen.step_ns.size() >= seen.batches); // a window that was not full is not in the totals
    CHECK(seen.wait_ns + 20e6 * static_cast<double>(seen.batches) <= seen.seconds * 1e9);
    CHECK(seen.waiting_share() < 1);
}

TEST_CASE("epochs that end within the budget are followed by others, and their starts are not in the totals") {
    loader::data_loader timed(test::numbered(40), with(2)); // epochs of microseconds
    loader::throughput_plan plan;
    plan.budget = 400ms;
    plan.shortest_window = 0ms;
    std::size_t prepared = 0;
    plan.before_epoch = [&] { ++prepared; };
    const loader::throughput seen = loader::measure_throughput(timed, plan);
    CHECK(prepared == seen.epochs);
    CHECK(seen.epochs >= 2);
    CHECK(seen.later_first_batch_ns > 0);
    CHECK(seen.samples <= 30 + 35 * (seen.epochs - 1)); // a round of two batches first, then a batch in each epoch
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
