// SPDX-License-Identifier: Apache-2.0
// Verdicts over sessions that `bench` itself recorded on an H200 (tests/data/measured): ten interleaved trials with
// slowdowns planted on the GPU, and twenty sessions of a dozen benchmarks compared with each other; and over twenty
// sessions of the CPU backend on a virtual machine.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "build.hpp"
#include "plumbline/compare/compare.hpp"
#include "plumbline/compare/explain.hpp"

namespace {

using build::values;
using nlohmann::json;
using plumbline::compare::verdict;
namespace compare = plumbline::compare;
namespace result = plumbline::result;

json recorded(const std::string& name) {
    return json::parse(std::ifstream(PLUMBLINE_TEST_DATA "/measured/" + name));
}

// One interleaved trial: `count` rounds from `first` on, column `side` against the first column.
verdict trial(const json& rounds, std::size_t first, std::size_t count, std::size_t side) {
    result::baseline base = build::baseline(count);
    result::baseline candidate = build::baseline(count);
    values before, after;
    for (std::size_t i = 0; i < count; ++i) {
        base.sessions[i].control = candidate.sessions[i].control = "round " + std::to_string(i + 1);
        before.push_back(rounds[first + i][0]);
        after.push_back(rounds[first + i][side]);
    }
    build::add(base, "gemm", before, plumbline::benchmark_class::kernel, "ns");
    build::add(candidate, "gemm", after, plumbline::benchmark_class::kernel, "ns");
    return compare::compare(base, candidate, {}).findings.at(0).outcome;
}

} // namespace

TEST_CASE("slowdowns planted on the GPU are found in interleaved trials of three rounds, and nothing else is") {
    const json file = recorded("h200_planted.json");
    const json& rounds = file["rounds"];
    REQUIRE(rounds.size() == 30);
    int found[4] = {};
    for (std::size_t side = 1; side < 4; ++side) {
        for (std::size_t first = 0; first < 30; first += 3) {
            const verdict said = trial(rounds, first, 3, side);
            found[side] += said == verdict::regressed;
            if (side == 1) CHECK(said != verdict::improved);
        }
    }
    std::printf(
        "planted on an H200, 10 interleaved trials of 3 rounds: none found in %d, 0.33 %% in %d, 0.65 %% in %d\n",
        found[1], found[2], found[3]);
    CHECK(found[1] == 0);
    CHECK(found[3] >= 9);
}

TEST_CASE("twenty sessions of one board: five against five others raise no alarm, and 2 % on one benchmark does") {
    const json file = recorded("h200_sessions20.json");
    std::mt19937 random(20);
    const int draws = 400;
    int alarms = 0, detected = 0, equivalent = 0, pairs = 0;
    for (int draw = 0; draw < draws; ++draw) {
        std::vector<std::size_t> order(20);
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        result::baseline base = build::baseline(5), same = build::baseline(5), slower = build::baseline(5);
        const auto slow = static_cast<std::size_t>(draw) % file["benchmarks"].size();
        std::size_t number = 0;
        for (const auto& [id, one] : file["benchmarks"].items()) {
            values left, right, worse;
            for (std::size_t i = 0; i < 5; ++i) {
                left.push_back(one["median_ns"][order[i]]);
                right.push_back(one["median_ns"][order[5 + i]]);
                worse.push_back(right.back() * (number == slow ? 1.02 : 1));
            }
            build::add(base, id, left, plumbline::benchmark_class::kernel, "ns");
            build::add(same, id, right, plumbline::benchmark_class::kernel, "ns");
            build::add(slower, id, worse, plumbline::benchmark_class::kernel, "ns");
            ++number;
        }
        const compare::comparison quiet = compare::compare(base, same, {});
        bool any = false;
        for (const compare::finding& each : quiet.findings) {
            any = any || each.outcome == verdict::regressed || each.outcome == verdict::improved;
            equivalent += each.outcome == verdict::equivalent;
            ++pairs;
        }
        alarms += any;
        const compare::comparison loud = compare::compare(base, slower, {});
        const auto hit = std::count_if(loud.findings.begin(), loud.findings.end(),
                                       [](const auto& f) { return f.outcome == verdict::regressed; });
        detected += hit == 1;
    }
    std::printf(
        "20 sessions of one H200, 5 against 5, %d draws: alarms in %d, equivalent %.1f %%; 2 %% slower found in "
        "%.1f %%\n",
        draws, alarms, 100.0 * equivalent / pairs, 100.0 * detected / draws);
    CHECK(alarms == 0);
    CHECK(equivalent >= 95 * pairs / 100);
    CHECK(detected >= 9 * draws / 10);
}

TEST_CASE("twenty sessions of a CPU: suites of a hundred, five sessions against five others, raise no alarm") {
    const json file = recorded("cpu_sessions20.json");
    std::vector<values> benchmarks;
    for (const auto& [id, one] : file["benchmarks"].items()) benchmarks.push_back(one["median_ns"].get<values>());
    std::mt19937 random(100);
    const int suites = 300;
    int alarms = 0, improved = 0, detected = 0;
    for (int suite = 0; suite < suites; ++suite) {
        result::baseline base = build::baseline(5), same = build::baseline(5), slower = build::baseline(5);
        for (result::baseline* each : {&base, &same, &slower}) each->device.backend = "cpu";
        for (int i = 0; i < 100; ++i) {
            values sessions = benchmarks[random() % benchmarks.size()];
            std::shuffle(sessions.begin(), sessions.end(), random);
            const values left(sessions.begin(), sessions.begin() + 5);
            const values right(sessions.begin() + 5, sessions.begin() + 10);
            const std::string id = "benchmark/" + std::to_string(i);
            build::add(base, id, left, plumbline::benchmark_class::kernel, "ns");
            build::add(same, id, right, plumbline::benchmark_class::kernel, "ns");
            build::add(slower, id, build::scaled(right, i == 0 ? 1.5 : 1), plumbline::benchmark_class::kernel, "ns");
        }
        const auto seen = [](const compare::comparison& in, verdict which) {
            return std::any_of(in.findings.begin(), in.findings.end(),
                               [&](const auto& f) { return f.outcome == which; });
        };
        const compare::comparison quiet = compare::compare(base, same, {});
        CHECK(quiet.findings.front().used.margin == 0.1); // judged as work of the CPU backend
        alarms += seen(quiet, verdict::regressed);
        improved += seen(quiet, verdict::improved);
        detected += build::at(compare::compare(base, slower, {}), "benchmark/0").outcome == verdict::regressed;
    }
    std::printf("20 sessions of a CPU, %d suites of 100, 5 against 5: any regressed in %d, any improved in %d; 50 %% "
                "slower found in %.1f %%\n",
                suites, alarms, improved, 100.0 * detected / suites);
    CHECK(alarms <= suites / 100);
    CHECK(improved <= suites / 100);
    CHECK(detected >= suites * 3 / 4);
}

namespace {

/// Sessions of one recorded side with their cycles and, for the canaries, the hash of their machine code: the even or
/// the odd ones of the twenty. `factor` and `clock_factor` of a benchmark's time and of the clock's part in it.
template <class Factors>
result::baseline recorded_side(const json& benchmarks, std::size_t first, Factors&& factors) {
    result::baseline made = build::baseline(10);
    for (const auto& [id, one] : benchmarks.items()) {
        const auto [factor, clock_factor] = factors(id);
        values times;
        for (std::size_t i = first; i < 20; i += 2) {
            times.push_back(one["median_ns"][i].template get<double>() * factor);
        }
        auto& added = build::add(made, id, times, plumbline::benchmark_class::kernel, "ns");
        for (std::size_t i = 0; i < times.size(); ++i) {
            const double cycles = one["median_cycles"][first + 2 * i];
            added.sessions[i].cycles = {cycles * factor / clock_factor};
            if (id.rfind("probe/canary", 0) == 0) added.sessions[i].ran.parts["code_hash"] = std::string("frozen");
            added.sessions[i].ran.implementation = "plan of " + id;
        }
    }
    return made;
}

/// The causes of a comparison of recorded sessions: names and strengths.
std::string causes_of(const result::baseline& base, const result::baseline& candidate) {
    const auto why = compare::explain(compare::compare(base, candidate), base, candidate);
    std::string text;
    for (const auto& each : why.causes) text += each.name + " " + compare::to_string(each.how_sure) + "; ";
    return text;
}

void change(result::baseline& base, result::baseline& candidate, const char* name, std::int64_t from, std::int64_t to) {
    using plumbline::result::reading;
    base.environment.attributes[name] = {result::attribute_class::config, 2, "test", reading::of(from)};
    candidate.environment.attributes[name] = {result::attribute_class::config, 2, "test", reading::of(to)};
}

} // namespace

TEST_CASE("recorded sessions: a slower node, a lower clock and a library are told apart") {
    const json file = recorded("h200_sessions20.json");
    const json& all = file["benchmarks"];
    const auto unchanged = [](const std::string&) { return std::pair(1.0, 1.0); };
    const result::baseline base = recorded_side(all, 0, unchanged);
    result::baseline before = base;
    SUBCASE("nothing happened, whatever changed") {
        result::baseline after = recorded_side(all, 1, unchanged);
        change(before, after, "cublaslt.version", 130100, 130200);
        CHECK(causes_of(before, after).empty());
    }
    SUBCASE("the node is slower, the canary with it, and cuBLAS changed on that day") {
        result::baseline after = recorded_side(all, 1, [](const std::string&) { return std::pair(1.06, 1.0); });
        CHECK(causes_of(before, after) == "this machine consistent; ");
        change(before, after, "cublaslt.version", 130100, 130200);
        CHECK(causes_of(before, after) == "this machine consistent; ");
    }
    SUBCASE("the clock is lower in dense work, and cuBLAS changed on that day") {
        result::baseline after = recorded_side(all, 1, [](const std::string& id) {
            const bool dense = id.rfind("gemm", 0) == 0 || id == "probe/canary_mma";
            return dense ? std::pair(1.08, 1.08) : std::pair(1.0, 1.0);
        });
        change(before, after, "cublaslt.version", 130100, 130200);
        CHECK(causes_of(before, after) == "lower SM clock consistent; ");
    }
    SUBCASE("cuBLAS chose another algorithm, and the canaries stand") {
        result::baseline after = recorded_side(all, 1, [](const std::string& id) {
            return id.rfind("gemm/bf16", 0) == 0 ? std::pair(1.08, 1.0) : std::pair(1.0, 1.0);
        });
        change(before, after, "cublaslt.version", 130100, 130200);
        change(before, after, "driver.version", 580, 581);
        for (auto& r : after.results) {
            for (auto& s : r.sessions) {
                if (r.what.id.rfind("gemm/bf16", 0) == 0) s.ran.implementation = "another plan";
            }
        }
        CHECK(causes_of(before, after) == "cuBLAS consistent; ");
    }
}
