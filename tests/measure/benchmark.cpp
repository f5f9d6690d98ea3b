// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "fake_backend.hpp"

using namespace plumbline;

namespace user {

/// All that a user's own operator needs.
struct axpy {
    struct params {
        std::int64_t n = 0;
        friend workload::description describe(const params& p) {
            workload::description what;
            what.id = "axpy/n" + std::to_string(p.n);
            what.family = "axpy";
            what.params = {{"n", p.n}};
            return what;
        }
    };
    axpy(fake::backend&, const params& p, std::size_t slots) : work_ns(static_cast<double>(p.n)), sets(slots) {}
    void run(fake::backend& on, std::size_t) { on.enqueue(work_ns); }

    double work_ns;
    std::size_t sets;
};

/// One with every optional member.
struct complete {
    struct params {
        workload::modes mode;
        friend workload::description describe(const params&) {
            workload::description what;
            what.id = "complete";
            return what;
        }
    };
    static std::size_t slots(fake::backend& on, const params&) {
        on.note("slots");
        return 5;
    }
    complete(fake::backend& on, const params&, std::size_t slots) { on.note("construct " + std::to_string(slots)); }
    void run(fake::backend& on, std::size_t) { on.enqueue(50'000); }
    void verify(fake::backend& on) { on.note("verify"); }
    std::string output_hash(fake::backend&) { return "the hash"; }
    result::evidence evidence(fake::backend&) const { return {"the implementation", {}, {}}; }
};

} // namespace user

TEST_CASE("a kernel with nothing but parameters, constructor and run is measured") {
    fake::backend device;
    measure::engine<fake::backend> engine(device, device.clock());
    const auto what = measure::make_benchmark<user::axpy, fake::backend>({70'000});
    CHECK(what.how == measure::regime::burst);
    CHECK(what.graph);
    CHECK(what.cold);
    const auto results = engine.measure(what);
    REQUIRE(results[0].status == result::result_status::ok);
    CHECK(results[0].what.id == "axpy/n70000");
    CHECK(results[0].sessions[0].samples[0] == 70'000);
    CHECK_FALSE(results[0].verified);
    CHECK(results[0].sessions[0].ran == result::evidence{});
    CHECK(results[0].sessions[0].state.count("output_hash") == 0);
    CHECK(what.prepare(device).slots == 1);
}

TEST_CASE("optional members are found and used") {
    fake::backend device;
    measure::engine<fake::backend> engine(device, device.clock());
    const auto results = engine.measure(measure::make_benchmark<user::complete, fake::backend>({}));
    CHECK(results[0].verified);
    CHECK(results[0].sessions[0].ran.implementation == "the implementation");
    CHECK(std::get<std::string>(results[0].sessions[0].state.at("output_hash")) == "the hash");
    CHECK(device.log[0] == "slots");
    CHECK(device.log[1] == "construct 5");
}

TEST_CASE("the modes of the parameters choose cache state, regime and launching") {
    fake::backend device;
    user::complete::params p;
    p.mode.hot = true;
    const auto hot = measure::make_benchmark<user::complete, fake::backend>(p);
    CHECK_FALSE(hot.cold);
    CHECK(hot.prepare(device).slots == 1); // no memory for what is not rotated
    CHECK(device.log == std::vector<std::string>{"construct 1"});
    p.mode = {};
    p.mode.sustained = true;
    CHECK(measure::make_benchmark<user::complete, fake::backend>(p).how == measure::regime::sustained);
    p.mode = {};
    p.mode.stream = true;
    CHECK_FALSE(measure::make_benchmark<user::complete, fake::backend>(p).graph);
}

TEST_CASE("a prepared kernel lives as long as it is kept") {
    fake::backend device;
    measure::prepared_kernel kept = measure::make_benchmark<user::complete, fake::backend>({}).prepare(device);
    kept.verify(); // the benchmark it came from is gone
    CHECK(device.log.back() == "verify");
    CHECK(kept.evidence().implementation == "the implementation");
}
