// SPDX-License-Identifier: Apache-2.0
// NVML is never called while something is timed: reads can stall the host for milliseconds.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <doctest/doctest.h>

#include "../measure/fake_backend.hpp"
#include "fake_machine.hpp"
#include "plumbline/environment/nvidia/watch.hpp"

using namespace plumbline_tests;

namespace {

/// The scripted device, telling whether a timed section is open.
class watched_backend : public fake::backend {
public:
    std::vector<plumbline::measure::sample> play(recording& tape, std::size_t samples) {
        timing = true;
        auto taken = fake::backend::play(tape, samples);
        timing = false;
        return taken;
    }
    bool timing = false;
};
static_assert(plumbline::measure::backend<watched_backend>);

/// An engine on the scripted device, and a watch on a fake GPU in its hooks, as a session has them.
struct session {
    fake_machine machine;
    watched_backend device;
    int inside = 0, outside = 0;
    std::function<void()> in_every_launch;

    session() {
        make_server(machine);
        machine.nvml->on_call = [this](const std::string&) { ++(device.timing ? inside : outside); };
    }

    ~session() { machine.nvml->on_call = nullptr; } // shutdown comes when the counters are gone

    plumbline::result::result run() {
        nvidia::watch watch(machine.host, {{4242}, std::nullopt});
        plumbline::measure::engine<watched_backend> engine(device, device.clock());
        plumbline::measure::options how;
        how.call.before = [&](const auto&) { (void)watch.since_last(); };
        how.call.after = [&](const auto&, auto& measured) { watch.mark(measured); };
        how.call.read = [&] { return watch.readings(); };
        plumbline::measure::benchmark<watched_backend> benchmark;
        benchmark.what.id = "test/kernel";
        // Not captured into a graph: each launch is then made inside the timed section.
        benchmark.graph = false;
        benchmark.prepare = [this](watched_backend& on) {
            plumbline::measure::prepared_kernel ready;
            ready.run = [this, b = &on](std::size_t) {
                if (in_every_launch) in_every_launch();
                b->enqueue(50'000);
            };
            return ready;
        };
        auto results = engine.measure(benchmark, how);
        REQUIRE(results.size() == 1);
        REQUIRE(results[0].status == plumbline::result::result_status::ok);
        return results[0];
    }
};

} // namespace

TEST_CASE("a session asks NVML between its timed sections and never inside one") {
    session s;
    (void)s.run();
    CHECK(s.outside > 0);
    CHECK(s.inside == 0);
    CHECK(s.machine.nvml->calls == s.outside + s.inside + 1); // and nvmlInit, before anybody listened
}

TEST_CASE("the proof notices a call inside a timed section") {
    session s;
    s.in_every_launch = [&] {
        unsigned count = 0;
        (void)s.machine.host.nvml->device_count(&count);
    };
    (void)s.run();
    CHECK(s.inside > 0);
}

TEST_CASE("what was measured while somebody else worked is marked, and says who") {
    session s;
    s.in_every_launch = [&] { s.machine.nvml->gpus[0].work = {{4242, 10, 90, 0, 0, 0}, {777, 11, 55, 0, 0, 0}}; };
    const auto disturbed = s.run();
    const auto& flags = disturbed.sessions.at(0).flags;
    CHECK(std::find(flags.begin(), flags.end(), plumbline::result::flag::foreign_load) != flags.end());
    CHECK(plumbline::to_string(disturbed.sessions[0].state.at("foreign_load")).find("777") != std::string::npos);

    session quiet;
    quiet.in_every_launch = [&] { quiet.machine.nvml->gpus[0].work = {{4242, 10, 90, 0, 0, 0}}; };
    quiet.machine.nvml->gpus[0].busy = 100; // by ourselves, a benchmark ago
    const auto clean = quiet.run().sessions.at(0);
    CHECK(std::find(clean.flags.begin(), clean.flags.end(), plumbline::result::flag::foreign_load) ==
          clean.flags.end());
    CHECK(clean.state.count("foreign_load") == 0);
}

TEST_CASE("a parent around a child: what is left of memory and utilisation is somebody else's") {
    fake_machine m;
    make_server(m);
    m.nvml->gpus[0].work.reset();
    m.nvml->gpus[0].processes.reset();
    nvidia::watch watch(m.host, {{}, 0, true});
    CHECK(watch.since_last().found == nvidia::foreign_load::no);
    m.nvml->gpus[0].memory_used = 20ull << 30;
    CHECK(watch.since_last().found == nvidia::foreign_load::yes);
    CHECK(watch.since_last().found == nvidia::foreign_load::no); // from the last look on
    m.nvml->gpus[0].busy = 30;
    CHECK(watch.since_last().found == nvidia::foreign_load::no);  // busy now, but not before
    CHECK(watch.since_last().found == nvidia::foreign_load::yes); // and now before this stretch
    m.host.nvml = nullptr;
    nvidia::watch blind(m.host);
    CHECK(blind.since_last().found == nvidia::foreign_load::unknown);
    CHECK(blind.readings().empty());
}

TEST_CASE("readings are those that can be read") {
    fake_machine m;
    make_server(m);
    const auto readings = nvidia::watch(m.host).readings();
    CHECK(plumbline::to_string(readings.at("temperature_c")) == "31");
    CHECK(plumbline::to_string(readings.at("power_w")) == "76");
    CHECK(plumbline::to_string(readings.at("clock_reasons")) == "idle");
    CHECK(readings.count("memory_temperature_c") == 0); // this one is not answered
}

TEST_CASE("the code that times includes nothing of NVML") {
    namespace fs = std::filesystem;
    const fs::path headers = fs::path(PLUMBLINE_TEST_DATA) / "../../include/plumbline";
    int looked_at = 0;
    for (const char* folder : {"measure", "cpu", "cuda", "workload", "loader"}) {
        if (!fs::exists(headers / folder)) continue;
        for (const auto& entry : fs::recursive_directory_iterator(headers / folder)) {
            const std::string path = entry.path().string();
            if (!entry.is_regular_file() || path.find("/cuda/probe/") != std::string::npos) continue;
            std::ifstream file(entry.path());
            const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
            CAPTURE(path);
            CHECK(text.find("#include \"plumbline/environment/nvidia/") == std::string::npos);
            CHECK(text.find("nvmlDevice") == std::string::npos);
            ++looked_at;
        }
    }
    CHECK(looked_at > 20);
}
