// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>

#include <doctest/doctest.h>

#include "plumbline/json/baseline.hpp"
#include "plumbline/json/store.hpp"
#include "plumbline/workload/gemm.hpp"
#include "sample.hpp"

using namespace plumbline;

TEST_CASE("alarms are written with their result and follow from it again when it is read") {
    result::baseline slow = tests::sample_baseline();
    CHECK(json::dump(slow).find("\"alarms\"") == std::string::npos);
    slow.results[0].sessions[1].ran.parts["tensor_cores"] = false;
    const std::string text = json::dump(slow);
    CHECK(text.find("\"code\":\"no_tensor_cores\"") != std::string::npos);
    CHECK(json::dump(json::parse_baseline(text, "b.json")) == text);
}

TEST_CASE("no alarm is raised by what was measured on a sound H200") {
    std::size_t results = 0;
    for (const auto& entry : std::filesystem::directory_iterator(PLUMBLINE_TEST_DATA "/../../baselines/reference")) {
        if (entry.path().extension() != ".json") continue;
        const result::baseline measured = json::load(entry.path());
        results += measured.results.size();
        CHECK(json::dump(measured).find("\"alarms\"") == std::string::npos);
    }
    CHECK(results > 20);
}

TEST_CASE("ids of the shipped baselines still mean the work that was measured") {
    std::size_t products = 0;
    for (const auto& entry : std::filesystem::directory_iterator(PLUMBLINE_TEST_DATA "/../../baselines/reference")) {
        if (entry.path().extension() != ".json") continue;
        for (const result::result& measured : json::load(entry.path()).results) {
            if (measured.what.family != "gemm") continue;
            ++products;
            const workload::description today = workload::gemm::describe(workload::gemm::parse(measured.what.id));
            CAPTURE(measured.what.id);
            CHECK(today.params == measured.what.params);
            CHECK(today.hash() == measured.what.hash());
            CHECK(today.flop == measured.what.flop);
            CHECK(today.bytes == measured.what.bytes);
        }
    }
    CHECK(products >= 12);
}

TEST_CASE("what was written reads back the same, in every member") {
    const result::baseline before = tests::sample_baseline();
    const std::string text = json::dump(before);
    const result::baseline after = json::parse_baseline(text, "b.json");
    CHECK(json::dump(after) == text);

    CHECK(after.created == before.created);
    CHECK(after.tool == before.tool);
    CHECK(after.labels == before.labels);
    CHECK(after.selected.filter == "gemm.*");
    CHECK(after.selected.left_out == before.selected.left_out);
    CHECK(after.environment.attributes == before.environment.attributes);
    CHECK(after.device.properties == before.device.properties);
    CHECK(after.device.ceilings == before.device.ceilings);
    REQUIRE(after.noise.size() == 2);
    CHECK(after.noise.at("kernel").s0 == 0.0015);
    CHECK_FALSE(after.noise.at("kernel").s_e);
    CHECK(after.noise.at("gemm/bf16/tn/m4096n4096k4096").epochs == 3);
    REQUIRE(after.sessions.size() == 2);
    CHECK(after.sessions[0].seed == std::numeric_limits<std::uint64_t>::max());
    CHECK(after.sessions[0].when == before.sessions[0].when);
    CHECK(after.sessions[1].failed);
    CHECK(after.sessions[1].reason == "killed by signal 9");
    CHECK(after.sessions[1].control == "round-0");
    REQUIRE(after.results.size() == 2);
    const auto& [was, is] = std::pair(before.results[0].sessions[0], after.results[0].sessions[0]);
    CHECK(is.samples == was.samples);
    CHECK(is.cycles == was.cycles);
    CHECK(is.clean == was.clean);
    CHECK(is.flags == was.flags);
    CHECK(is.ran == was.ran);
    CHECK(is.state == was.state);
    CHECK(after.results[1].status == result::result_status::skipped);
    CHECK(after.results[1].reason == "needs compute capability 8.9");
    CHECK(after.results[1].what.better == direction::higher);
    CHECK(after.results[1].what.kind == benchmark_class::dataloader);
    CHECK(after.results[1].what.hash() == before.results[1].what.hash());
    REQUIRE(after.history.size() == 2);
    CHECK(after.history[1].ids == before.history[1].ids);
    CHECK(after.checks == before.checks);
}

TEST_CASE("every finite double reads back bit for bit") {
    std::mt19937_64 random(20261130);
    std::vector<double> values{0.0,
                               -0.0,
                               1.0,
                               0.1,
                               1e22,
                               1e23,
                               123456789012345678.0,
                               std::nextafter(1.0, 2.0),
                               std::numeric_limits<double>::min(),
                               std::numeric_limits<double>::denorm_min(),
                               std::numeric_limits<double>::max()};
    while (values.size() < 20000) {
        const std::uint64_t bits = random();
        double value = 0;
        static_assert(sizeof value == sizeof bits);
        std::memcpy(&value, &bits, sizeof value);
        if (std::isfinite(value)) values.push_back(value);
    }
    result::baseline all = tests::sample_baseline();
    auto& entry = all.results[0].sessions[0];
    entry.samples = values;
    entry.cycles.clear();
    entry.clean.clear();
    const auto back = json::parse_baseline(json::dump(all), "b.json").results[0].sessions[0].samples;
    REQUIRE(back.size() == values.size());
    CHECK(std::memcmp(back.data(), values.data(), values.size() * sizeof(double)) == 0);
}

TEST_CASE("types of leaves survive: 1, 1.0, \"1\" and true stay what they are") {
    result::baseline all = tests::sample_baseline();
    all.labels = {{"a", std::int64_t{1}},
                  {"b", 1.0},
                  {"c", std::string("1")},
                  {"d", true},
                  {"e", std::numeric_limits<std::int64_t>::min()},
                  {"f", std::numeric_limits<std::int64_t>::max()}};
    CHECK(json::parse_baseline(json::dump(all), "b.json").labels == all.labels);
}

TEST_CASE("results are read the same when schema comes last, as another program may write it") {
    const std::string text = json::dump(tests::sample_baseline());
    auto document = nlohmann::ordered_json::parse(text);
    const auto schema = document["schema"];
    document.erase("schema");
    document["schema"] = schema;
    CHECK(json::dump(json::parse_baseline(document.dump(), "b.json")) == text);
}

TEST_CASE("an empty baseline is a baseline") {
    result::baseline all;
    all.created = "2026-11-30T20:15:00Z";
    const result::baseline back = json::parse_baseline(json::dump(all), "b.json");
    CHECK(back.results.empty());
    CHECK(back.environment.attributes.empty());
}

TEST_CASE("what cannot be said in the schema is refused before it is written, with its place") {
    const auto refused = [](auto change) {
        result::baseline all = tests::sample_baseline();
        change(all);
        try {
            static_cast<void>(json::dump(all));
        } catch (const schema_error& problem) {
            return problem.pointer();
        }
        return std::string("accepted");
    };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(refused([&](auto& b) { b.results[0].sessions[1].samples[2] = nan; }) == "/results/0/sessions/1/samples/2");
    CHECK(refused([&](auto& b) { b.results[0].sessions[0].cycles[0] = HUGE_VAL; }) == "/results/0/sessions/0/cycles/0");
    CHECK(refused([&](auto& b) { b.results[0].sessions[0].state["x"] = nan; }) == "/results/0/sessions/0/state/x");
    CHECK(refused([&](auto& b) { b.sessions[1].state["power_w"] = nan; }) == "/sessions/1/state/power_w");
    CHECK(refused([&](auto& b) { b.device.ceilings["copy_bytes_per_s"] = nan; }) ==
          "/device/ceilings/copy_bytes_per_s");
    CHECK(refused([](auto& b) { b.results.push_back(b.results[0]); }) == "/results/2");
    CHECK(refused([](auto& b) { b.results[0].sessions[1].session = 2; }) == "/results/0/sessions/1/session");
    CHECK(refused([](auto& b) { b.results[0].sessions[1].session = 0; }) == "/results/0/sessions/1/session");
    CHECK(refused([](auto& b) { b.created = "yesterday"; }) == "/created");
    CHECK(refused([](auto& b) { b.sessions[0].started = ""; }) == "/sessions/0/started");

    result::baseline all = tests::sample_baseline();
    all.labels["bad"] = std::string("\xff");
    CHECK_THROWS_AS(static_cast<void>(json::dump(all)), error);
}
