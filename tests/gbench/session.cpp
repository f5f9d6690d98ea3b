// SPDX-License-Identifier: Apache-2.0
#include "plumbline/gbench/session.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "kernels.hpp"
#include "plumbline/gbench/device.hpp"
#include "plumbline/gbench/reporter.hpp"

namespace gbench = plumbline::gbench;
namespace result = plumbline::result;

namespace {

/// Keeps what a user would have seen.
class shown : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>& some) override { runs.insert(runs.end(), some.begin(), some.end()); }
    std::vector<Run> runs;
};

/// Runs everything registered and clears the register again, which is one for the whole process.
std::vector<benchmark::BenchmarkReporter::Run> run_all(gbench::session<fake::backend>& on, std::size_t expected) {
    shown screen;
    gbench::reporter reporter(screen, on.measured());
    CHECK(benchmark::RunSpecifiedBenchmarks(&reporter, "all") == expected);
    benchmark::ClearRegisteredBenchmarks();
    return screen.runs;
}

} // namespace

TEST_CASE("a kernel is sampled by the engine and shown by Google Benchmark with its median and plain id") {
    fake::backend device;
    gbench::session<fake::backend> session(device);
    session.add<kernels::steady>({});
    const auto runs = run_all(session, 1);
    REQUIRE(runs.size() == 1);
    CHECK(runs[0].benchmark_name() == "user/steady");
    REQUIRE(session.measured().results().size() == 1);
    const result::result& kept = session.measured().results()[0];
    const std::vector<double>& samples = kept.sessions.front().samples;
    CHECK(samples.size() >= 30);
    CHECK(static_cast<std::size_t>(runs[0].iterations) == samples.size());
    CHECK(runs[0].real_accumulated_time / static_cast<double>(runs[0].iterations) == doctest::Approx(1000e-9));
    CHECK(static_cast<double>(runs[0].counters.at("FLOPS")) == doctest::Approx(2000 / 1000e-9));
    CHECK(static_cast<double>(runs[0].counters.at("bytes_per_second")) == doctest::Approx(4000 / 1000e-9));
    CHECK(static_cast<double>(runs[0].counters.at("clean")) == 1.0);
    CHECK(kept.backend == "fake");
    CHECK(plumbline::stats::median(samples) == doctest::Approx(1000));
}

TEST_CASE("the baseline of a session carries the environment, the session and the version of Google Benchmark") {
    fake::backend device;
    gbench::about more;
    more.labels = {{"image", std::string("sha256:1234")}};
    more.read = [](result::fingerprint& into) {
        into.attributes["fake.firmware"] = {result::attribute_class::config, 1, "fake",
                                            result::reading::of(std::int64_t{7})};
    };
    more.device.model = "scripted device";
    gbench::session<fake::backend> session(device, more);
    session.add<kernels::steady>({});
    session.add<kernels::steady>({"user/other", 500, ""});
    run_all(session, 2);
    const result::baseline made = session.baseline();
    CHECK(made.results.size() == 2);
    REQUIRE(made.sessions.size() == 1);
    CHECK(made.sessions[0].order == std::vector<std::string>{"user/steady", "user/other"});
    CHECK(made.sessions[0].seconds > 0);
    CHECK(made.sessions[0].started == made.created);
    CHECK(made.device.model == "scripted device");
    CHECK(made.device.backend == "fake");
    CHECK(made.labels == more.labels);
    CHECK(made.environment.find("fake.firmware") != nullptr);
    REQUIRE(made.environment.find("build.google_benchmark") != nullptr);
    CHECK(made.environment.find("build.google_benchmark")->read == result::reading::of(gbench::library_version()));
    CHECK(made.environment.attributes.size() > 20); // the machine's own
}

TEST_CASE("the entry of a backend tells a session about its device") {
    fake::backend device;
    plumbline::run::backend_entry<fake::backend> entry;
    entry.name = "fake";
    entry.identify = [](const plumbline::environment::host& machine, int number) {
        result::device found;
        found.model = machine.variables.at("FAKE_MODEL") + " " + std::to_string(number);
        found.uuid = "0123456789abcdef";
        return found;
    };
    entry.machine = [](int) {
        plumbline::environment::host machine = plumbline::environment::this_machine("cpu");
        machine.variables["FAKE_MODEL"] = "scripted device";
        return machine;
    };
    entry.describe = [](fake::backend&, result::device& into) { into.properties["units"] = std::int64_t{3}; };
    entry.read = [](fake::backend&, const plumbline::environment::host&, result::fingerprint& into) {
        into.attributes["fake.firmware"] = {result::attribute_class::config, 1, "fake",
                                            result::reading::of(std::int64_t{7})};
    };
    entry.hooks = [](fake::backend&, const plumbline::environment::host&) {
        plumbline::measure::hooks watch;
        watch.after = [](const plumbline::workload::description&, result::session_result& one) {
            one.flags.emplace_back(result::flag::foreign_load);
        };
        return watch;
    };
    gbench::session<fake::backend> session(device, gbench::about_device(entry, device, 5));
    session.add<kernels::steady>({});
    run_all(session, 1);
    const result::baseline made = session.baseline();
    CHECK(made.device.model == "scripted device 5");
    CHECK(made.device.uuid == "0123456789abcdef");
    CHECK(made.device.properties.count("units") == 1);
    CHECK(made.environment.find("fake.firmware") != nullptr);
    CHECK(made.results.at(0).sessions.at(0).flags == std::vector<std::string>{result::flag::foreign_load});
}

TEST_CASE("a failing kernel is an error for Google Benchmark and a failed result, an unsupported one is skipped") {
    fake::backend device;
    gbench::session<fake::backend> session(device);
    session.add<kernels::steady>({"user/bad", 1000, "fails"});
    session.add<kernels::steady>({"user/absent", 1000, "unsupported"});
    const auto runs = run_all(session, 2);
    REQUIRE(session.measured().results().size() == 2);
    CHECK(session.measured().results()[0].status == result::result_status::failed);
    CHECK(session.measured().results()[0].reason.find("planted failure of user/bad") != std::string::npos);
    CHECK(session.measured().results()[1].status == result::result_status::skipped);
    CHECK(session.measured().failed());
    REQUIRE(runs.size() == 2);
    CHECK(gbench::detail::end_of(runs[0]) == gbench::detail::run_end::error);
    CHECK(gbench::detail::end_of(runs[1]) != gbench::detail::run_end::normal);
    CHECK(gbench::detail::message_of(runs[1]).find("this device has no user/absent") != std::string::npos);
}

TEST_CASE("a catalogue's benchmark is registered by its id, an unknown family is a usage error that names the known") {
    fake::backend device;
    gbench::session<fake::backend> session(device);
    const std::vector<plumbline::measure::family<fake::backend>> catalogue{
        {"user", [](const std::string& id) {
             return plumbline::measure::make_benchmark<kernels::steady, fake::backend>({id, 800, ""});
         }}};
    session.add(catalogue, "user/by-id");
    CHECK_THROWS_WITH_AS(session.add(catalogue, "gemm/bf16"), doctest::Contains("no family 'gemm', it has user"),
                         plumbline::usage_error);
    CHECK(run_all(session, 1)[0].benchmark_name() == "user/by-id");
}

TEST_CASE("benchmarks of the program's own are kept beside plumbline's, and their names stay as they are") {
    fake::backend device;
    gbench::session<fake::backend> session(device);
    session.add<kernels::steady>({});
    benchmark::RegisterBenchmark("BM_own", [](benchmark::State& state) {
        for (auto _ : state) benchmark::ClobberMemory();
    })->Iterations(10);
    std::size_t told = 0;
    session.after_each([&told] { ++told; });
    const auto runs = run_all(session, 2);
    CHECK(runs[1].benchmark_name() == "BM_own/iterations:10");
    REQUIRE(session.measured().results().size() == 3);
    CHECK(session.measured().results()[1].what.id == "gbench/BM_own");
    CHECK(told == 1); // the session's benchmarks only
}
