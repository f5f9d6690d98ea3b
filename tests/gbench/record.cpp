// SPDX-License-Identifier: Apache-2.0
#include "plumbline/gbench/record.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using plumbline::gbench::record;
namespace result = plumbline::result;

namespace {

result::result measured(const std::string& id, std::vector<double> samples, std::vector<bool> clean = {}) {
    result::result made;
    made.what.id = id;
    made.sessions.emplace_back();
    made.sessions.front().samples = std::move(samples);
    made.sessions.front().clean = std::move(clean);
    return made;
}

benchmark::BenchmarkReporter::Run foreign(const std::string& name, double seconds, long iterations) {
    benchmark::BenchmarkReporter::Run run;
    run.run_name.function_name = name;
    run.iterations = iterations;
    run.real_accumulated_time = seconds;
    run.cpu_accumulated_time = seconds / 2;
    return run;
}

} // namespace

TEST_CASE("a repetition adds its samples to the same result") {
    record all;
    all.add(measured("a", {1, 2}));
    all.add(measured("b", {5}));
    all.add(measured("a", {3}, {false}));
    REQUIRE(all.results().size() == 2);
    const result::session_result& a = all.results()[0].sessions.front();
    CHECK(a.samples == std::vector<double>{1, 2, 3});
    CHECK(a.clean == std::vector<bool>{true, true, false}); // marks of the first were left out: all clean
    CHECK(all.order() == std::vector<std::string>{"a", "b"});
}

TEST_CASE("cycles that only one of two repetitions has are dropped, since there must be one for each sample") {
    record all;
    result::result with = measured("a", {1});
    with.sessions.front().cycles = {1980};
    all.add(with);
    all.add(measured("a", {2}));
    CHECK(all.results()[0].sessions.front().cycles.empty());
    record both;
    both.add(with);
    both.add(with);
    CHECK(both.results()[0].sessions.front().cycles == std::vector<double>{1980, 1980});
}

TEST_CASE("a failure in any repetition makes the result failed, whatever comes before or after") {
    result::result bad = measured("a", {});
    bad.status = result::result_status::failed;
    bad.reason = "broke";
    for (const bool first : {true, false}) {
        record all;
        if (first) all.add(bad);
        all.add(measured("a", {1}));
        if (!first) all.add(bad);
        CHECK(all.failed());
        CHECK(all.results()[0].reason == "broke");
    }
}

TEST_CASE("a skipped benchmark is no failure") {
    record all;
    result::result skipped = measured("a", {});
    skipped.status = result::result_status::skipped;
    all.add(skipped);
    CHECK_FALSE(all.failed());
}

TEST_CASE("a benchmark of the program's own is kept as time and CPU time per iteration in ns") {
    record all;
    all.add_foreign(foreign("BM_copy/8", 4e-3, 2000));
    all.add_foreign(foreign("BM_copy/8", 6e-3, 2000));
    REQUIRE(all.results().size() == 2);
    CHECK(all.results()[0].what.id == "gbench/BM_copy/8");
    CHECK(all.results()[0].what.metric == "time");
    CHECK(all.results()[0].what.kind == plumbline::benchmark_class::imported);
    CHECK(all.results()[0].sessions.front().samples[0] == doctest::Approx(2000));
    CHECK(all.results()[0].sessions.front().samples[1] == doctest::Approx(3000));
    CHECK(all.results()[1].what.metric == "cpu_time");
    CHECK(all.results()[1].sessions.front().samples[0] == doctest::Approx(1000));
}

TEST_CASE("aggregates of repetitions are not results") {
    record all;
    auto run = foreign("BM_copy/8", 1, 1);
    run.run_type = benchmark::BenchmarkReporter::Run::RT_Aggregate;
    all.add_foreign(run);
    CHECK(all.results().empty());
}
