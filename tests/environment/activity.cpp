// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "fake_nvml.hpp"
#include "plumbline/environment/nvidia/activity.hpp"

using namespace plumbline_tests;

namespace {

constexpr unsigned self = 4242;
constexpr unsigned long long gib = 1ull << 30;

struct bench {
    fake_nvml nvml;
    nvidia::nvml_api api = nvml.table();
    fake_gpu& gpu = nvml.gpus[0];
    nvidia::device_handle handle = nullptr;

    bench() { REQUIRE(api.handle_by_index(0, &handle) == 0); }
    nvidia::activity look(const nvidia::activity* earlier = nullptr) { return nvidia::look(api, handle, earlier); }
    nvidia::process_info process(unsigned pid, unsigned long long bytes = gib) { return {pid, bytes, 0, 0}; }
    nvidia::process_sample sample(unsigned pid, unsigned long long at, unsigned sm) { return {pid, at, sm, 0, 0, 0}; }
};

} // namespace

TEST_CASE("a look tells unknown from none") {
    bench b;
    auto seen = b.look();
    REQUIRE(seen.processes);
    CHECK(seen.processes->empty());
    REQUIRE(seen.work);
    CHECK(seen.work->empty());
    CHECK(seen.utilization_percent == 0u);
    b.gpu.processes.reset();
    b.gpu.work.reset();
    b.nvml.failing = {{"nvmlDeviceGetUtilizationRates", nvidia::code::not_supported},
                      {"nvmlDeviceGetMemoryInfo_v2", nvidia::code::not_supported}};
    seen = b.look();
    CHECK_FALSE(seen.processes);
    CHECK_FALSE(seen.work);
    CHECK_FALSE(seen.utilization_percent);
    CHECK_FALSE(seen.used_bytes);
    CHECK(nvidia::foreign_load_between(seen, seen, {{self}, std::nullopt}).found == nvidia::foreign_load::unknown);
}

TEST_CASE("memory of a process that is not available is unknown, and more processes than expected are all read") {
    bench b;
    std::vector<nvidia::process_info> many;
    for (unsigned pid = 1; pid <= 100; ++pid) many.push_back(b.process(pid, pid == 1 ? ~0ull : gib));
    b.gpu.processes = many;
    const auto seen = b.look();
    REQUIRE(seen.processes);
    CHECK(seen.processes->size() == 100);
    CHECK_FALSE(seen.processes->front().used_bytes);
    CHECK(seen.processes->back().used_bytes == gib);
}

TEST_CASE("a lone worker is somebody else where the list of processes has our own number") {
    bench b;
    nvidia::process_info ours{};
    ours.pid = self;
    nvidia::process_info other{};
    other.pid = 777;
    b.gpu.processes = {ours, other};
    const auto before = b.look();
    b.gpu.work = {b.sample(777, 1000, 97)}; // seen on an H200: one report a second, of the busiest process
    const auto after = b.look(&before);
    const auto finding = nvidia::foreign_load_between(before, after, {{self}, std::nullopt});
    CHECK(finding.found == nvidia::foreign_load::yes);
    CHECK(finding.why == "process 777 kept up to 97 % of the SMs busy");
}

TEST_CASE("work of another process is foreign load, our own is not") {
    bench b;
    const auto before = b.look();
    b.gpu.work = {b.sample(self, 1000, 99)};
    auto after = b.look(&before);
    CHECK(nvidia::foreign_load_between(before, after, {{self}, 0}).found == nvidia::foreign_load::no);
    b.gpu.work->push_back(b.sample(777, 1100, 35));
    b.gpu.work->push_back(b.sample(777, 1200, 60));
    after = b.look(&before);
    const auto finding = nvidia::foreign_load_between(before, after, {{self}, 0});
    CHECK(finding.found == nvidia::foreign_load::yes);
    CHECK(finding.why == "process 777 kept up to 60 % of the SMs busy");
    // A process that was seen but did nothing does not count.
    b.gpu.work = {b.sample(self, 1000, 99), b.sample(777, 1000, 0)};
    after = b.look(&before);
    CHECK(nvidia::foreign_load_between(before, after, {{self}, 0}).found == nvidia::foreign_load::no);
}

TEST_CASE("work from before the first look is not held against the run") {
    bench b;
    b.gpu.work = {b.sample(777, 1000, 80)};
    const auto before = b.look();
    CHECK(before.newest_sample_us == 1000);
    b.gpu.work->push_back(b.sample(self, 2000, 90));
    const auto after = b.look(&before);
    REQUIRE(after.work);
    CHECK(after.work->size() == 1);
    CHECK(nvidia::foreign_load_between(before, after, {{self}, 0}).found == nvidia::foreign_load::no);
}

TEST_CASE("our own utilisation between two benchmarks is not held against anybody") {
    bench b;
    b.gpu.busy = 98; // the benchmark before
    const auto before = b.look();
    b.gpu.work = {b.sample(self, 1000, 99)};
    const auto after = b.look(&before);
    CHECK(nvidia::foreign_load_between(before, after, {{self}, std::nullopt}).found == nvidia::foreign_load::no);
    b.gpu.work.reset();
    b.gpu.processes.reset();
    const auto blind = b.look();
    CHECK(nvidia::foreign_load_between(blind, blind, {{self}, std::nullopt}).found == nvidia::foreign_load::unknown);
}

TEST_CASE("a process that came without working is no load where work can be read") {
    bench b;
    const auto before = b.look();
    b.gpu.processes = {b.process(self), b.process(600)};
    b.gpu.work = {b.sample(self, 1000, 99)};
    const auto after = b.look(&before);
    CHECK(nvidia::foreign_load_between(before, after, {{self}, std::nullopt}).found == nvidia::foreign_load::no);
}

TEST_CASE("a driver that repeats what it has told before is not believed twice") {
    bench b;
    b.gpu.work = {b.sample(777, 1000, 80)};
    const auto before = b.look();
    b.gpu.work->push_back(b.sample(self, 2000, 90));
    b.api.process_utilization = [inner = b.api.process_utilization](auto gpu, auto* into, auto* count, auto) {
        return inner(gpu, into, count, 0);
    };
    const auto after = b.look(&before);
    CHECK(nvidia::foreign_load_between(before, after, {{self}, 0}).found == nvidia::foreign_load::no);
}

TEST_CASE("in a container our own number is another one: one worker may be us, two cannot both be") {
    bench b;
    const auto before = b.look();
    b.gpu.work = {b.sample(90001, 1000, 99)};
    b.gpu.memory_used = 2 * gib;
    auto after = b.look(&before);
    CHECK(nvidia::foreign_load_between(before, after, {{self}, std::int64_t(2 * gib), true}).found ==
          nvidia::foreign_load::no);
    b.gpu.work->push_back(b.sample(90002, 1000, 40));
    after = b.look(&before);
    CHECK(nvidia::foreign_load_between(before, after, {{self}, std::int64_t(2 * gib), true}).found ==
          nvidia::foreign_load::yes);
}

TEST_CASE("without work per process, one that came or left in between has worked in between") {
    bench b;
    b.gpu.work.reset();
    b.gpu.processes = {b.process(500)};
    const auto before = b.look();
    b.gpu.processes = {b.process(500), b.process(self)};
    CHECK(nvidia::foreign_load_between(before, b.look(), {{self}, std::nullopt}).found ==
          nvidia::foreign_load::unknown);
    b.gpu.processes = {b.process(500), b.process(600), b.process(self)};
    CHECK(nvidia::foreign_load_between(before, b.look(), {{self}, std::nullopt}).why ==
          "process 600 started using the GPU");
    b.gpu.processes = {b.process(self)};
    CHECK(nvidia::foreign_load_between(before, b.look(), {{self}, std::nullopt}).why ==
          "process 500 stopped using the GPU");
    b.gpu.processes = std::vector<nvidia::process_info>{};
    const auto alone = b.look();
    b.gpu.processes = {b.process(self)};
    CHECK(nvidia::foreign_load_between(alone, b.look(), {{self}, std::nullopt}).found == nvidia::foreign_load::no);
}

TEST_CASE("without any list, memory beyond our own and utilisation before us decide") {
    bench b;
    b.gpu.work.reset();
    b.gpu.processes.reset();
    const auto before = b.look();
    b.gpu.memory_used = 3 * gib;
    const auto after = b.look();
    CHECK(nvidia::foreign_load_between(before, after, {{self}, std::int64_t(3 * gib), true}).found ==
          nvidia::foreign_load::no);
    CHECK(nvidia::foreign_load_between(before, after, {{self}, std::int64_t(gib), true}).found ==
          nvidia::foreign_load::yes);
    CHECK(nvidia::foreign_load_between(before, after, {{self}, std::nullopt}).found == nvidia::foreign_load::unknown);
    // Somebody freed memory while we ran.
    CHECK(nvidia::foreign_load_between(after, before, {{self}, 0}).found == nvidia::foreign_load::yes);
    // The small context of a tool that lists GPUs is no load.
    b.gpu.memory_used = 3 * gib + (300ull << 20);
    CHECK(nvidia::foreign_load_between(before, b.look(), {{self}, std::int64_t(3 * gib), true}).found ==
          nvidia::foreign_load::no);
    b.gpu.busy = 40;
    const auto busy = b.look();
    const auto finding = nvidia::foreign_load_between(busy, busy, {{self}, 0, true});
    CHECK(finding.found == nvidia::foreign_load::yes);
    CHECK(finding.why.find("40 % busy before") != std::string::npos);
}
