// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "fake_backend.hpp"
#include "plumbline/measure/self_test.hpp"

using namespace plumbline;
using namespace plumbline::measure;

TEST_CASE("a planted slowdown is found at its size, in a graph and in a stream, with and without rotation") {
    for (const bool graph : {true, false}) {
        for (const double launch_ns : {5'000.0, 50'000.0, 1'400'000.0}) {
            for (const std::size_t slots : {std::size_t{1}, std::size_t{3}}) {
                double control = 0;
                for (const double fraction : {0.0, 0.01, 0.02, 0.05}) {
                    fake::backend device;
                    engine<fake::backend> engine(device, device.clock());
                    fake::character who;
                    who.launch_ns = launch_ns;
                    who.slots = slots;
                    benchmark<fake::backend> plain = fake::make(who);
                    plain.graph = graph;
                    const auto planted = plant_slowdown(plain, fraction);
                    CHECK(planted.what.hash() == plain.what.hash());
                    const auto results = engine.measure(planted);
                    REQUIRE(results[0].status == result::result_status::ok);
                    const result::session_result& s = results[0].sessions[0];
                    const auto launches =
                        static_cast<double>(std::get<std::int64_t>(s.state.at("launches_per_sample")));
                    // Once per sample, however many launches it has; the control spins for the floor alone.
                    if (fraction == 0) {
                        control = s.samples.front();
                        CHECK(control == doctest::Approx(launch_ns + 3000 / launches).epsilon(1e-9));
                    }
                    for (double each : s.samples) {
                        CHECK(each / control == doctest::Approx(1 + fraction).epsilon(1e-5));
                    }
                }
            }
        }
    }
}

TEST_CASE("the plan reaches a kernel that wants to know it as well") {
    fake::backend device;
    engine<fake::backend> engine(device, device.clock());
    std::vector<double> told;
    benchmark<fake::backend> plain = fake::make({});
    plain.prepare = [inner = plain.prepare, &told](fake::backend& on) {
        prepared_kernel ready = inner(on);
        ready.planned = [&told](std::size_t, double sample_ns) { told.push_back(sample_ns); };
        return ready;
    };
    (void)engine.measure(plant_slowdown(plain, 0.05));
    REQUIRE(told.size() >= 2);
    CHECK(told.front() == 0);
    CHECK(told.back() == 203'000);
}

TEST_CASE("what cannot carry a slowdown is refused") {
    benchmark<fake::backend> procedure;
    procedure.what.id = "test/procedure";
    CHECK_THROWS_AS((void)plant_slowdown(procedure, 0.01), usage_error);
    CHECK_THROWS_AS((void)plant_slowdown(fake::make({}), -0.01), usage_error);
    CHECK_THROWS_AS((void)plant_slowdown(fake::make({}), std::numeric_limits<double>::infinity()), usage_error);
}
