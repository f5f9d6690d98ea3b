// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "support.hpp"

using namespace plumbline;
using namespace std::chrono_literals;

namespace {

loader::options with(std::size_t workers, std::size_t batch = 4) {
    loader::options how;
    how.num_workers = workers;
    how.batch_size = batch;
    how.seed = 11;
    return how;
}

/// Sleeps longer for early samples, so that batches are completed out of order.
void early_is_slow(loader::work& w) {
    if (w.sample % 7 == 0) std::this_thread::sleep_for(2ms);
}

} // namespace

TEST_CASE("order and content of the batches do not depend on the number of workers or the prefetch factor") {
    loader::data_loader alone(test::numbered(103, early_is_slow), with(0));
    const test::delivered first = test::drain(alone, 0);
    const test::delivered second = test::drain(alone, 1);
    CHECK(first != second);
    for (const std::size_t workers : {1u, 2u, 3u, 8u}) {
        for (const std::size_t prefetch : {1u, 2u, 5u}) {
            loader::options how = with(workers);
            how.prefetch_factor = prefetch;
            loader::data_loader many(test::numbered(103, early_is_slow), how);
            CHECK(test::drain(many, 0) == first);
            CHECK(test::drain(many, 1) == second);
        }
    }
}

TEST_CASE("every sample comes once an epoch, the last batch is short, and drop_last drops it") {
    loader::data_loader whole(test::numbered(10), with(2));
    const test::delivered all = test::drain(whole, 0);
    CHECK(all.samples.size() == 3);
    CHECK(all.samples.back().size() == 2);
    CHECK(all.bytes.back().size() == 2 * 16);
    CHECK(all.indices == std::vector<std::size_t>{0, 1, 2});
    std::set<std::size_t> seen;
    for (const auto& batch : all.samples) seen.insert(batch.begin(), batch.end());
    CHECK(seen.size() == 10);
    CHECK(whole.statistics().samples == 10);
    CHECK(whole.statistics().batches == 3);

    loader::options how = with(2);
    how.drop_last = true;
    loader::data_loader dropped(test::numbered(10), how);
    CHECK(test::drain(dropped, 0).samples.size() == 2);
    loader::data_loader nothing_left(test::numbered(3), how);
    CHECK(test::drain(nothing_left, 0).samples.empty());
}

TEST_CASE("without shuffling samples come in their own order, labels beside them") {
    loader::options how = with(3);
    how.shuffle = false;
    loader::data_loader plain(test::numbered(9), how);
    plain.begin_epoch(0);
    std::size_t expected = 0;
    while (auto next = plain.next()) {
        for (std::size_t i = 0; i < next->size(); ++i, ++expected) {
            CHECK(next->record().samples[i] == expected);
            CHECK(next->record().labels[i] == static_cast<std::int64_t>(10 * expected));
            std::uint64_t stored = 0;
            std::memcpy(&stored, next->host() + i * 16, sizeof stored);
            CHECK(stored == expected);
        }
    }
    CHECK(expected == 9);
}

TEST_CASE("unordered delivery gives the same batches, the finished ones first") {
    std::atomic<bool> release_first{false};
    const auto hold_first = [&](loader::work& w) {
        while (w.sample == 0 && !release_first) std::this_thread::sleep_for(1ms);
    };
    loader::options how = with(2);
    how.shuffle = false;
    how.in_order = false;
    loader::data_loader any(test::numbered(24, hold_first), how);
    any.begin_epoch(0);
    std::vector<std::size_t> order;
    for (int i = 0; i < 3; ++i) order.push_back(any.next()->record().index); // batch 0 is held back
    CHECK(std::find(order.begin(), order.end(), 0u) == order.end());
    release_first = true;
    while (auto next = any.next()) order.push_back(next->record().index);
    std::sort(order.begin(), order.end());
    CHECK(order == std::vector<std::size_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("no more than workers x prefetch factor batches are started ahead of the consumer") {
    std::atomic<std::size_t> started{0};
    const auto count = [&](loader::work&) { ++started; };
    loader::options how = with(2, 1);
    how.prefetch_factor = 3;
    loader::data_loader bounded(test::numbered(100, count), how);
    bounded.begin_epoch(0);
    for (int tries = 0; started < 6 && tries < 5000; ++tries) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
    CHECK(started == 6);
    for (std::size_t taken = 1; taken <= 10; ++taken) {
        CHECK(bounded.next()->size() == 1);
        for (int tries = 0; started < 6 + taken && tries < 5000; ++tries) std::this_thread::sleep_for(1ms);
        CHECK(started == 6 + taken); // one more for each that was consumed
    }
}

TEST_CASE("threads live on between epochs, or are started anew for each") {
    for (const bool persistent : {true, false}) {
        std::mutex guard;
        std::size_t made = 0;
        loader::pipeline counted = test::numbered(12);
        counted.make = [&, make = counted.make] {
            const std::lock_guard<std::mutex> lock(guard);
            ++made;
            return make();
        };
        loader::options how = with(2);
        how.persistent_workers = persistent;
        loader::data_loader twice(counted, how);
        const test::delivered first = test::drain(twice, 0);
        (void)test::drain(twice, 1);
        CHECK(test::drain(twice, 0) == first);
        const std::lock_guard<std::mutex> lock(guard);
        CHECK(made <= (persistent ? 2u : 6u));
        CHECK(made >= (persistent ? 1u : 3u));
    }
}

TEST_CASE("an epoch can be given up at any point, batches in hand included") {
    loader::data_loader often(test::numbered(200, early_is_slow), with(3));
    loader::data_loader reference(test::numbered(200, early_is_slow), with(0));
    const test::delivered expected = test::drain(reference, 7);
    for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
        often.begin_epoch(epoch);
        for (std::uint64_t i = 0; i < epoch; ++i) (void)often.next();
    }
    often.begin_epoch(5);
    const auto held = often.next();
    CHECK(test::drain(often, 7) == expected);
    CHECK(held->size() == 4);
    often.begin_epoch(8); // and is destroyed while workers are busy
}

TEST_CASE("a batch stays untouched while it is held, and asking for more than there are is an error") {
    for (const std::size_t workers : {0u, 2u}) {
        loader::data_loader ring(test::numbered(400), with(workers));
        ring.begin_epoch(0);
        std::vector<loader::batch> held;
        std::vector<std::vector<std::byte>> copies;
        const auto take_all = [&] {
            while (auto next = ring.next()) {
                copies.emplace_back(next->host(), next->host() + next->bytes());
                held.push_back(std::move(*next));
            }
        };
        CHECK_THROWS_AS(take_all(), usage_error);
        CHECK(held.size() == (workers == 0 ? 3u : 6u)); // those in flight and two more
        for (std::size_t i = 0; i < held.size(); ++i) {
            CHECK(std::memcmp(held[i].host(), copies[i].data(), copies[i].size()) == 0);
        }
        held.erase(held.begin());
        CHECK(ring.next()->size() == 4); // it goes on
    }
}

TEST_CASE("samples that fail are named and counted, and batches are shorter by them") {
    const auto some_fail = [](loader::work& w) {
        if (w.sample == 3) throw loader::sample_error(loader::failure_kind::truncated, "cut short");
        if (w.sample == 5) throw std::runtime_error("a stage of the user's");
    };
    for (const std::size_t workers : {0u, 2u}) {
        loader::pipeline faulty = test::numbered(12, some_fail);
        faulty.name = [](std::size_t sample) { return "file" + std::to_string(sample); };
        loader::options how = with(workers);
        how.shuffle = false;
        loader::data_loader counted(faulty, how);
        const test::delivered all = test::drain(counted, 0);
        REQUIRE(all.samples.size() == 3);
        CHECK(all.samples[0] == std::vector<std::size_t>{0, 1, 2});
        CHECK(all.samples[1] == std::vector<std::size_t>{4, 6, 7});
        CHECK(all.samples[2] == std::vector<std::size_t>{8, 9, 10, 11});
        const loader::failure_log& log = counted.statistics().failures;
        CHECK(log.total() == 2);
        CHECK(log.count(loader::failure_kind::truncated) == 1);
        CHECK(log.count(loader::failure_kind::other) == 1);
        REQUIRE(log.named.size() == 2);
        CHECK(log.named[0].name == "file3");
        CHECK(log.named[1].message == "a stage of the user's");
        CHECK(log.text() == "2 failed: 1 truncated, 1 other; first file3: cut short");
    }
}

TEST_CASE(
    "a batch of which nothing is left is passed over, and a data set of which nothing can be loaded is an error") {
    const auto first_batch_fails = [](loader::work& w) {
        if (w.sample < 4) throw loader::sample_error(loader::failure_kind::missing, "gone");
    };
    const auto all_fail = [](loader::work&) { throw loader::sample_error(loader::failure_kind::empty, "empty"); };
    for (const std::size_t workers : {0u, 2u}) {
        loader::options how = with(workers);
        how.shuffle = false;
        loader::data_loader some(test::numbered(12, first_batch_fails), how);
        CHECK(test::drain(some, 0).indices == std::vector<std::size_t>{1, 2});
        loader::data_loader none(test::numbered(12, all_fail), how);
        CHECK_THROWS_WITH_AS(test::drain(none, 0), doctest::Contains("12 empty; first sample 0: empty"), error);
        how.epoch_samples = 1000000; // does not go on for ever
        loader::data_loader endless(test::numbered(12, all_fail), how);
        CHECK_THROWS_AS(test::drain(endless, 0), error);
        CHECK(endless.statistics().failures.total() < 100);
    }
}

TEST_CASE("what a worker cannot go on after is thrown by next(), and the loader can be used again") {
    for (const std::size_t workers : {0u, 2u}) {
        std::atomic<bool> broken{true};
        loader::pipeline faulty = test::numbered(12);
        faulty.make = [&, make = faulty.make] {
            if (broken) throw std::runtime_error("no decoder here");
            loader::stages own = make();
            own.assemble = [&](std::byte*, std::size_t count) {
                if (count != 4) throw std::runtime_error("odd batch");
            };
            return own;
        };
        loader::data_loader recovering(faulty, with(workers));
        CHECK_THROWS_WITH_AS(test::drain(recovering, 0), "no decoder here", std::runtime_error);
        for (int again = 0; again < 5; ++again) // the epoch is over
            CHECK_THROWS_WITH_AS((void)recovering.next(), "no decoder here", std::runtime_error);
        broken = false;
        CHECK(test::drain(recovering, 0).samples.size() == 3);
        loader::data_loader odd(faulty, with(workers, 5));
        CHECK_THROWS_WITH_AS(test::drain(odd, 0), "odd batch", std::runtime_error);
    }
}

TEST_CASE("an empty data set and impossible options are usage errors") {
    CHECK_THROWS_AS(loader::data_loader(test::numbered(0), with(1)), usage_error);
    CHECK_THROWS_AS(loader::data_loader(test::numbered(5), with(1, 0)), usage_error);
    loader::options how = with(1);
    how.prefetch_factor = 0;
    CHECK_THROWS_AS(loader::data_loader(test::numbered(5), how), usage_error);
}

TEST_CASE("memory that cannot be had is an error that names the size, and nothing leaks") {
    int live = 0;
    int left = 3;
    loader::host_memory scarce;
    scarce.allocate = [&](std::size_t bytes) {
        if (left-- == 0) throw error("no " + std::to_string(bytes) + " bytes");
        ++live;
        return new std::byte[bytes];
    };
    scarce.release = [&](std::byte* data, std::size_t) {
        --live;
        delete[] data;
    };
    CHECK_THROWS_WITH_AS(loader::data_loader(test::numbered(5), with(2), scarce), "no 64 bytes", error);
    CHECK(live == 0);
    left = 100;
    {
        loader::data_loader enough(test::numbered(5), with(2), scarce);
        (void)test::drain(enough, 0);
        CHECK(live == 6);
    }
    CHECK(live == 0);
}

TEST_CASE("stages, processor time and bytes are accounted for, and a wait is charged to what it was for") {
    loader::pipeline slow = test::numbered(16);
    slow.make = [] {
        loader::stages own;
        own.read = [](loader::work& w) {
            std::this_thread::sleep_for(1ms);
            w.encoded.resize(100);
        };
        own.decode = [](loader::work&) { std::this_thread::sleep_for(15ms); };
        own.transform = [](loader::work&, std::byte*) {};
        return own;
    };
    for (const std::size_t workers : {0u, 2u}) {
        for (const std::size_t batch : {4u, 16u}) {
            loader::data_loader timed(slow, with(workers, batch));
            timed.begin_epoch(0);
            while (timed.next()) {
            }
            const loader::epoch_statistics& seen = timed.statistics();
            const auto ns = [&](loader::stage one) { return seen.stage_ns[static_cast<std::size_t>(one)]; };
            CHECK(seen.bytes_read == 1600);
            CHECK(seen.bytes_built == 16 * 16);
            CHECK(ns(loader::stage::read) >= 16e6);
            CHECK(ns(loader::stage::decode) >= 240e6);
            CHECK(seen.cpu_ns < 0.5 * ns(loader::stage::decode)); // it slept
            CHECK(seen.cpu_ns > 0);
            CHECK(seen.first_batch_ns >= 15e6);
            CHECK(seen.start_ns > 0);
            CHECK(seen.start_ns < seen.first_batch_ns);
            double attributed = 0, all = 0;
            for (const double part : seen.waited_for_ns) attributed += part;
            for (const double part : seen.stage_ns) all += part;
            CHECK(attributed == doctest::Approx(seen.wait_ns).epsilon(1e-9));
            if (workers == 0) CHECK(seen.wait_ns >= all); // it was its own worker
            if (batch != 16) continue;
            for (std::size_t i = 0; i < loader::stage_count; ++i) { // one batch: the shares are its own
                CHECK(seen.waited_for_ns[i] == doctest::Approx(seen.wait_ns * seen.stage_ns[i] / all).epsilon(1e-9));
            }
        }
    }
}
