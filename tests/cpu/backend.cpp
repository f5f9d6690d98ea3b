// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/cpu/backend.hpp"
#include "plumbline/cpu/memory.hpp"
#include "plumbline/measure/engine.hpp"
#include "plumbline/measure/self_test.hpp"

using namespace plumbline;
using std::chrono::microseconds;

TEST_CASE("a sample times all of its launches, and the rotation goes on over samples and plays") {
    cpu::backend host;
    std::vector<std::size_t> slots;
    auto tape = host.record(
        [&](std::size_t slot) {
            slots.push_back(slot);
            host.spin(microseconds(200));
        },
        {2, 3, true});
    const auto first = host.play(tape, 2);
    const auto second = host.play(tape, 1);
    CHECK(slots == std::vector<std::size_t>{0, 1, 2, 0, 1, 2});
    REQUIRE(first.size() == 2);
    REQUIRE(second.size() == 1);
    for (const measure::sample& each : first) {
        CHECK(each.elapsed_ns >= 400'000);
        CHECK_FALSE(each.clock_mhz);
    }
}

TEST_CASE("the timer's resolution is what it really is: not zero, and far below a sample") {
    const cpu::backend host;
    CHECK(host.timer_resolution_ns() > 0);
    CHECK(host.timer_resolution_ns() < 10'000);
}

TEST_CASE("spin and idle take as long as they are told") {
    cpu::backend host;
    for (const auto wait : {&cpu::backend::idle}) {
        const auto begin = cpu::backend::clock::now();
        (host.*wait)(microseconds(2000));
        CHECK(cpu::backend::clock::now() - begin >= microseconds(2000));
    }
    const auto begin = cpu::backend::clock::now();
    host.spin(microseconds(2000));
    CHECK(cpu::backend::clock::now() - begin >= microseconds(2000));
}

TEST_CASE("an error of a launch comes through, and the engine makes it a failed benchmark") {
    cpu::backend host;
    auto tape = host.record([](std::size_t) { throw std::runtime_error("broken"); }, {});
    CHECK_THROWS_WITH((void)host.play(tape, 1), "broken");
}

TEST_CASE("the engine finds a planted slowdown of 5 % on the real clock") {
    cpu::backend host;
    measure::engine<cpu::backend> engine(host);
    measure::benchmark<cpu::backend> plain;
    plain.what.id = "test/spin";
    plain.prepare = [](cpu::backend& on) {
        measure::prepared_kernel ready;
        ready.run = [b = &on](std::size_t) { b->spin(microseconds(100)); };
        return ready;
    };
    const auto control = engine.measure(measure::plant_slowdown(plain, 0.0));
    const auto planted = engine.measure(measure::plant_slowdown(plain, 0.05));
    const double ratio = stats::median(planted[0].sessions[0].samples) / stats::median(control[0].sessions[0].samples);
    CHECK(ratio > 1.04);
    CHECK(ratio < 1.06);
}

TEST_CASE("cold buffer sets: three times the cache, at least two, as far as memory goes") {
    constexpr std::size_t mib = std::size_t{1} << 20;
    CHECK(cpu::cold_slots(mib, 32 * mib, 1024 * mib) == 97);
    CHECK(cpu::cold_slots(64 * mib, 32 * mib, 4096 * mib) == 2);
    CHECK(cpu::cold_slots(500 * mib, 32 * mib, 16384 * mib) == 2);
    CHECK(cpu::cold_slots(1000 * mib, 32 * mib, 16384 * mib) == 1); // 1 GiB is the most
    CHECK(cpu::cold_slots(mib, 32 * mib, 40 * mib) == 10);
    CHECK(cpu::cold_slots(1000 * mib, 32 * mib, 100 * mib) == 1);
    CHECK(cpu::cold_slots(0, 32 * mib, 1024 * mib) > 1);
    CHECK(cpu::cold_slots(13000, 480 * mib, 16384 * mib) == 1024); // each set is touched before anything is timed
    CHECK(cpu::last_level_cache_bytes() >= mib / 4);
    CHECK(cpu::free_memory_bytes() > mib);
}

TEST_CASE("a buffer is aligned and of its size, and too large a one is an error that says so") {
    const cpu::buffer small(100);
    CHECK(small.size() == 100);
    CHECK(reinterpret_cast<std::uintptr_t>(small.data()) % 4096 == 0);
    CHECK_THROWS_AS(cpu::buffer(std::size_t{1} << 60), error);
}
