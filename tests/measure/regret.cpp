// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/measure/regret.hpp"

using namespace plumbline;

namespace {

result::result timed(const std::string& id, std::vector<double> samples, const std::string& plan) {
    result::result made;
    made.what.id = id;
    made.what.flop = 1;
    made.verified = true;
    made.sessions.resize(1);
    made.sessions[0].session = 3;
    made.sessions[0].samples = std::move(samples);
    made.sessions[0].ran.implementation = plan;
    return made;
}

} // namespace

TEST_CASE("the regret is the choice's time over the best's, once for each pair") {
    result::result best = timed("gemm/a/best/hot", {90, 100, 110}, "lt/id2");
    best.sessions[0].flags = {result::flag::throttled, result::flag::budget_exhausted};
    const auto found = measure::regrets({timed("gemm/a/hot", {110, 120, 200}, "lt/id1"), best,
                                         timed("gemm/a", {1}, "lt/id1"), timed("gemm/b/best", {1}, "lt/id1")});
    REQUIRE(found.size() == 1);
    CHECK(found[0].what.id == "gemm/a/best/hot");
    CHECK(found[0].what.metric == measure::regret_metric);
    CHECK(found[0].what.better == direction::lower);
    CHECK(found[0].what.unit == "1");
    CHECK(found[0].what.flop == 0);
    CHECK(found[0].verified);
    CHECK(found[0].what.hash() != best.what.hash());
    REQUIRE(found[0].sessions.size() == 1);
    CHECK(found[0].sessions[0].session == 3);
    CHECK(found[0].sessions[0].samples == std::vector<double>{1.2});
    CHECK(found[0].sessions[0].flags == std::vector<std::string>{result::flag::throttled});
    CHECK(found[0].sessions[0].ran.implementation == "lt/id1 over lt/id2");
}

TEST_CASE("where the choice is the best the evidence says one plan") {
    const auto found = measure::regrets({timed("gemm/a", {100}, "lt/id1"), timed("gemm/a/best", {100}, "lt/id1")});
    REQUIRE(found.size() == 1);
    CHECK(found[0].sessions[0].ran.implementation == "lt/id1");
}

TEST_CASE("no regret without two times, and none of what was not verified is verified") {
    result::result failed = timed("gemm/a", {100}, "");
    failed.status = result::result_status::failed;
    const result::result best = timed("gemm/a/best", {100}, "");
    CHECK(measure::regrets({failed, best}).empty());
    CHECK(measure::regrets({timed("gemm/a", {}, ""), best}).empty());
    CHECK(measure::regrets({best}).empty());
    result::result unverified = timed("gemm/a", {100}, "");
    unverified.verified = false;
    CHECK_FALSE(measure::regrets({unverified, best}).at(0).verified);
    result::result other = timed("gemm/a", {100}, "");
    other.what.metric = "throughput";
    CHECK(measure::regrets({other, best}).empty());
}
