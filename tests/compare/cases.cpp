// SPDX-License-Identifier: Apache-2.0
// Every case of tests/data/comparator_cases.json: verdicts, flags, numbers and exit code. Each case is something that
// went wrong in a public tool. The one left out, second-point-change, judges a time series of single values; plumbline
// compares two sets of sessions and has no history yet.
#include <cmath>
#include <fstream>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "plumbline/compare/compare.hpp"
#include "translate.hpp"

namespace {

namespace compare = plumbline::compare;
using nlohmann::json;

const json& file() {
    static const json all = json::parse(std::ifstream(PLUMBLINE_TEST_DATA "/comparator_cases.json"));
    return all;
}

compare::comparison run(const json& test) {
    const auto policy = translate::policy_of(test["policy"]);
    if (test.value("paired", false)) {
        const auto [base, candidate] = translate::interleaved(test);
        return compare::compare(base, candidate, policy);
    }
    if (test["baseline"].contains("generate")) {
        const auto [base, candidate] = translate::generated(test);
        return compare::compare(translate::baseline_of(base), translate::baseline_of(candidate), policy);
    }
    const auto base = translate::baseline_of(test["baseline"]);
    auto candidate = translate::baseline_of(test["candidate"]);
    if (test["policy"].contains("declared_subset")) {
        const std::set<std::string> subset = test["policy"]["declared_subset"];
        for (const auto& r : base.results) {
            if (subset.count(r.what.id) == 0) candidate.selected.left_out.push_back(r.what.id);
        }
    }
    if (test.contains("control")) {
        return compare::compare(base, candidate, translate::baseline_of(test["control"]), policy);
    }
    return compare::compare(base, candidate, policy);
}

const compare::finding* find(const compare::comparison& in, const std::string& id) {
    for (const auto& f : in.findings) {
        if (f.id == id) return &f;
    }
    return nullptr;
}

// The cases' names of what the comparison marks.
bool flagged(const compare::comparison& in, const std::string& flag) {
    if (flag == "common_mode") return in.machine_wide.has_value();
    const std::string name = flag == "suspicious_speedup" ? "suspicious" : flag;
    for (const auto& f : in.findings) {
        for (const auto m : f.markers) {
            if (compare::to_string(m) == name) return true;
        }
    }
    return false;
}

void check_expectations(const compare::comparison& got, const json& expect) {
    const std::set<std::string> verdicts = file()["verdicts"];
    for (const auto& [name, want] : expect.items()) {
        INFO(name, " should be ", want.dump());
        if (name == "exit_code") {
            CHECK(static_cast<int>(got.exit) == want.get<int>());
        } else if (name == "geomean_ratio") {
            CHECK(got.overall.ratio == doctest::Approx(want.get<double>()).epsilon(1e-9));
        } else if (name == "ratio") {
            CHECK(got.findings.at(0).ratio.value() == doctest::Approx(want.get<double>()).epsilon(5e-4));
        } else if (name == "regressed_count") {
            CHECK(got.count(compare::verdict::regressed) == want.get<std::size_t>());
        } else if (name == "improved_count") {
            CHECK(got.count(compare::verdict::improved) == want.get<std::size_t>());
        } else if (name == "common_mode_log_shift") {
            REQUIRE(got.machine_wide);
            CHECK(got.machine_wide->shift == doctest::Approx(want.get<double>()).epsilon(1e-4));
        } else if (name == "flags") {
            for (const auto& flag : want) CHECK(flagged(got, flag));
        } else {
            REQUIRE(verdicts.count(want) == 1);
            const auto* f = find(got, name);
            REQUIRE(f != nullptr);
            CHECK(compare::to_string(f->outcome) == want.get<std::string>());
        }
    }
}

// The reference implementation printed six digits.
void near(double got, const json& want, const char* what) {
    INFO(std::string(what), ": got ", got, ", want ", want.dump());
    CHECK(std::abs(got - want.get<double>()) <= 0.51e-6 * std::max(1.0, std::abs(want.get<double>())));
}

void check_numbers(const compare::comparison& got, const json& test) {
    for (const auto& [id, want] : test["reference_numbers"].items()) {
        INFO(id);
        const auto* f = find(got, id);
        REQUIRE(f != nullptr);
        REQUIRE(f->effect);
        const auto& e = *f->effect;
        near(e.delta, want["delta"], "delta");
        CHECK(e.df == want["df"].get<double>());
        near(e.hl, want["hl"], "hl");
        // The reference knew the timer's resolution but kept it out of the error.
        if (f->has(compare::marker::below_resolution)) continue;
        near(e.se, want["se"], "se");
        near(e.delta / e.se, want["t"], "t");
        near(e.p_regressed, want["p_reg"], "p_reg");
        near(e.p_improved, want["p_imp"], "p_imp");
        near(e.adjusted_regressed, want["q_reg"], "q_reg");
        near(e.adjusted_improved, want["q_imp"], "q_imp");
        near(e.low90, want["lo90"], "lo90");
        near(e.high90, want["hi90"], "hi90");
        // The reference took every benchmark for the only one of its suite.
        near(std::expm1(plumbline::stats::detectable_shift(e.se, e.df, 0.01, 1)), want["mde"], "mde");
        if (got.tests == 1) near(e.smallest_detectable, want["mde"], "mde");
        if (!test.contains("reference_rank") || !test["reference_rank"].contains(id)) continue;
        REQUIRE(e.rank_regressed);
        near(*e.rank_regressed, test["reference_rank"][id]["mw_greater"], "mw_greater");
        near(*e.rank_improved, test["reference_rank"][id]["mw_less"], "mw_less");
    }
}

} // namespace

TEST_CASE("cases: what went wrong elsewhere does not go wrong here") {
    std::size_t run_cases = 0;
    for (const auto& test : file()["cases"]) {
        const std::string id = test["id"];
        if (id == "second-point-change") continue;
        INFO(id);
        const auto got = run(test);
        check_expectations(got, test["expect"]);
        if (test.contains("reference_numbers")) check_numbers(got, test);
        ++run_cases;
    }
    CHECK(run_cases == file()["cases"].size() - 1);
    CHECK(run_cases == 37);
}
