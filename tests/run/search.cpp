// SPDX-License-Identifier: Apache-2.0
// --search and --replay from outside: plans of the fake library (tests/run/fake_backend.hpp).
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fake_program.hpp"
#include "plumbline/json/store.hpp"
#include "plumbline/stats/descriptive.hpp"

namespace json = plumbline::json;
namespace result = plumbline::result;
namespace stats = plumbline::stats;

namespace {

const result::result* find(const result::baseline& in, const std::string& id, const std::string& metric = "time") {
    const auto at = std::find_if(in.results.begin(), in.results.end(),
                                 [&](const auto& r) { return r.what.id == id && r.what.metric == metric; });
    return at == in.results.end() ? nullptr : &*at;
}

double value_of(const result::result* of) {
    REQUIRE(of != nullptr);
    REQUIRE_FALSE(of->sessions.empty());
    return stats::median(of->sessions[0].samples);
}

} // namespace

TEST_CASE("--search adds the best plan of what has plans, and the regret as a result of its own") {
    const fake_place at;
    const std::string suite = at.suite({"planned/3", "fake/work/1", "planned/1/hot", "planned/2/sustained"});
    const ended listed = at.bench({"--list", "--search", suite});
    CHECK(listed.out == "planned/3\nplanned/3/best\nfake/work/1\nplanned/1/hot\nplanned/1/best/hot\n"
                        "planned/2/sustained\n");
    CHECK(lines_of(at.bench({"--list", suite}).out) == 4);

    const std::string file = at.folder / "b.json";
    const ended run = at.bench({"--baseline=" + file, "--search", suite, "--filter=-sustained", "--sessions=2"});
    CAPTURE(run.err);
    REQUIRE(run.code == 0);
    const result::baseline made = json::load(file);
    CHECK(made.results.size() == 7);
    CHECK(value_of(find(made, "planned/3")) == doctest::Approx(3000).epsilon(1e-3));
    CHECK(value_of(find(made, "planned/3/best")) == doctest::Approx(1000).epsilon(1e-3));
    const result::result* regret = find(made, "planned/3/best", "heuristic_regret");
    CHECK(value_of(regret) == doctest::Approx(3).epsilon(1e-3));
    CHECK(regret->sessions.size() == 2);
    CHECK(regret->what.unit == "1");
    CHECK(regret->sessions[1].ran.implementation == "fake/plan3 over fake/plan1");
    CHECK(value_of(find(made, "planned/1/best/hot", "heuristic_regret")) == doctest::Approx(1).epsilon(1e-3));
    // The winner is in the file, with what it takes to replay it.
    CHECK(find(made, "planned/3/best")->sessions[0].ran.parts.count("plan") == 1);
    CHECK(contains(run.out, "planned/3/best (heuristic_regret)"));
    // A comparison runs what the baseline has.
    const ended same = at.bench({"--compare=" + file, "--sessions=2"});
    CAPTURE(same.out);
    CHECK(same.code == 0);
    CHECK(contains(same.out, "7 equivalent"));
}

TEST_CASE("a library that chooses worse: its choice and its regret regress, the recorded plan does not") {
    fake_place at;
    const std::string file = at.folder / "b.json";
    REQUIRE(at.bench({"--baseline=" + file, "--search", at.suite({"planned/2"})}).code == 0);
    at.variables["FAKE_CHOICE"] = "4";
    const ended worse = at.bench({"--compare=" + file, "--replay", "--save=" + (at.folder / "run.json")});
    CAPTURE(worse.out);
    CHECK(worse.code == 1);
    CHECK(contains(worse.out, "2 regressed, 2 equivalent"));
    CHECK(contains(worse.out, "planned/2: the baseline's own plan is as fast as before"));
    const result::baseline run = json::load(at.folder / "run.json");
    const result::result* pinned = find(run, "planned/2/pinned");
    CHECK(value_of(pinned) == doctest::Approx(2000).epsilon(1e-3));
    // The baseline's plan in every session, not the choice of this run's first.
    for (const auto& session : pinned->sessions) CHECK(session.ran.implementation == "fake/plan2");
    CHECK(find(json::load(file), "planned/2/pinned") == nullptr);
}

TEST_CASE("a slower machine: the recorded plan is slower too, and the regret is what it was") {
    fake_place at;
    const std::string file = at.folder / "b.json";
    REQUIRE(at.bench({"--baseline=" + file, "--search", at.suite({"planned/2"})}).code == 0);
    at.variables["FAKE_FACTOR"] = "1.5";
    const ended slower = at.bench({"--compare=" + file, "--replay"});
    CAPTURE(slower.out);
    CHECK(slower.code == 1);
    CHECK(contains(slower.out, "3 regressed, 1 equivalent"));
    CHECK(contains(slower.out, "planned/2: the baseline's own plan is slower too"));
}

TEST_CASE("--replay=best times the plan that the baseline's search found") {
    fake_place at;
    const std::string file = at.folder / "b.json";
    const std::string saved = at.folder / "run.json";
    REQUIRE(at.bench({"--baseline=" + file, "--search", at.suite({"planned/5"})}).code == 0);
    REQUIRE(at.bench({"--compare=" + file, "--replay=best", "--save=" + saved}).code == 0);
    CHECK(value_of(find(json::load(saved), "planned/5/pinned")) == doctest::Approx(1000).epsilon(1e-3));
}

TEST_CASE("a plan that cannot be replayed here is said, and no fault of the run") {
    fake_place at;
    const std::string file = at.folder / "b.json";
    REQUIRE(at.bench({"--baseline=" + file, at.suite({"planned/2", "fake/work/1"})}).code == 0);
    at.variables["FAKE_NO_REPLAY"] = "1";
    const ended without = at.bench({"--compare=" + file, "--replay"});
    CAPTURE(without.out);
    CHECK(without.code == 0);
    CHECK(contains(without.out, "not replayed: its numbers mean nothing here"));
    // Nothing that has plans was selected.
    const ended none = at.bench({"--compare=" + file, "--replay", "--filter=fake"});
    CHECK(none.code == 0);
    CHECK(contains(none.err, "holds no plan that this backend could time again"));
}

TEST_CASE("--search and --replay are refused where they mean nothing") {
    const fake_place at;
    for (const std::vector<std::string>& each : {std::vector<std::string>{"--compare", "--search"},
                                                 {"--append", "--search"},
                                                 {"--replay"},
                                                 {"--baseline", "--replay"},
                                                 {"--compare", "--replay=worst"},
                                                 {"--self-test", "--search"}}) {
        const ended refused = at.bench(each);
        CAPTURE(refused.err);
        CHECK(refused.code == 2);
    }
}
