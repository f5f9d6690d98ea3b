// SPDX-License-Identifier: Apache-2.0
// The baseline's plans timed again beside today's choice.
#include <string>

#include <doctest/doctest.h>

#include "build.hpp"
#include "plumbline/compare/compare.hpp"
#include "plumbline/compare/replay.hpp"

namespace compare = plumbline::compare;
namespace result = plumbline::result;
using build::scaled;
using compare::verdict;
using plumbline::workload::plan_choice;

namespace {

const build::values five{100, 100.1, 99.9, 100.05, 99.95};

result::result& add_planned(result::baseline& to, const std::string& id, const build::values& of,
                            const std::string& plan) {
    result::result& made = build::add(to, id, of);
    made.what.params["plan"] = plan;
    for (result::session_result& each : made.sessions) {
        each.ran.implementation = "lt/id1";
        each.ran.parts["algo.id"] = std::int64_t{1};
    }
    return made;
}

} // namespace

TEST_CASE("the recorded plans are those of the choice asked for, under the pinned id, of the sessions that ran them") {
    result::baseline base = build::baseline(5);
    add_planned(base, "gemm/a/hot", five, "heuristic").sessions[1].ran.implementation = "lt/id9";
    add_planned(base, "gemm/a/best/hot", five, "best");
    add_planned(base, "gemm/b", five, "heuristic").status = result::result_status::failed;
    build::add(base, "probe/c", five);
    auto& silent = add_planned(base, "gemm/d", five, "heuristic");
    for (auto& each : silent.sessions) each.ran = {};
    const auto chosen = compare::recorded_plans(base, plan_choice::heuristic);
    REQUIRE(chosen.size() == 1);
    CHECK(chosen[0].what.id == "gemm/a/pinned/hot");
    CHECK(std::get<std::string>(chosen[0].what.params.at("plan")) == "pinned");
    CHECK(chosen[0].sessions.size() == 4);
    const auto best = compare::recorded_plans(base, plan_choice::best);
    REQUIRE(best.size() == 1);
    CHECK(best[0].what.id == "gemm/a/pinned/hot");
    CHECK(best[0].sessions.size() == 5);
}

TEST_CASE("what was replayed is compared with its record; what could not be is neither missing nor invalid") {
    result::baseline base = build::baseline(5);
    add_planned(base, "gemm/a", five, "heuristic");
    add_planned(base, "gemm/b", five, "heuristic");
    const auto recorded = compare::recorded_plans(base, plan_choice::heuristic);
    result::baseline candidate = build::baseline(5);
    add_planned(candidate, "gemm/a", scaled(five, 1.5), "heuristic");
    add_planned(candidate, "gemm/b", scaled(five, 1.5), "heuristic");
    add_planned(candidate, "gemm/a/pinned", five, "pinned");
    auto& refused = add_planned(candidate, "gemm/b/pinned", {}, "pinned");
    refused.status = result::result_status::skipped;
    refused.reason = "another cublasLt";
    const auto remarks = compare::add_replayed(base, candidate, recorded);
    REQUIRE(remarks.size() == 1);
    CHECK(remarks[0] == "not replayed: another cublasLt");
    compare::comparison found = compare::compare(base, candidate);
    compare::note_replays(found, plan_choice::heuristic);
    CHECK(found.findings.size() == 3);
    CHECK(found.count(verdict::regressed) == 2);
    CHECK(found.count(verdict::equivalent) == 1);
    REQUIRE(found.notes.size() == 3); // two files without a fingerprint, and the replay
    CHECK(found.notes[2].rfind("gemm/a: the baseline's own plan is as fast as before", 0) == 0);
}

TEST_CASE("a recorded plan that is slower too clears the library's choice; one that was not needed says nothing") {
    result::baseline base = build::baseline(5);
    add_planned(base, "gemm/a", five, "heuristic");
    const auto recorded = compare::recorded_plans(base, plan_choice::heuristic);
    for (const double factor : {1.5, 1.0}) {
        result::baseline with = base;
        result::baseline candidate = build::baseline(5);
        add_planned(candidate, "gemm/a", scaled(five, factor), "heuristic");
        add_planned(candidate, "gemm/a/pinned", scaled(five, factor), "pinned");
        CHECK(compare::add_replayed(with, candidate, recorded).empty());
        compare::comparison found = compare::compare(with, candidate);
        compare::note_replays(found, plan_choice::heuristic);
        if (factor == 1.0) {
            CHECK(found.notes.size() == 2);
        } else {
            REQUIRE(found.notes.size() == 3);
            CHECK(found.notes[2].find("is slower too: kernels, driver or machine") != std::string::npos);
        }
    }
}
