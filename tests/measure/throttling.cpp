// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "fake_backend.hpp"

using namespace plumbline;
using namespace plumbline::measure;
using std::chrono::milliseconds;

namespace {

bool flagged(const result::result& of, const std::string& flag) {
    const auto& flags = of.sessions.at(0).flags;
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

std::int64_t disturbed(const result::result& of) {
    const auto& clean = of.sessions.at(0).clean;
    return std::count(clean.begin(), clean.end(), false);
}

} // namespace

TEST_CASE("bursts adapt to a cap that bites inside them, and the median is that of the full clock") {
    fake::backend device(fake::script{.cap_after_ms = 2.5});
    engine<fake::backend> engine(device, device.clock());
    options how;
    how.time.total = std::chrono::seconds(10);
    fake::character who;
    const auto results = engine.measure(fake::make(who), how);
    const result::session_result& s = results[0].sessions[0];
    CHECK(s.flags.empty());
    CHECK(std::count(s.clean.begin(), s.clean.end(), true) >= 30);
    // The first burst of 40 samples (8 ms) hit the cap after 2.5 ms; what was disturbed is kept and marked.
    CHECK(disturbed(results[0]) > 0);
    CHECK(disturbed(results[0]) < 30);
    CHECK(s.samples.size() == s.clean.size());
    for (std::size_t i = 0; i < s.samples.size(); ++i) {
        CHECK(s.samples[i] == doctest::Approx(s.clean[i] ? 50'000 : 66'000));
        CHECK(s.cycles[i] == doctest::Approx(99'000)); // a lower clock does not change the cycles
    }
    CHECK(stats::median(marked(s.samples, s.clean)) == 50'000);
    CHECK(device.played_samples.back() < 20);
}

TEST_CASE("a device that stays at its cap still gives a result, marked as throttled") {
    fake::backend device(fake::script{.cap_after_ms = 0.9, .recover_after_ms = 1e9});
    engine<fake::backend> engine(device, device.clock());
    options how;
    how.time.total = std::chrono::seconds(2);
    const nanoseconds before = device.now();
    fake::character who;
    who.launch_ns = 200'000;
    const auto results = engine.measure(fake::make(who), how);
    CHECK(results[0].status == result::result_status::ok);
    CHECK(flagged(results[0], result::flag::throttled));
    CHECK(flagged(results[0], result::flag::budget_exhausted));
    CHECK_FALSE(results[0].sessions[0].samples.empty());
    CHECK(disturbed(results[0]) > 0);
    CHECK(device.now() - before < std::chrono::seconds(3));
}

TEST_CASE("clocks locked low by the site are measured as they are") {
    fake::backend device(fake::script{.full_mhz = 1200});
    engine<fake::backend> engine(device, device.clock());
    const auto results = engine.measure(fake::make({}));
    CHECK(results[0].sessions[0].flags.empty());
    CHECK(disturbed(results[0]) == 0);
    CHECK(std::get<double>(engine.state().at("reference_clock_mhz")) == 1200);
}

TEST_CASE("one or two wrong clock readings do not make the rest look throttled") {
    fake::backend device(fake::script{.wrong_clocks = {4000, 3000}});
    engine<fake::backend> engine(device, device.clock());
    const auto results = engine.measure(fake::make({}));
    CHECK(std::get<double>(engine.state().at("reference_clock_mhz")) == 1980);
    CHECK(results[0].sessions[0].flags.empty());
    CHECK(disturbed(results[0]) == 0);
}

TEST_CASE("a clock that shows nothing for a while is waited for, one that never does fails the benchmark") {
    fake::backend slow(fake::script{.wrong_clocks = std::vector<double>(20, 0)});
    engine<fake::backend> patient(slow, slow.clock());
    CHECK(patient.measure(fake::make({}))[0].status == result::result_status::ok);
    CHECK(std::get<double>(patient.state().at("reference_clock_mhz")) == 1980);
    fake::backend broken(fake::script{.wrong_clocks = std::vector<double>(100'000, 0)});
    engine<fake::backend> engine(broken, broken.clock());
    const auto results = engine.measure(fake::make({}));
    CHECK(results[0].status == result::result_status::failed);
    CHECK(results[0].reason.find("read 64 times and showed no speed above 0 MHz") != std::string::npos);
}

TEST_CASE("after capped work the next benchmark waits a second, and preparing it counts") {
    for (const milliseconds preparation : {milliseconds(0), milliseconds(400), milliseconds(5000)}) {
        fake::backend device(fake::script{.cap_after_ms = 6});
        engine<fake::backend> engine(device, device.clock());
        fake::character hot;
        hot.launch_ns = 300'000; // bursts of 8 ms run into the cap after 6
        options first;
        first.time.total = nanoseconds(0); // one burst, which is capped
        CHECK(disturbed(engine.measure(fake::make(hot), first)[0]) > 0);
        const nanoseconds ended = device.now();
        device.idles.clear();
        device.become({});
        fake::character next;
        next.preparation = preparation;
        const auto results = engine.measure(fake::make(next));
        REQUIRE_FALSE(device.idles.empty());
        CHECK(disturbed(results[0]) == 0);
        // Planning takes a few milliseconds of the second.
        const milliseconds expected = std::max(milliseconds(400), milliseconds(1000) - preparation);
        CHECK(device.idles.front() <= expected);
        CHECK(device.idles.front() > expected - milliseconds(10));
        CHECK(device.now() - ended > milliseconds(1000));
    }
}

TEST_CASE("after a benchmark that kept below the cap the next one settles for less") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    (void)engine.measure(fake::make({}));
    device.idles.clear();
    (void)engine.measure(fake::make({}));
    REQUIRE_FALSE(device.idles.empty());
    CHECK(device.idles.front() <= milliseconds(400));
    CHECK(device.idles.front() > milliseconds(390));
}

TEST_CASE("work that runs at a lower clock than the idle device from the start is not disturbed") {
    fake::backend device(fake::script{.work_clock = 0.8});
    engine<fake::backend> engine(device, device.clock());
    const auto results = engine.measure(fake::make({}));
    const result::session_result& s = results[0].sessions[0];
    CHECK(s.flags.empty());
    CHECK(disturbed(results[0]) == 0);
    CHECK(std::get<double>(s.state.at("sm_clock_mhz")) == doctest::Approx(0.8 * 1980));
    CHECK(std::get<double>(s.state.at("reference_clock_mhz")) == 1980);
    CHECK(std::get<double>(s.state.at("marker_clock_mhz")) == 1980);
}

TEST_CASE("the first sample of a burst is a lead-in: it is queued and not taken") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    const auto results = engine.measure(fake::make({}));
    CHECK(device.played_samples.back() == 41);
    CHECK(results[0].sessions[0].samples.size() == 3 * 40);
}

TEST_CASE("samples taken before the reference was known are marked at the end of the session") {
    fake::backend device(fake::script{.recover_after_ms = 700, .starts_capped = true});
    engine<fake::backend> engine(device, device.clock());
    options how;
    how.time.total = milliseconds(100);
    std::vector<result::result> all = engine.measure(fake::make({"test/first"}), how);
    CHECK(disturbed(all[0]) == 0); // nothing better was seen yet
    CHECK_FALSE(flagged(all[0], result::flag::throttled));
    device.advance(milliseconds(1000));
    all.push_back(engine.measure(fake::make({"test/second"}), how)[0]);
    all.push_back(engine.measure(fake::make({"test/third"}), how)[0]);
    CHECK(disturbed(all[1]) == 0);
    engine.settle(all);
    CHECK(disturbed(all[0]) == static_cast<std::int64_t>(all[0].sessions[0].samples.size()));
    CHECK(flagged(all[0], result::flag::throttled));
    CHECK(disturbed(all[1]) == 0);
    CHECK_FALSE(flagged(all[1], result::flag::throttled));
    result::result foreign; // from somewhere else: marks, but no clock to judge them by
    foreign.sessions.resize(1);
    foreign.sessions[0].samples = {1, 2};
    foreign.sessions[0].clean = {true, false};
    all.push_back(foreign);
    engine.settle(all); // settling twice changes nothing
    CHECK(all.back().sessions[0].clean == std::vector<bool>{true, false});
    CHECK(std::count(all[0].sessions[0].flags.begin(), all[0].sessions[0].flags.end(), result::flag::throttled) == 1);
}

TEST_CASE("procedures: those on the host or at the cap do not wait for a cool device, and the latter leave a hot one") {
    struct waits {
        benchmark_class kind;
        bool before;
        bool after;
    };
    for (const waits& each : {waits{benchmark_class::host, false, false},
                              {benchmark_class::dataloader, false, false},
                              {benchmark_class::training_step, false, true},
                              {benchmark_class::sustained, false, true},
                              {benchmark_class::kernel, true, false}}) {
        fake::backend device;
        engine<fake::backend> engine(device, device.clock());
        (void)engine.measure(fake::make({}));
        device.idles.clear();
        benchmark<fake::backend> what;
        what.what.kind = each.kind;
        what.measure = [](fake::backend& on, const budget&) {
            on.advance(milliseconds(500));
            procedure_result found;
            found.metrics.push_back({"time", "ns", direction::lower, {1}, {}, {}});
            return found;
        };
        (void)engine.measure(what);
        CHECK(device.idles.empty() != each.before);
        device.idles.clear();
        (void)engine.measure(fake::make({}));
        REQUIRE_FALSE(device.idles.empty());
        CHECK((device.idles.front() > milliseconds(900)) == each.after);
    }
}

TEST_CASE("sustained: the ramp is left out, no idling, telemetry between plays, no marks") {
    fake::backend device(fake::script{.cap_after_ms = 500});
    engine<fake::backend> engine(device, device.clock());
    (void)engine.measure(fake::make({"test/reference"}));
    device.log.clear();
    device.idles.clear();
    benchmark<fake::backend> what = fake::make({"test/sustained"});
    what.how = regime::sustained;
    options how;
    double power = 690;
    const nanoseconds before = device.now();
    how.call.read = [&] {
        device.note("read");
        CHECK(device.now() - before > milliseconds(1000)); // the ramp is not what is reported
        return scalar_map{{"power_w", ++power}, {"temperature_c", std::int64_t{70}}, {"reasons", std::string("cap")}};
    };
    const auto results = engine.measure(what, how);
    const result::session_result& s = results[0].sessions[0];
    CHECK(device.idles.empty());
    CHECK(s.flags.empty());
    CHECK(s.clean.empty());
    CHECK(s.samples.size() > 100);
    CHECK(s.samples.size() < 300);
    for (double each : s.samples) CHECK(each == doctest::Approx(66'000)); // all at the cap, none of the ramp
    CHECK(std::get<double>(s.state.at("sm_clock_mhz")) == doctest::Approx(1500));
    CHECK(std::get<std::int64_t>(s.state.at("ramp_samples")) > 10);
    CHECK(device.now() - before > milliseconds(4000));
    CHECK(device.now() - before < milliseconds(4500));
    CHECK(std::get<double>(s.state.at("power_w.min")) == 691);
    CHECK(std::get<double>(s.state.at("power_w.last")) == power);
    CHECK(std::get<double>(s.state.at("power_w.max")) == power);
    CHECK(std::get<double>(s.state.at("temperature_c.mean")) == 70);
    CHECK(s.state.count("reasons.mean") == 0);
    const auto reads = std::count(device.log.begin(), device.log.end(), "read");
    CHECK(reads >= 8);
    CHECK(reads <= 12);
    for (std::size_t i = 0; i + 1 < device.log.size(); ++i) {
        if (device.log[i] == "play") CHECK(device.log[i + 1] == "played");
    }
    // What it leaves behind is a hot device.
    device.idles.clear();
    (void)engine.measure(fake::make({"test/next"}));
    CHECK(device.idles.front() > milliseconds(900));
}
