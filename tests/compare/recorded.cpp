// SPDX-License-Identifier: Apache-2.0
// Verdicts over sessions that `bench` itself recorded on an H200 (tests/data/measured): ten interleaved trials with
// slowdowns planted on the GPU, and twenty sessions of a dozen benchmarks compared with each other.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "build.hpp"
#include "plumbline/compare/compare.hpp"

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
