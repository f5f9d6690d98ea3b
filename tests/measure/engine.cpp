// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "fake_backend.hpp"

using namespace plumbline;
using namespace plumbline::measure;
using std::chrono::milliseconds;

namespace {

/// Place of the first event of that name at or after `from`; the log's size if there is none.
std::size_t find(const std::vector<std::string>& log, const std::string& event, std::size_t from = 0) {
    return static_cast<std::size_t>(std::find(log.begin() + static_cast<std::ptrdiff_t>(from), log.end(), event) -
                                    log.begin());
}

std::int64_t whole(const result::result& of, const std::string& name) {
    return std::get<std::int64_t>(of.sessions.at(0).state.at(name));
}

bool flagged(const result::result& of, const std::string& flag) {
    const auto& flags = of.sessions.at(0).flags;
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

} // namespace

TEST_CASE("a quiet kernel: 30 clean samples and no more bursts than they need") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    options how;
    how.session = 3;
    const auto results = engine.measure(fake::make({}), how);
    REQUIRE(results.size() == 1);
    const result::result& r = results[0];
    CHECK(r.status == result::result_status::ok);
    CHECK(r.reason.empty());
    CHECK(r.backend == "fake");
    REQUIRE(r.sessions.size() == 1);
    const result::session_result& s = r.sessions[0];
    CHECK(s.session == 3);
    CHECK(s.samples == std::vector<double>(120, 50'000.0)); // three bursts of 8 ms, 4 launches of 50 us in a sample
    CHECK(s.cycles == std::vector<double>(120, 50'000.0 * 1.980));
    CHECK(s.clean == std::vector<bool>(120, true));
    CHECK(s.flags.empty());
    CHECK(whole(r, "launches_per_sample") == 4);
    CHECK(whole(r, "clean_samples") == 120);
    CHECK(std::get<double>(s.state.at("sm_clock_mhz")) == doctest::Approx(1980));
    CHECK(s.ran.implementation == "impl1");
    CHECK(std::get<double>(engine.state().at("reference_clock_mhz")) == 1980);
    CHECK(std::get<double>(engine.state().at("timed_seconds")) == doctest::Approx(40 * 200e-6).epsilon(0.2));
}

TEST_CASE("the order: prepare, touch every buffer set, evidence, verify, plan, rest, bursts; hooks outside of plays") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    options how;
    how.call.before = [&](const workload::description& what) {
        CHECK(what.id == "test/kernel");
        device.note("hook before");
    };
    how.call.after = [&](const workload::description&, result::session_result& s) {
        device.note("hook after");
        CHECK_FALSE(s.samples.empty());
        s.flags.push_back(result::flag::foreign_load);
        s.state["power_w"] = 321.0;
    };
    std::vector<std::size_t> slots;
    fake::character who;
    who.slots = 3;
    who.verify = [] {};
    who.slots_run = &slots;
    const auto results = engine.measure(fake::make(who), how);

    const auto& log = device.log;
    CHECK(find(log, "hook before") == 0);
    CHECK(find(log, "prepare") == 1);
    CHECK(find(log, "synchronize") == 2);
    CHECK(find(log, "evidence") == 3);
    CHECK(find(log, "synchronize", 3) == 4);
    CHECK(find(log, "verify") == 5);
    CHECK(find(log, "record 1") == 6);
    REQUIRE(slots.size() > 3);
    CHECK(std::vector<std::size_t>(slots.begin(), slots.begin() + 3) == std::vector<std::size_t>{0, 1, 2});
    // Once bursts have begun nothing but rests comes between plays, and nothing at all inside one.
    const std::size_t rest = find(log, "idle");
    CHECK(rest < log.size());
    CHECK(find(log, "record 1", rest) == log.size());
    for (std::size_t at = find(log, "play"); at < log.size(); at = find(log, "play", at + 1)) {
        CHECK(log[at + 1] == "played");
    }
    CHECK(find(log, "hook after") == log.size() - 1);
    CHECK(results[0].verified);
    CHECK(flagged(results[0], result::flag::foreign_load));
    CHECK(std::get<double>(results[0].sessions[0].state.at("power_w")) == 321.0);
}

TEST_CASE("touching long launches of many buffer sets ends after a while") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    std::vector<std::size_t> slots;
    fake::character who;
    who.slots = 100;
    who.slots_run = &slots;
    benchmark<fake::backend> what = fake::make(who);
    what.prepare = [inner = what.prepare](fake::backend& on) {
        prepared_kernel ready = inner(on);
        ready.run = [run = ready.run, b = &on](std::size_t slot) {
            run(slot);
            b->advance(milliseconds(50)); // as on a backend whose launches return when they are done
        };
        return ready;
    };
    (void)engine.measure(what);
    REQUIRE(slots.size() > 7);
    CHECK(slots[6] == 6); // 0, then 300 ms of others
    CHECK(slots[7] == 0); // the plan's first
}

TEST_CASE("buffer sets are rotated for a cold kernel and not for a hot one") {
    for (const bool cold : {true, false}) {
        for (const bool graph : {true, false}) {
            fake::backend device;
            engine<fake::backend> engine(device, device.clock());
            std::vector<std::size_t> slots;
            fake::character who;
            who.slots = 3;
            who.launch_ns = 1'000'000; // one launch a sample, so the rotation must go on from sample to sample
            who.slots_run = &slots;
            benchmark<fake::backend> what = fake::make(who);
            what.cold = cold;
            what.graph = graph;
            const auto results = engine.measure(what);
            CHECK(whole(results[0], "launches_per_sample") == 1);
            const std::vector<std::size_t> played(slots.begin() + 3, slots.end());
            const std::set<std::size_t> used(played.begin(), played.end());
            CHECK(used == (cold ? std::set<std::size_t>{0, 1, 2} : std::set<std::size_t>{0}));
            for (std::size_t i = 1; cold && i < 3; ++i) CHECK(played[i] == (played[i - 1] + 1) % 3);
        }
    }
}

TEST_CASE("a noisy kernel is measured until its budget is spent, and says so") {
    fake::backend device(fake::script{.resolution_ns = 500, .noise = 0.05});
    engine<fake::backend> engine(device, device.clock());
    options how;
    how.time.total = milliseconds(500);
    const nanoseconds before = device.now();
    const auto results = engine.measure(fake::make({}), how);
    CHECK(results[0].status == result::result_status::ok);
    CHECK(flagged(results[0], result::flag::budget_exhausted));
    CHECK(results[0].sessions[0].samples.size() >= 200);
    CHECK(device.now() - before < milliseconds(1000));
    // It does not begin a rest that would end after the budget.
    CHECK(std::get<double>(results[0].sessions[0].state.at("measure_seconds")) < 0.5);

    // A larger budget is cut by the number of samples, which costs precision too and is marked the same.
    how.time.total = std::chrono::seconds(100);
    const auto longer = engine.measure(fake::make({}), how);
    CHECK(longer[0].sessions[0].samples.size() == how.rules.max_samples);
    CHECK(flagged(longer[0], result::flag::budget_exhausted));
}

TEST_CASE("moderate noise needs more than 30 samples and then stops by itself") {
    fake::backend device(fake::script{.noise = 0.02});
    engine<fake::backend> engine(device, device.clock());
    options how;
    how.time.total = std::chrono::seconds(10);
    const auto results = engine.measure(fake::make({}), how);
    const std::size_t n = results[0].sessions[0].samples.size();
    CHECK(n > 40);
    CHECK(n < how.rules.max_samples);
    CHECK(results[0].sessions[0].flags.empty());
    CHECK(stats::median(results[0].sessions[0].samples) == doctest::Approx(50'000).epsilon(0.01));
}

TEST_CASE("even a budget of nothing gives one burst") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    options how;
    how.time.total = nanoseconds(0);
    const auto results = engine.measure(fake::make({"test/long", 100e6}), how);
    CHECK(results[0].status == result::result_status::ok);
    CHECK(results[0].sessions[0].samples == std::vector<double>{100e6});
    CHECK_FALSE(flagged(results[0], result::flag::throttled)); // one of one is clean
    CHECK(flagged(results[0], result::flag::budget_exhausted));
}

TEST_CASE("a device without a clock is never idled, has no cycles, and all its samples are clean") {
    fake::backend device(fake::script{.resolution_ns = 20, .clock = false});
    engine<fake::backend> engine(device, device.clock());
    for (int i = 0; i < 2; ++i) {
        const auto results = engine.measure(fake::make({}));
        const result::session_result& s = results[0].sessions[0];
        CHECK(s.samples.size() >= 30);
        CHECK(s.cycles.empty());
        CHECK(s.clean.empty());
        CHECK(s.flags.empty());
        CHECK(s.state.count("sm_clock_mhz") == 0);
    }
    CHECK(device.idles.empty());
    CHECK(engine.state().count("reference_clock_mhz") == 0);
}

TEST_CASE("a kernel too short for the timer is marked") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    options how;
    how.rules.max_launches = 10;
    const auto results = engine.measure(fake::make({"test/short", 2'000}), how);
    CHECK(whole(results[0], "launches_per_sample") == 10);
    CHECK(flagged(results[0], result::flag::below_resolution));
    CHECK(results[0].sessions[0].samples[0] == 2'000);
}

TEST_CASE("the launches of an earlier session are used again as long as they still make sense") {
    struct earlier {
        std::size_t launches;
        std::int64_t used;
    };
    // A new plan takes 4 launches of 50 us.
    for (const earlier& each : {earlier{5, 5}, {2, 2}, {32, 32}, {1, 4}, {33, 4}, {0, 4}, {100'000, 4}}) {
        CAPTURE(each.launches);
        fake::backend device;
        engine<fake::backend> engine(device, device.clock());
        options how;
        how.launches = each.launches;
        const auto results = engine.measure(fake::make({}), how);
        CHECK(whole(results[0], "launches_per_sample") == each.used);
        CHECK(results[0].sessions[0].samples[0] == doctest::Approx(50'000));
    }
}

TEST_CASE("a plan is long enough even when launches look slow at first") {
    fake::backend device(fake::script{.noise = 0.1});
    engine<fake::backend> engine(device, device.clock());
    for (int i = 0; i < 20; ++i) {
        const auto results = engine.measure(fake::make({"test/noisy", 7'000}));
        CHECK(whole(results[0], "launches_per_sample") >= 28); // 196 us: what the fastest of two made of it
        CHECK(whole(results[0], "launches_per_sample") <= 58);
    }
}

TEST_CASE("host-bound is visible: enqueueing that takes longer than the work") {
    for (const double enqueue : {2'000.0, 6'000.0}) {
        fake::backend device(fake::script{.enqueue_ns = enqueue});
        engine<fake::backend> engine(device, device.clock());
        benchmark<fake::backend> what = fake::make({"test/stream", 5'000});
        what.graph = false;
        const auto results = engine.measure(what);
        CHECK(std::get<double>(results[0].sessions[0].state.at("enqueue_ns")) == doctest::Approx(enqueue));
        CHECK(flagged(results[0], result::flag::host_bound) == (enqueue > 5'000));
    }
}

TEST_CASE("single launches: no play queues more than a stream can hold") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    benchmark<fake::backend> what = fake::make({"test/stream", 500});
    what.graph = false;
    const auto results = engine.measure(what);
    const auto launches = static_cast<std::size_t>(whole(results[0], "launches_per_sample"));
    CHECK(launches == 256);
    for (std::size_t samples : device.played_samples) CHECK(samples * launches <= 512);
}

TEST_CASE("an output known from another session is not verified again, unless hash or implementation differ") {
    struct known_case {
        const char* hash;
        const char* implementation;
        int verifications;
        const char* by;
    };
    for (const known_case& each : {known_case{"abc", "impl1", 0, "hash"},
                                   {"other", "impl1", 1, "reference"},
                                   {"abc", "impl2", 1, "reference"}}) {
        fake::backend device;
        engine<fake::backend> engine(device, device.clock());
        int verifications = 0;
        fake::character who;
        who.hash = "abc";
        who.verify = [&] { ++verifications; };
        options how;
        how.known = known_output{each.implementation, each.hash};
        const auto results = engine.measure(fake::make(who), how);
        CHECK(verifications == each.verifications);
        CHECK(results[0].verified);
        CHECK(std::get<std::string>(results[0].sessions[0].state.at("verified_by")) == each.by);
        CHECK(std::get<std::string>(results[0].sessions[0].state.at("output_hash")) == "abc");
    }
}

TEST_CASE("an empty hash proves nothing, and a kernel that cannot verify is not verified") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    options how;
    how.known = known_output{"impl1", ""};
    const auto results = engine.measure(fake::make({}), how);
    CHECK_FALSE(results[0].verified);
    CHECK(results[0].status == result::result_status::ok);
}

TEST_CASE("a procedure gives one result per metric and is given the budget") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    benchmark<fake::backend> what;
    what.what.id = "test/procedure";
    what.what.family = "test";
    what.what.kind = benchmark_class::host;
    what.what.flop = 5;
    milliseconds given{0};
    what.measure = [&](fake::backend&, const budget& time) {
        given = std::chrono::duration_cast<milliseconds>(time.total);
        procedure_result found;
        found.metrics.push_back({"time", "ns", direction::lower, {10, 20}, {{1e6, 1000, {}}, {2e6, 2000, {}}}, {}});
        found.metrics.push_back(
            {"throughput", "items/s", direction::higher, {3}, {{1e6, 1000, {}}}, {{"workers", std::int64_t{4}}}});
        found.ran.implementation = "loop";
        found.verified = true;
        found.flags = {result::flag::foreign_load};
        return found;
    };
    options how;
    how.time.total = milliseconds(700);
    how.session = 2;
    how.host_model = "Some CPU";
    const auto results = engine.measure(what, how);
    CHECK(given == milliseconds(700));
    REQUIRE(results.size() == 2);
    CHECK(results[0].what.metric == "time");
    CHECK(results[0].what.flop == 5);
    CHECK(results[0].sessions[0].samples == std::vector<double>{10, 20});
    CHECK(results[0].sessions[0].cycles == std::vector<double>{10, 40});
    CHECK(results[0].sessions[0].session == 2);
    CHECK(results[1].what.metric == "throughput");
    CHECK(results[1].what.unit == "items/s");
    CHECK(results[1].what.better == direction::higher);
    CHECK(results[1].what.flop == 0);
    CHECK(results[1].sessions[0].cycles.empty()); // items have no cycles
    CHECK(whole(results[1], "workers") == 4);
    CHECK(results[0].what.hash() != results[1].what.hash());
    for (const auto& each : results) {
        CHECK(each.verified);
        CHECK(each.sessions.size() == 1);
        CHECK(each.sessions[0].ran.implementation == "loop");
        CHECK(flagged(each, result::flag::foreign_load));
        CHECK(std::get<std::string>(each.what.params.at("host_model")) == "Some CPU");
    }
}

TEST_CASE("cycles are for all samples or for none") {
    result::session_result session;
    tally taken(1, 1);
    taken.add({{1e6, 1000, {}}, {1e6, {}, {}}});
    taken.write(session, reference_clock(), settings());
    CHECK(session.samples.size() == 2);
    CHECK(session.cycles.empty());
    CHECK(session.clean.empty());
    CHECK(session.state.count("sm_clock_mhz") == 0);

    procedure_result found;
    found.metrics.push_back({"time", "ns", direction::lower, {1, 2}, {{1e6, 1000, {}}, {1e6, {}, {}}}, {}});
    result::result prototype;
    prototype.sessions.resize(1);
    CHECK(metric_result(found.metrics[0], found, prototype, 1, settings()).sessions[0].cycles.empty());
}

TEST_CASE("the CPU model belongs to host-bound workloads only") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    options how;
    how.host_model = "Some CPU";
    CHECK(engine.measure(fake::make({}), how)[0].what.params.count("host_model") == 0);
}
