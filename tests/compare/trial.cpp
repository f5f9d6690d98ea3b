// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "plumbline/compare/trial.hpp"

using namespace plumbline;
using compare::alternation;
using compare::covered_result;
using compare::trial;

namespace {

const compare::result_name slow{"gemm/a", "time"}, other{"gemm/b", "time"}, calm{"probe/c", "time"};

/// Costs of slow, other and calm in the three sessions of a round.
alternation round(std::vector<double> before, std::vector<double> old, std::vector<double> after) {
    const auto leg = [](const std::vector<double>& costs) {
        return compare::leg{{slow, costs[0]}, {other, costs[1]}, {calm, costs[2]}};
    };
    return {leg(before), leg(old), leg(after)};
}

const std::vector<covered_result> both{{"gemm/a", "time", 0.2}, {"gemm/b", "time", 0.2}};

} // namespace

TEST_CASE("recovered and lost again proves a cause, in every round or not at all") {
    const auto good = round({1, 2, 3}, {0.8, 1.8, 3}, {1, 2, 3});
    CHECK(compare::judge({good}, both, {calm}).result == trial::outcome::proven);
    CHECK(compare::judge({good, good}, both, {calm}).recovered == 2);
    // Half of the slowdown is enough, less is not.
    CHECK(compare::judge({round({1, 2, 3}, {0.899, 1.899, 3}, {1, 2, 3})}, both, {}).result == trial::outcome::proven);
    const auto weak = compare::judge({round({1, 2, 3}, {0.93, 1.93, 3}, {1, 2, 3})}, both, {});
    CHECK(weak.result == trial::outcome::undecided);
    CHECK(weak.recovered == 0);
    // Recovered and not lost again: the machine drifted.
    const auto drift = compare::judge({round({1, 2, 3}, {0.8, 1.8, 3}, {0.8, 1.8, 3})}, both, {calm});
    CHECK(drift.result == trial::outcome::undecided);
    CHECK(drift.recovered == 0);
    CHECK(compare::judge({good, round({1, 2, 3}, {1, 2, 3}, {1, 2, 3})}, both, {}).result == trial::outcome::undecided);
}

TEST_CASE("nothing recovered clears a cause; one of two is not enough") {
    const auto none = compare::judge({round({1, 2, 3}, {1, 2, 3}, {1, 2, 3})}, both, {calm});
    CHECK(none.result == trial::outcome::cleared);
    CHECK(none.text == "set back: nothing recovered (0 of 2)");
    const auto half = compare::judge({round({1, 2, 3}, {0.8, 2, 3}, {1, 2, 3})}, both, {});
    CHECK(half.result == trial::outcome::undecided);
    CHECK(half.recovered == 1);
}

TEST_CASE("nothing recovered on a busy machine clears nobody, and proves as much as elsewhere") {
    const std::string busy = "work waited for a CPU 18 % of the last 10 s";
    const auto none = compare::judge({round({1, 2, 3}, {1, 2, 3}, {1, 2, 3})}, both, {calm}, busy);
    CHECK(none.result == trial::outcome::undecided);
    CHECK(none.text == "set back: nothing recovered (0 of 2), which proves nothing: " + busy);
    const auto good = compare::judge({round({1, 2, 3}, {0.8, 1.8, 3}, {1, 2, 3})}, both, {calm}, busy);
    CHECK(good.result == trial::outcome::proven);
}

TEST_CASE("when the only cause is cleared, what it covered is unexplained, and that is said") {
    compare::comparison found;
    for (const auto& each : both) {
        found.findings.emplace_back();
        found.findings.back().id = each.id;
        found.findings.back().metric = each.metric;
    }
    found.why.causes.resize(1);
    found.why.causes[0].covers = {both[1]};
    found.why.causes[0].tried = trial{trial::outcome::cleared, "set back: nothing recovered (0 of 1)", 0, 1};
    found.why.unexplained = {slow};
    compare::conclude_trials(found);
    CHECK(found.why.causes.empty());
    CHECK(found.why.unexplained == std::vector{slow, other});
    CHECK(found.why.conclusion.rfind("nothing recorded changed: suspect the node", 0) == 0);
}

TEST_CASE("sentinels that move with the setting spoil the proof") {
    const auto moved = compare::judge({round({1, 2, 3}, {0.8, 1.8, 2.8}, {1, 2, 3})}, both, {calm});
    CHECK(moved.result == trial::outcome::undecided);
    CHECK(moved.text.find("1 of 1 unaffected results moved too") != std::string::npos);
    CHECK(compare::judge({round({1, 2, 3}, {0.8, 1.8, 2.95}, {1, 2, 3})}, both, {calm}).result ==
          trial::outcome::proven);
}

TEST_CASE("what could not run counts as lost, what runs with the old setting as recovered") {
    alternation back = round({1, 2, 3}, {0.8, 1.8, 3}, {1, 2, 3});
    back.before.erase(other);
    back.after.erase(other);
    const std::vector<covered_result> tried{{"gemm/a", "time", 0.2}, {"gemm/b", "time", 0}};
    CHECK(compare::judge({back}, tried, {calm}).recovered == 2);
    back.old.erase(other);
    CHECK(compare::judge({back}, tried, {calm}).recovered == 1);
    // It runs now as well: nothing was lost.
    CHECK(compare::judge({round({1, 2, 3}, {0.8, 1.8, 3}, {1, 2, 3})}, tried, {calm}).recovered == 1);
    CHECK(compare::judge({}, tried, {calm}).result == trial::outcome::not_tried);
}

TEST_CASE("a proof comes first, the cleared are no longer blamed, associations of the same give way") {
    compare::comparison found;
    compare::explanation& why = found.why;
    const auto add = [&](const std::string& name, trial::outcome result, compare::strength how) {
        compare::cause one;
        one.name = name;
        one.covers = both;
        one.how_sure = how;
        if (result != trial::outcome::not_tried) one.tried = trial{result, "text of " + name, 0, 2};
        why.causes.push_back(one);
    };
    add("fits", trial::outcome::not_tried, compare::strength::associated);
    add("cleared", trial::outcome::cleared, compare::strength::consistent);
    add("open", trial::outcome::undecided, compare::strength::consistent);
    add("guilty", trial::outcome::proven, compare::strength::associated);
    compare::conclude_trials(found);
    REQUIRE(why.causes.size() == 2);
    CHECK(why.causes[0].name == "guilty");
    CHECK(why.causes[0].how_sure == compare::strength::confirmed);
    CHECK(why.causes[1].name == "open");
    REQUIRE(why.set_aside.size() == 2);
    CHECK(why.set_aside[0].set_aside == "text of cleared");
    CHECK(why.set_aside[0].how_sure == compare::strength::associated);
    CHECK(why.set_aside[1].set_aside == "it fits, but guilty is proven to be the cause");
}

TEST_CASE("a leg is the cost of every result that gave a number") {
    result::baseline from;
    const auto add = [&](const std::string& id, direction better, double value, result::result_status status) {
        result::result one;
        one.what.id = id;
        one.what.better = better;
        one.status = status;
        one.sessions.resize(1);
        one.sessions[0].samples = {value};
        from.results.push_back(one);
    };
    add("a", direction::lower, 2, result::result_status::ok);
    add("b", direction::higher, 2, result::result_status::ok);
    add("c", direction::lower, 2, result::result_status::failed);
    add("d", direction::lower, 0, result::result_status::ok);
    const compare::leg made = compare::read_leg(from);
    CHECK(made.size() == 2);
    CHECK(made.at({"a", "time"}) == doctest::Approx(std::log(2.0)));
    CHECK(made.at({"b", "time"}) == doctest::Approx(-std::log(2.0)));
}

TEST_CASE("only settings whose old value is known can be given back") {
    using result::reading;
    compare::cause one;
    const auto with = [&](const std::string& name, const reading& from, const reading& to) {
        one.changes = {
            {name, 1, result::attribute_class::config, "env", environment::difference_kind::changed, from, to}};
        return compare::settable(one).size();
    };
    const auto text = [](const char* value) { return reading::of(std::string(value)); };
    CHECK(with("env.OMP_NUM_THREADS", reading::absent("not set"), text("4")) == 1);
    CHECK(with("env.OMP_NUM_THREADS", text("4"), reading::absent("not set")) == 1);
    CHECK(with("cpu.allowed", text("0-3"), text("0")) == 1);
    CHECK(with("cpu.allowed", reading::absent("not recorded"), text("0")) == 0);
    CHECK(with("env.CUDA_SITE", text("hash 12"), text("hash 13")) == 0);
    CHECK(with("env.CUDA_VISIBLE_DEVICES", text("GPU-#12ab"), text("0")) == 0);
    CHECK(with("env.NCCL_TOKEN", reading::denied("may be a secret: not recorded"), text("0")) == 0);
    CHECK(with("env.PATH", text("hash 1"), text("hash 2")) == 0);
    CHECK(with("driver.version", text("1"), text("2")) == 0);
    one.through = environment::difference{"env.LD_LIBRARY_PATH",
                                          1,
                                          result::attribute_class::config,
                                          "env",
                                          environment::difference_kind::changed,
                                          reading::absent("not set"),
                                          text("/a")};
    CHECK(compare::settable(one).size() == 1);
}
