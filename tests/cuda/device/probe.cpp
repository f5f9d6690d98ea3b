// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "device.hpp"
#include "plumbline/cuda/catalogue.hpp"
#include "plumbline/stats/descriptive.hpp"

using namespace plumbline;
using namespace std::chrono_literals;

namespace {

measure::procedure_result run(const char* id, std::chrono::nanoseconds budget = 300ms) {
    const auto made = cuda::make_probe(workload::probe::parse(id));
    REQUIRE(static_cast<bool>(made.measure));
    const measure::procedure_result found = made.measure(device(), {budget});
    for (const measure::metric& each : found.metrics) {
        std::printf(
            "  %s %s: median %.4g %s of %zu, sd %.2f %%\n", id, each.name.c_str(), stats::median(each.samples),
            each.unit.c_str(), each.samples.size(),
            each.samples.size() < 2 ? 0.0 : 100 * stats::standard_deviation(each.samples) / stats::mean(each.samples));
    }
    return found;
}

double median_of(const measure::procedure_result& found, std::size_t at = 0) {
    return stats::median(found.metrics.at(at).samples);
}

/// Verifies a probe that is a kernel and returns the median time of a launch, ns.
double verified_time(const std::string& id) {
    cuda::backend& on = device();
    const auto made = cuda::make_probe(workload::probe::parse(id));
    const measure::prepared_kernel ready = made.prepare(on);
    ready.verify();
    measure::recording_request how;
    how.launches = 2;
    how.slots = ready.slots;
    auto tape = on.record(ready.run, how);
    on.idle(200ms);
    std::vector<double> times;
    for (const measure::sample& each : on.play(tape, small_tests() ? 2 : 8)) times.push_back(each.elapsed_ns / 2);
    const double time = stats::median(times);
    const double rate = made.what.bytes / time;
    std::printf("  %-26s %9.2f us%s%.1f GB/s, %s\n", id.c_str(), time / 1e3, rate > 0 ? ", " : "; ", rate,
                ready.evidence().implementation.c_str());
    return time;
}

} // namespace

TEST_CASE("the canaries compute what they must on every warp, and a wrong bit is caught") {
    for (const char* id : {"probe/canary_mma", "probe/canary_fma"}) {
        CAPTURE(id);
        const double time = verified_time(id);
        if (!small_tests()) CHECK(time > 50e3);
        if (!small_tests()) CHECK(time < 20e6);
    }
    cuda::canary::compute canary(device(), workload::probe::of(workload::probe::kind::canary_mma), 1);
    std::vector<std::uint32_t> sums(64, 0);
    sums[0] = sums[32] = cuda::canary::mma_warp_sum;
    CHECK_NOTHROW(canary.require_warp_sums(sums));
    sums[63] = 1;
    CHECK_THROWS_WITH_AS(canary.require_warp_sums(sums), doctest::Contains("warp 1 of 2"), verification_error);
}

TEST_CASE("copies are right at any size, and as fast as copies are") {
    std::vector<std::string> ids{"probe/canary_copy/1MiB", "probe/canary_copy/65552B", "probe/device_copy/1000002B",
                                 "probe/h2d_pinned/1MiB", "probe/d2h_pinned/1000002B"};
    for (const std::string& id : ids) {
        CAPTURE(id);
        CHECK(verified_time(id) > 0);
    }
    CHECK_THROWS_AS(static_cast<void>(verified_time("probe/canary_copy/1000001B")), unsupported_error);
    if (small_tests()) return;
    for (const char* id : {"probe/canary_copy", "probe/device_copy", "probe/device_copy/64MiB", "probe/h2d_pinned",
                           "probe/d2h_pinned"}) {
        CAPTURE(id);
        const double time = verified_time(id);
        const double rate = workload::probe::describe(workload::probe::parse(id)).bytes / time * 1e9;
        CHECK(rate > 1e9);
        CHECK(rate < 20e12);
    }
}

TEST_CASE("launching costs microseconds, and a graph of 20 kernels less than 20 launches") {
    const auto launch = run("probe/launch");
    const auto graph = run("probe/graph_launch");
    REQUIRE(launch.metrics.size() == 2);
    CHECK(launch.metrics[1].name == "enqueue");
    if (small_tests()) return;
    CHECK(median_of(launch) > 1e3);
    CHECK(median_of(launch) < 1e6);
    CHECK(median_of(launch, 1) < median_of(launch));
    CHECK(median_of(graph, 1) < 20 * median_of(launch, 1));
}

TEST_CASE("pageable copies are verified and slower than light") {
    for (const char* id : {"probe/h2d_pageable/16MiB", "probe/d2h_pageable/16MiB", "probe/h2d_pageable/1000003B"}) {
        CAPTURE(id);
        const auto found = run(id, 100ms);
        CHECK(found.verified);
        CHECK(found.metrics.at(0).samples.size() >= 10);
        const auto bytes = workload::probe::describe(workload::probe::parse(id)).bytes;
        CHECK(bytes / median_of(found) < 1000); // GB/s
    }
}

TEST_CASE("a sleeping thread wakes within milliseconds, and waking the device is seen") {
    if (small_tests()) return;
    const auto wake = run("probe/host_wake");
    CHECK(median_of(wake) < 10e6);
    const auto gap = run("probe/idle_gap", 4s);
    REQUIRE(gap.metrics.size() == 4);
    for (const measure::metric& each : gap.metrics) CHECK(each.samples.size() >= 5);
}

TEST_CASE("the driver compiles what it has not seen and remembers what it has") {
    const auto fresh = run("probe/cold_jit", 500ms);
    const auto cached = run("probe/cold_jit_cached", 200ms);
    CHECK(fresh.verified);
    const char* off = std::getenv("CUDA_CACHE_DISABLE");
    if (off == nullptr && !small_tests()) CHECK(median_of(cached) < median_of(fresh));
}

TEST_CASE("a cold start is measured in a process of its own") {
    if (small_tests()) return;
    const auto context = run("probe/cold_context", 3s);
    CHECK(median_of(context) > 1e6);
    CHECK(median_of(context) < 60e9);
    const auto first = run("probe/cold_first_launch", 3s);
    REQUIRE(first.metrics.size() == 2);
    CHECK(median_of(first) > 0);
    CHECK(median_of(first, 1) > median_of(first));
}

TEST_CASE("a soak reports a series with clocks, and its drift") {
    if (small_tests()) return;
    const auto found = cuda::machine::soak(device(), 3s);
    REQUIRE(found.metrics.size() == 2);
    const measure::metric& time = found.metrics[0];
    CHECK(time.samples.size() >= 4);
    REQUIRE(time.raw.size() == time.samples.size());
    for (std::size_t i = 0; i < time.raw.size(); ++i) {
        std::printf("  soak: %.1f us at %.0f MHz\n", time.samples[i] / 1e3, time.raw[i].clock_mhz.value_or(0));
    }
    CHECK(found.metrics[1].name == "drift");
    CHECK(found.metrics[1].samples.at(0) > 0.5);
    CHECK(found.metrics[1].samples.at(0) < 2);
    device().idle(1s); // leaves the next test a rested device
}
