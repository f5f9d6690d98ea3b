// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "device.hpp"
#include "plumbline/cuda/kernel_names.hpp"
#include "plumbline/stats/descriptive.hpp"

using namespace plumbline;
using namespace std::chrono_literals;

namespace {

measure::recording_request request(std::size_t launches, std::size_t slots, bool graph) {
    measure::recording_request how;
    how.launches = launches;
    how.slots = slots;
    how.graph = graph;
    return how;
}

std::vector<double> elapsed(const std::vector<measure::sample>& samples) {
    std::vector<double> times;
    for (const measure::sample& each : samples) times.push_back(each.elapsed_ns);
    return times;
}

/// The backend still measures: after a failure nothing may be left held, captured or broken.
void require_usable() {
    cuda::backend& on = device();
    auto tape = on.record([&](std::size_t) { on.spin(50us); }, request(2, 1, true));
    const auto taken = on.play(tape, 3);
    REQUIRE(taken.size() == 3);
    for (double time : elapsed(taken)) CHECK(time >= 95e3);
}

} // namespace

TEST_CASE("a sample has the length of its work, a clock and a host time") {
    cuda::backend& on = device();
    CHECK(on.timer_resolution_ns() >= 1);
    CHECK(on.timer_resolution_ns() <= 1100);
    for (bool graph : {true, false}) {
        auto tape = on.record([&](std::size_t) { on.spin(500us); }, request(2, 1, graph));
        for (const measure::sample& each : on.play(tape, 5)) {
            CHECK(each.elapsed_ns >= 0.99e6);
            if (!small_tests()) CHECK(each.elapsed_ns <= 1.05e6);
            REQUIRE(each.clock_mhz.has_value());
            CHECK(*each.clock_mhz > 100);
            CHECK(*each.clock_mhz < 4000);
            REQUIRE(each.enqueue_ns.has_value());
            CHECK(*each.enqueue_ns > 0);
            if (!small_tests()) CHECK(*each.enqueue_ns < 0.5e6);
        }
    }
}

TEST_CASE("the clock is that of the SMs: the same in a short and in a long sample") {
    cuda::backend& on = device();
    if (small_tests()) return;
    std::vector<double> clocks;
    for (auto length : {100us, 200us, 400us, 2000us}) {
        auto tape = on.record([&](std::size_t) { on.spin(length); }, request(1, 1, true));
        static_cast<void>(on.play(tape, 5));
        std::vector<double> here;
        for (const measure::sample& each : on.play(tape, 15)) here.push_back(each.clock_mhz.value_or(0));
        clocks.push_back(stats::median(here));
        std::printf("  clock in samples of %lld us: %.2f MHz, spread %.3f %%\n", static_cast<long long>(length.count()),
                    clocks.back(), 100 * stats::standard_deviation(here) / clocks.back());
    }
    for (double clock : clocks) CHECK(clock == doctest::Approx(clocks.back()).epsilon(0.003));
}

TEST_CASE("no host delay between two launches gets into a sample") {
    cuda::backend& on = device();
    if (!on.can_hold()) {
        MESSAGE("launches block the host here, so no stream can be held");
        return;
    }
    const auto slow_host = [&](std::size_t) {
        std::this_thread::sleep_for(2ms);
        on.spin(20us);
    };
    auto tape = on.record(slow_host, request(4, 1, false));
    for (const measure::sample& each : on.play(tape, 3)) {
        CHECK(each.elapsed_ns >= 80e3);
        CHECK(each.elapsed_ns < 300e3);           // not 8 ms
        CHECK(each.enqueue_ns.value_or(0) > 8e6); // but the host did take that long
    }
}

TEST_CASE("a stream held for too long frees itself, the play fails, and the backend lives on") {
    cuda::backend& on = device();
    if (!on.can_hold()) return;
    bool slow = false; // recording launches too, and is not what is slow here
    auto tape = on.record(
        [&](std::size_t) {
            if (slow) std::this_thread::sleep_for(1200ms);
            on.spin(1us);
        },
        request(1, 1, false));
    slow = true;
    const auto begin = std::chrono::steady_clock::now();
    CHECK_THROWS_WITH_AS(static_cast<void>(on.play(tape, 1)), doctest::Contains("was held for"), error);
    CHECK(std::chrono::steady_clock::now() - begin < 10s);
    require_usable();
}

TEST_CASE("a launch that throws leaves neither a held stream nor a capture behind") {
    cuda::backend& on = device();
    int calls = 0;
    const auto fails_later = [&](std::size_t) {
        if (++calls > 2) throw std::runtime_error("planted");
        on.spin(1us);
    };
    auto tape = on.record(fails_later, request(2, 1, false));
    CHECK_THROWS_WITH(static_cast<void>(on.play(tape, 1)), "planted");
    require_usable();
    calls = 0;
    CHECK_THROWS_WITH(static_cast<void>(on.record(fails_later, request(8, 1, true))), "planted");
    require_usable();
}

TEST_CASE("what cannot be captured is refused with the remedy, and the stream can be used again") {
    cuda::backend& on = device();
    const auto waits = [&](std::size_t) { on.synchronize(); };
    CHECK_THROWS_WITH_AS(static_cast<void>(on.record(waits, request(1, 1, true))), doctest::Contains("/stream"),
                         cuda::cuda_error);
    require_usable();
}

TEST_CASE("launches rotate over the slots without a break between samples") {
    cuda::backend& on = device();
    std::vector<std::size_t> seen;
    const auto one = [&](std::size_t slot) {
        seen.push_back(slot);
        on.spin(1us);
    };
    auto graphs = on.record(one, request(3, 4, true));
    CHECK(graphs.graphs() == 4);
    CHECK(seen == std::vector<std::size_t>{0, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}); // the first 0: loaded beforehand
    seen.clear();
    CHECK(on.record(one, request(8, 4, true)).graphs() == 1);
    CHECK(on.record(one, request(6, 4, true)).graphs() == 2);
    seen.clear();
    auto stream = on.record(one, request(3, 4, false));
    static_cast<void>(on.play(stream, 2));
    static_cast<void>(on.play(stream, 1));
    CHECK(seen == std::vector<std::size_t>{0, 0, 1, 2, 3, 0, 1, 2, 3, 0});
}

TEST_CASE("more samples than the launch queue holds take several holds") {
    cuda::backend& on = device();
    const std::size_t count = small_tests() ? 200 : 2000;
    auto graph = on.record([&](std::size_t) { cuda::kernels::nothing(on.stream()); }, request(1, 1, true));
    CHECK(on.play(graph, count).size() == count);
    auto stream = on.record([&](std::size_t) { cuda::kernels::nothing(on.stream()); }, request(300, 1, false));
    CHECK(on.play(stream, 10).size() == 10);
    auto deep = on.record([&](std::size_t) { cuda::kernels::nothing(on.stream()); }, request(1000, 1, true));
    CHECK(on.play(deep, 20).size() == 20);
    if (small_tests()) return;
    const double launch = stats::median(elapsed(on.play(graph, 50)));
    const double many = stats::median(elapsed(on.play(deep, 10))) / 1000;
    const double single = stats::median(elapsed(on.play(stream, 10))) / 300;
    std::printf("  an empty sample: %.0f ns; an empty kernel in a graph: %.0f ns, in a stream: %.0f ns\n", launch, many,
                single);
    CHECK(many < 5000);
    CHECK(launch < 20000);
}

TEST_CASE("a planted spin costs what it says") {
    cuda::backend& on = device();
    if (small_tests()) return;
    std::vector<double> lengths;
    for (int microseconds : {0, 2, 4, 10}) {
        const auto one = [&](std::size_t) {
            cuda::kernels::spin(on.stream(), 200000);
            on.spin(std::chrono::microseconds(microseconds));
        };
        auto tape = on.record(one, request(1, 1, true));
        lengths.push_back(stats::median(elapsed(on.play(tape, 30))));
    }
    std::printf("  planted 2, 4 and 10 us, seen %.2f, %.2f and %.2f us\n", (lengths[1] - lengths[0]) / 1e3,
                (lengths[2] - lengths[0]) / 1e3, (lengths[3] - lengths[0]) / 1e3);
    CHECK(lengths[1] - lengths[0] == doctest::Approx(2000).epsilon(0.6));
    CHECK(lengths[3] - lengths[0] == doctest::Approx(10000).epsilon(0.15));
}

TEST_CASE("what is enqueued can be told by name without running it") {
    cuda::backend& on = device();
    const cuda::device_memory memory(64);
    const cuda::kernel_list found = cuda::list_kernels(on, [&] {
        cuda::kernels::nothing(on.stream());
        cuda::check(cudaMemsetAsync(memory.data(), 0, 64, on.stream()), "cudaMemsetAsync");
        on.spin(1us);
    });
    const auto& names = found.names;
    int driver_version = 0;
    REQUIRE(cudaDriverGetVersion(&driver_version) == cudaSuccess);
    if (driver_version >= 12030) {
        CHECK(found.source == "graph");
        REQUIRE(names.size() == 3);
        CHECK(names[0].find("nothing") != std::string::npos);
        CHECK(names[1] == "memset");
        CHECK(names[2].find("spin") != std::string::npos);
    }
    CHECK(cuda::list_kernels(on, [&] { on.synchronize(); }).names.empty());
    CHECK(cuda::list_kernels(on, [] {}).names.empty());
    require_usable();
}

TEST_CASE("what a backend shares is made once") {
    struct counted {
        int value = 0;
    };
    ++device().shared<counted>().value;
    CHECK(device().shared<counted>().value == 1);
}

TEST_CASE("a device that does not exist is a usage error that says how many there are") {
    CHECK_THROWS_WITH_AS(cuda::backend(99), doctest::Contains("there is no CUDA device 99"), usage_error);
}
