// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "plumbline/core/error.hpp"
#include "plumbline/json/knowledge.hpp"

using namespace plumbline;

namespace {

std::string refusal(const std::string& entry) {
    try {
        (void)json::parse_knowledge(R"({"knowledge": [)" + entry + "]}", "site.json");
    } catch (const schema_error& e) {
        return e.pointer() + ": " + e.what();
    }
    return "accepted";
}

} // namespace

TEST_CASE("a user's knowledge is read with every member") {
    const auto read = json::parse_knowledge(R"({"knowledge": [ // of our site
        {"component": "scratch disk", "attributes": ["env.SCRATCH_*", "data.*"], "way": "down", "at_least": 2,
         "at_least_share": 0.5, "reaches": 1, "to": ["nfs*"], "backend": "cuda", "touches": ["dataloader/*"],
         "touches_on_cpu": ["gemm/*"], "spares": ["dataloader/raw*"], "always": ["dataloader/jpeg*"],
         "shows": ["read_slower", "memory_pressure"], "clock": false, "in_proportion": true, "canary": "either", "most": 4, "weight": 0.5,
         "symptom": true, "effect": "slow disk", "remedy": "use the fast one", "experiment": "move the data",
         "sources": ["ops/tickets#7"]},
        {"attributes": ["env.BADGE"], "touches": [], "effect": "none"}]})",
                                            "site.json");
    REQUIRE(read.size() == 2);
    const compare::knowledge& one = read[0];
    CHECK(one.component == "scratch disk");
    CHECK(one.attributes.size() == 2);
    CHECK(one.way == compare::turn::down);
    CHECK(one.at_least == 2);
    CHECK(one.at_least_share == 0.5);
    CHECK(one.reaches == 1);
    CHECK(one.to == std::vector<std::string>{"nfs*"});
    CHECK(one.backend == "cuda");
    CHECK(one.touches_on_cpu == std::vector<std::string>{"gemm/*"});
    CHECK(one.spares.size() == 1);
    CHECK(one.always.size() == 1);
    CHECK(one.shows == std::vector{compare::mechanism::read_slower, compare::mechanism::memory_pressure});
    CHECK(one.canary == compare::canary_view::either);
    CHECK(one.most == 4);
    CHECK(one.in_proportion);
    CHECK(one.weight == 0.5);
    CHECK(one.symptom);
    CHECK(one.remedy == "use the fast one");
    CHECK(one.experiment == "move the data");
    CHECK(one.sources.front() == "ops/tickets#7");
    CHECK(read[1].touches.empty());
}

TEST_CASE("mistakes are named with their place") {
    CHECK(refusal(R"({"attributes": ["a"], "touches": ["*"], "effect": "x"})") == "accepted");
    CHECK(refusal(R"({"attributes": ["a"], "touches": ["*"], "effect": "x", "shows": ["clock_low"]})")
              .find("/knowledge/0/shows/0: ") == 0);
    CHECK(refusal(R"({"attributes": ["a"], "touches": ["*"], "effect": "x", "shows": ["clock_low"]})")
              .find("did you mean \"clock_lower\"?") != std::string::npos);
    CHECK(refusal(R"({"attributes": [], "touches": ["*"], "effect": "x"})").find("/knowledge/0/attributes: ") == 0);
    CHECK(refusal(R"({"touches": ["*"], "effect": "x"})").find("/knowledge/0: ") == 0);
    CHECK(refusal(R"({"attributes": ["a"], "effect": "x"})").find("lacks the member \"touches\"") != std::string::npos);
    CHECK(refusal(R"({"attributes": ["a"], "touches": ["*"], "effect": ""})").find("/knowledge/0/effect: ") == 0);
    CHECK(refusal(R"({"attributes": ["a", ""], "touches": ["*"], "effect": "x"})").find("/attributes/1: ") !=
          std::string::npos);
    CHECK(
        refusal(R"({"attributes": ["a"], "touches": ["*"], "effect": "x", "most": 0.5})").find("/knowledge/0/most: ") ==
        0);
    CHECK(refusal(R"({"attributes": ["a"], "touches": ["*"], "effect": "x", "efect": ""})").find("\"effect\"?") !=
          std::string::npos);
    CHECK_THROWS_AS((void)json::parse_knowledge("[]", "site.json"), schema_error);
}

TEST_CASE("a user's entries go before what is built in") {
    const auto all = json::knowledge_with({});
    CHECK(all.size() == compare::built_in_knowledge().size());
    CHECK_THROWS_AS((void)json::knowledge_with("/nowhere/site.json"), file_error);
}

TEST_CASE("the example of the recipes is read") {
    const auto all = json::knowledge_with(PLUMBLINE_TEST_DATA "/../../tools/recipes/knowledge.json");
    CHECK(all.size() == compare::built_in_knowledge().size() + 2);
    CHECK(all[0].component == "scratch disk");
    CHECK(all[1].touches.empty());
}
