// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "plumbline/json/policy.hpp"

using namespace plumbline;

namespace {

std::string refused(const std::string& text) {
    try {
        static_cast<void>(json::parse_policy(text, "policy.json"));
    } catch (const schema_error& problem) {
        return problem.what();
    }
    return "accepted";
}

void check_refusal(const std::string& text, const std::string& pointer, const std::string& message) {
    const std::string found = refused(text);
    CAPTURE(found);
    const std::string at = pointer.empty() ? "the top level" : pointer;
    CHECK(found.rfind("policy.json: at " + at + ": ", 0) == 0);
    CHECK(found.find(message) != std::string::npos);
}

} // namespace

TEST_CASE("an empty policy is the default one, and the default one is written and read back the same") {
    CHECK(json::parse_policy("{}", "p") == compare::policy{});
    CHECK(json::parse_policy(json::dump(compare::policy{}), "p") == compare::policy{});
}

TEST_CASE("every field is read, written and read back") {
    const std::string text = R"({
        // a policy in which nothing has its default
        "short_below_ns": 10000, "d0": 5, "floor": 0.001, "q": 0.02, "alpha_equivalence": 0.1, "alpha_rank": 0.01,
        "rank_minimum": 6, "resolution_s": 1e-9, "suspicious_speedup": 3, "board_factor_limit": 0.04,
        "board_spread": 0.02, "compute_intensity": 50, "compute_canary": "probe/canary_fma*",
        "common_mode_share": 0.9, "common_mode_minimum": 7, "foreign_load_is_invalid": false,
        "throttled_is_invalid": true, "allow_hardware_diff": true, "strict": true, "today": "2026-11-30",
        "classes": {"kernel": {"margin": 0.02 /* was 1.5 % */, "s_e": 0}, "host": {"advisory": false}},
        "rules": [{"match": "gemm/*", "metric": "time", "margin": 0.05, "s0": 0.01, "s_e": 0.01, "resolution": 500,
                   "required": false, "advisory": true, "compute_bound": false}],
        "accepted": [{"match": "conv/*", "metric": "time", "up_to": 0.1, "until": "2026-12-31", "reason": "OPS-7",
                      "who": "ops"}, {"match": "x", "until": "never", "reason": "y"}]})";
    const compare::policy read = json::parse_policy(text, "p");
    CHECK(read.short_below_ns == 10000);
    CHECK(read.d0 == 5);
    CHECK(read.floor == 0.001);
    CHECK(read.q == 0.02);
    CHECK(read.alpha_equivalence == 0.1);
    CHECK(read.alpha_rank == 0.01);
    CHECK(read.rank_minimum == 6);
    CHECK(read.resolution_s == 1e-9);
    CHECK(read.suspicious_speedup == 3);
    CHECK(read.board_factor_limit == 0.04);
    CHECK(read.board_spread == 0.02);
    CHECK(read.compute_intensity == 50);
    CHECK(read.compute_canary == "probe/canary_fma*");
    CHECK(read.common_mode_share == 0.9);
    CHECK(read.common_mode_minimum == 7);
    CHECK_FALSE(read.foreign_load_is_invalid);
    CHECK(read.throttled_is_invalid);
    CHECK(read.allow_hardware_diff);
    CHECK(read.strict);
    CHECK(read.today == "2026-11-30");
    const compare::policy defaults;
    CHECK(read.classes.at("kernel").margin == 0.02);
    CHECK(read.classes.at("kernel").s_e == 0);
    CHECK(read.classes.at("kernel").s0 == defaults.classes.at("kernel").s0); // not named: unchanged
    CHECK_FALSE(read.classes.at("host").advisory);
    CHECK(read.classes.at("dataloader") == defaults.classes.at("dataloader"));
    REQUIRE(read.rules.size() == 1);
    CHECK(read.rules[0] == compare::rule{"gemm/*", "time", 0.05, 0.01, 0.01, 500.0, false, true, false});
    REQUIRE(read.accepted.size() == 2);
    CHECK(read.accepted[0] == compare::acceptance{"conv/*", "time", 0.1, "2026-12-31", "OPS-7", "ops"});
    CHECK(read.accepted[1].until.empty());
    CHECK(json::parse_policy(json::dump(read), "p") == read);
}

TEST_CASE("a wrong policy is refused with the place and what was meant") {
    check_refusal(R"({"margn": 0.01})", "/margn", "is not a known member");
    check_refusal(R"({"strct": true})", "/strct", "did you mean \"strict\"?");
    check_refusal(R"({"classes": {"kernl": {}}})", "/classes/kernl", "did you mean \"kernel\"?");
    check_refusal(R"({"classes": {"kernel": {"margins": 0.1}}})", "/classes/kernel/margins",
                  "did you mean \"margin\"?");
    check_refusal(R"({"classes": {"kernel": {"margin": 3}}})", "/classes/kernel/margin", "0.03 is 3 %");
    check_refusal(R"({"classes": {"kernel": {"margin": 0}}})", "/classes/kernel/margin", "more than 0");
    check_refusal(R"({"classes": {"kernel": {"s0": -1}}})", "/classes/kernel/s0", "more than 0");
    check_refusal(R"({"q": "0.01"})", "/q", "must be a number, is a string");
    check_refusal(R"({"q": 0})", "/q", "a probability");
    check_refusal(R"({"alpha_equivalence": 0.6})", "/alpha_equivalence", "at most 0.5");
    check_refusal(R"({"rank_minimum": 2.5})", "/rank_minimum", "must be a whole number");
    check_refusal(R"({"suspicious_speedup": 1})", "/suspicious_speedup", "more than 1");
    check_refusal(R"({"strict": 1})", "/strict", "true or false");
    check_refusal(R"({"today": "tomorrow"})", "/today", "must be a date");
    check_refusal(R"({"rules": [{"margin": 0.1}]})", "/rules/0", "lacks the member \"match\"");
    check_refusal(R"({"rules": [{"match": ""}]})", "/rules/0/match", "must not be empty");
    check_refusal(R"({"rules": [{"match": "*", "metrics": "time"}]})", "/rules/0/metrics", "did you mean \"metric\"?");
    check_refusal(R"({"accepted": [{"match": "*", "until": "never"}]})", "/accepted/0", "lacks the member \"reason\"");
    check_refusal(R"({"accepted": [{"match": "*", "reason": "x"}]})", "/accepted/0", "lacks the member \"until\"");
    check_refusal(R"({"accepted": [{"match": "*", "reason": "x", "until": "soon"}]})", "/accepted/0/until",
                  "\"never\"");
    for (const char* day : {"2026-13-01", "2026-00-01", "2026-04-31", "2026-02-30", "2026-12-00", "2026-12-32"}) {
        const std::string quoted = '"' + std::string(day) + '"';
        check_refusal(R"({"accepted": [{"match": "*", "reason": "x", "until": )" + quoted + "}]}", "/accepted/0/until",
                      "the last day it holds");
        check_refusal(R"({"today": )" + quoted + "}", "/today", "must be a date");
    }
    CHECK(json::parse_policy(R"({"today": "2028-02-29"})", "p").today == "2028-02-29");
    check_refusal(R"({"d0": 0})", "/d0", "more than 0");
    check_refusal(R"([])", "", "must be an object, is an array");
    check_refusal(R"({"q": 0.1, "q": 0.2})", "/q", "the key occurs twice");
}
