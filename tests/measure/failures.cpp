// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "fake_backend.hpp"

using namespace plumbline;
using namespace plumbline::measure;
using std::chrono::milliseconds;

namespace {

/// A benchmark whose preparation throws `thrown`.
template <class Thrown>
benchmark<fake::backend> throwing(Thrown thrown) {
    benchmark<fake::backend> what = fake::make({});
    what.prepare = [thrown](fake::backend&) -> prepared_kernel { throw thrown; };
    return what;
}

benchmark<fake::backend> procedure(procedure_result found) {
    benchmark<fake::backend> what;
    what.what.id = "test/procedure";
    what.measure = [found](fake::backend&, const budget&) { return found; };
    return what;
}

} // namespace

TEST_CASE("what cannot run here is skipped with its reason, everything else that throws has failed") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    const auto skipped = engine.measure(throwing(unsupported_error("no fp8 on this device")));
    REQUIRE(skipped.size() == 1);
    CHECK(skipped[0].status == result::result_status::skipped);
    CHECK(skipped[0].reason == "no fp8 on this device");
    REQUIRE(skipped[0].sessions.size() == 1);
    CHECK(skipped[0].sessions[0].samples.empty());

    const auto failed = engine.measure(throwing(std::runtime_error("out of memory")));
    CHECK(failed[0].status == result::result_status::failed);
    CHECK(failed[0].reason == "out of memory");
    CHECK(engine.measure(throwing(42))[0].reason == "it threw something that is not a std::exception");
    CHECK(engine.measure(throwing(std::runtime_error("")))[0].reason == "it threw an error without a message");

    benchmark<fake::backend> empty;
    CHECK(engine.measure(empty)[0].status == result::result_status::failed);
    CHECK(engine.measure(fake::make({}))[0].status == result::result_status::ok);
}

TEST_CASE("a wrong result is a failed benchmark that was never timed") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    fake::character who;
    who.verify = [] { throw verification_error("element 7 is 3, expected 4", 1, 0.25, 7); };
    const auto results = engine.measure(fake::make(who));
    CHECK(results[0].status == result::result_status::failed);
    CHECK(results[0].reason == "element 7 is 3, expected 4");
    CHECK_FALSE(results[0].verified);
    CHECK(results[0].sessions[0].samples.empty());
    CHECK(results[0].sessions[0].ran.implementation == "impl1"); // the evidence of what gave it is kept
    CHECK(device.played_samples.empty());
}

TEST_CASE("a device that fails while sampling: the samples so far are kept, the result has failed, the next one runs") {
    fake::backend device(fake::script{.noise = 0.05, .fail_at_play = 6, .failure = "illegal memory access"});
    engine<fake::backend> engine(device, device.clock());
    fake::character who;
    who.verify = [] {};
    const auto results = engine.measure(fake::make(who));
    CHECK(results[0].status == result::result_status::failed);
    CHECK(results[0].reason == "illegal memory access");
    CHECK_FALSE(results[0].verified);
    CHECK_FALSE(results[0].sessions[0].samples.empty());
    CHECK(results[0].sessions[0].cycles.size() == results[0].sessions[0].samples.size());
    device.become({});
    device.idles.clear();
    CHECK(engine.measure(fake::make({}))[0].status == result::result_status::ok);
    CHECK(device.idles.front() > milliseconds(900)); // nobody knows in what state it was left
}

TEST_CASE("a hang ends with the backend's deadline and is a failed benchmark") {
    fake::backend device(fake::script{
        .fail_at_play = 2, .failure = "the stream did not finish within 10 s", .failure_takes = milliseconds(10'000)});
    engine<fake::backend> engine(device, device.clock());
    const auto results = engine.measure(fake::make({}));
    CHECK(results[0].status == result::result_status::failed);
    CHECK(results[0].reason.find("did not finish") != std::string::npos);
    CHECK(std::get<double>(results[0].sessions[0].state.at("total_seconds")) == doctest::Approx(10).epsilon(0.01));
}

TEST_CASE("a launch that does nothing is not a fast launch") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    const auto results = engine.measure(fake::make({"test/empty", 0}));
    CHECK(results[0].status == result::result_status::failed);
    CHECK(results[0].reason.find("a sample took 0 ns") != std::string::npos);
}

TEST_CASE("a backend that loses samples is found out") {
    fake::backend device(fake::script{.samples_lost = 1});
    engine<fake::backend> engine(device, device.clock());
    const auto results = engine.measure(fake::make({}));
    CHECK(results[0].status == result::result_status::failed);
    CHECK(results[0].reason.find("returned 1 samples, 2 were asked for") != std::string::npos);
}

TEST_CASE("a kernel without buffer sets is refused") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    fake::character who;
    who.slots = 0;
    CHECK(engine.measure(fake::make(who))[0].reason.find("0 buffer sets") != std::string::npos);
}

TEST_CASE("procedures that return nothing, or nothing finite, have failed") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    CHECK(engine.measure(procedure({}))[0].reason == "the procedure returned no metric");
    procedure_result found;
    found.metrics.push_back({"time", "ns", direction::lower, {}, {}, {}});
    CHECK(engine.measure(procedure(found))[0].reason == "the procedure returned no sample of 'time'");
    found.metrics[0].samples = {1, std::numeric_limits<double>::quiet_NaN()};
    const auto results = engine.measure(procedure(found));
    CHECK(results[0].status == result::result_status::failed);
    CHECK(results[0].reason == "the procedure returned a sample of 'time' not finite");
}

TEST_CASE("a hook that throws fails the benchmark instead of the session") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    options how;
    how.call.before = [](const workload::description&) { throw std::runtime_error("telemetry broke"); };
    CHECK(engine.measure(fake::make({}), how)[0].reason == "telemetry broke");
}
