// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/cpu/catalogue.hpp"
#include "plumbline/measure/engine.hpp"

using namespace plumbline;

namespace {

/// The family of that name in the catalogue.
measure::family<cpu::backend> family(const std::string& name) {
    for (const auto& each : cpu::catalogue()) {
        if (each.name == name) return each;
    }
    FAIL("no family " << name);
    return {};
}

measure::options quick() {
    measure::options how;
    how.time.total = std::chrono::milliseconds(100);
    how.rules.min_clean = 5;
    return how;
}

} // namespace

TEST_CASE("the canary's frozen loop does what the plain loop does") {
    std::vector<float> values(cpu::canary::fma_values);
    std::vector<float> expected(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = expected[i] = static_cast<float>(i) * 0.25f - 3;
    cpu::canary::fma_chains(values.data(), 0.5f, 0.75f, 7);
    for (float& x : expected) {
        // Exact in float: small numbers of few bits, so contraction to fma makes no difference either.
        for (int i = 0; i < 7; ++i) x = x * 0.5f + 0.75f;
    }
    CHECK(values == expected);
}

TEST_CASE("the canary's code is pinned: whoever changes it must raise the probe's revision") {
    if (std::string(cpu::canary::code_kind) != "x86_64-sse2") return;
    CHECK(cpu::canary::fma_code_hash() == "2587f74f9e02a801");
    CHECK(cpu::canary::copy_code_hash() == "cd8192df551c02c1");
}

TEST_CASE("the canary's copy copies exactly its lines") {
    cpu::buffer from(256);
    cpu::buffer to(256);
    for (std::size_t i = 0; i < 256; ++i) {
        from.data()[i] = static_cast<std::byte>(i);
        to.data()[i] = std::byte{0xee};
    }
    cpu::canary::copy_lines(from.data(), to.data(), 3);
    for (std::size_t i = 0; i < 256; ++i) CHECK(to.data()[i] == (i < 192 ? from.data()[i] : std::byte{0xee}));
}

TEST_CASE("every probe is measured or says why not") {
    cpu::backend host;
    measure::engine<cpu::backend> engine(host);
    for (const workload::probe::traits& each : workload::probe::all_kinds) {
        workload::probe::params p = workload::probe::of(each.what);
        if (p.bytes != 0) p.bytes = 4 * workload::probe::mebibyte;
        if (each.traffic == 2) p.mode.hot = true;
        const std::string id = workload::probe::id(p);
        CAPTURE(id);
        const auto results = engine.measure(family("probe").make(id), quick());
        for (const result::result& r : results) {
            CHECK(r.what.id == id);
            CAPTURE(r.reason);
            using workload::probe::kind;
            const bool here = each.what == kind::canary_fma || each.what == kind::canary_copy ||
                              each.what == kind::device_copy || each.what == kind::launch ||
                              each.what == kind::cold_first_launch || each.what == kind::host_wake;
            CHECK(r.status == (here ? result::result_status::ok : result::result_status::skipped));
            CHECK(r.sessions[0].samples.empty() != here);
            CHECK(r.reason.empty() == here);
            CHECK(r.verified == (here && each.what != kind::host_wake)); // waking up late has no output
            CHECK(r.sessions[0].ran.implementation.empty() != here);
        }
        CHECK(results.size() == (each.what == workload::probe::kind::host_wake ? 2 : 1));
    }
}

TEST_CASE("the FMA canary verifies, and its rate is that of a processor") {
    cpu::backend host;
    measure::engine<cpu::backend> engine(host);
    const auto results = engine.measure(family("probe").make("probe/canary_fma"), quick());
    REQUIRE(results[0].status == result::result_status::ok);
    CHECK(results[0].verified);
    const double rate = results[0].what.flop / stats::median(results[0].sessions[0].samples);
    CHECK(rate > 0.5); // FLOP per ns
    CHECK(rate < 100);
}

TEST_CASE("copies are verified and move their bytes at the rate of a memory") {
    cpu::backend host;
    measure::engine<cpu::backend> engine(host);
    for (std::string id : {"probe/canary_copy/8MiB", "probe/device_copy/8MiB"}) {
        CAPTURE(id);
        const auto results = engine.measure(family("probe").make(id), quick());
        REQUIRE(results[0].status == result::result_status::ok);
        CHECK(results[0].verified);
        const double rate = results[0].what.bytes / stats::median(results[0].sessions[0].samples);
        CHECK(rate > 0.2); // bytes per ns
        CHECK(rate < 2000);
    }
}

TEST_CASE("compiling a primitive again is slower than calling it") {
    cpu::backend host;
    measure::engine<cpu::backend> engine(host);
    const auto cold = engine.measure(family("probe").make("probe/cold_first_launch"), quick());
    const auto warm = engine.measure(family("probe").make("probe/launch"), quick());
    CHECK(cold[0].sessions[0].samples.size() >= 5);
    CHECK(stats::median(cold[0].sessions[0].samples) > 10 * stats::median(warm[0].sessions[0].samples));
    CHECK(dnnl::get_primitive_cache_capacity() > 0); // the cache is back
}

TEST_CASE("a copy that memory cannot hold, or that is not whole lines, is skipped") {
    cpu::backend host;
    measure::engine<cpu::backend> engine(host);
    for (std::string id : {"probe/device_copy/1024GiB", "probe/canary_copy/65B"}) {
        const auto results = engine.measure(family("probe").make(id), quick());
        CHECK(results[0].status == result::result_status::skipped);
    }
}

TEST_CASE("ids that do not parse are refused when the benchmark is made") {
    CHECK_THROWS_AS((void)family("gemm").make("gemm/fp32"), usage_error);
    CHECK_THROWS_AS((void)family("probe").make("probe/nothing"), usage_error);
}

TEST_CASE("host wake: lateness of every nap and the jitter of each 20, whatever the budget") {
    // A host that wakes 50 us late, every tenth time 1 ms.
    measure::nanoseconds time{0};
    int naps = 0;
    const auto result = measure::measure_host_wake(
        {std::chrono::milliseconds(100)}, [&] { return time; },
        [&](measure::nanoseconds until) { time = until + std::chrono::microseconds(++naps % 10 == 0 ? 1000 : 50); });
    REQUIRE(result.metrics.size() == 2);
    CHECK(result.metrics[0].name == "time");
    CHECK(result.metrics[0].samples.size() >= 80);
    CHECK(result.metrics[0].samples.size() <= 100);
    CHECK(stats::median(result.metrics[0].samples) == 50'000);
    CHECK(result.metrics[1].name == "jitter");
    CHECK(result.metrics[1].samples.size() == result.metrics[0].samples.size() / 20);
    CHECK(result.metrics[1].samples[0] == 950'000);

    const auto at_least = measure::measure_host_wake(
        {std::chrono::nanoseconds(0)}, [&] { return time; }, [&](measure::nanoseconds until) { time = until; });
    CHECK(at_least.metrics[0].samples == std::vector<double>(20, 1.0)); // never 0
    CHECK(at_least.metrics[1].samples == std::vector<double>(1, 1.0));
}
