// SPDX-License-Identifier: Apache-2.0
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "golden.hpp"
#include "plumbline/report/training.hpp"

using namespace plumbline;

namespace {

/// A result of `sessions` sessions around `milliseconds`.
result::result step(const std::string& id, double milliseconds, std::size_t sessions = 3) {
    result::result one;
    one.what = describe(workload::training_step::parse(id));
    for (std::size_t i = 0; i < sessions; ++i) {
        const double off = i == 0 ? 0.9 : i == 1 ? 1.1 : 1; // the median is the last one's
        result::session_result session;
        session.session = i;
        session.samples = {milliseconds * 1e6 * off * 0.99, milliseconds * 1e6 * off, milliseconds * 1e6 * off * 1.5};
        session.ran.parts = {{"launches_per_step", std::int64_t{571}},
                             {"allocated_bytes", std::int64_t{9} << 30},
                             {"skipped_steps", std::int64_t{0}},
                             {"loss_1", 10.3725 * off},
                             {"loss_50", 6.2 * off}};
        one.sessions.push_back(session);
    }
    return one;
}

result::baseline run() {
    result::baseline all;
    all.sessions.resize(3);
    all.results = {step("training_step/transformer/bf16", 16),
                   step("training_step/transformer/tf32", 40),
                   step("training_step/transformer/fp32", 160),
                   step("training_step/transformer/bf16/stream", 20),
                   step("training_step/transformer/bf16/sustained", 18.5),
                   step("training_step/bottleneck/fp16", 6),
                   step("training_step/bottleneck/tf32/sustained", 9),
                   step("training_step/bottleneck/fp16/sustained", 7.5),
                   step("training_step/transformer/bf16/accumulate4", 60)};
    for (auto& session : all.results[5].sessions) session.ran.parts["skipped_steps"] = std::int64_t{2};
    return all;
}

std::string written(const result::baseline& what, std::size_t width) {
    report::options how;
    how.width = width;
    std::ostringstream out;
    report::write_training(out, what, how);
    return out.str();
}

} // namespace

TEST_CASE("the training steps of a run: speed-ups, the host's share, memory and losses, a line for each leg") {
    tests::check_golden("training.txt", written(run(), 140));
    tests::check_golden("training_narrow.txt", written(run(), 80));
    for (const std::size_t width : {80U, 140U}) {
        std::istringstream lines(written(run(), width));
        for (std::string line; std::getline(lines, line);) {
            CAPTURE(line);
            CHECK(report::columns(line) <= width);
        }
    }
}

TEST_CASE("a leg's figures come from the results of its network, size, accumulation and regime alone") {
    const std::vector<report::training_leg> legs = report::training_legs(run());
    REQUIRE(legs.size() == 6);
    const report::training_leg& bf16 = legs[0];
    CHECK(*bf16.burst_s == doctest::Approx(16e-3));
    CHECK(*bf16.sustained_s == doctest::Approx(18.5e-3));
    CHECK(*bf16.stream_s == doctest::Approx(20e-3));
    CHECK(*bf16.items_per_s() == doctest::Approx(8192 / 16e-3));
    CHECK(*bf16.over_tf32 == doctest::Approx(2.5));
    CHECK(*bf16.over_fp32 == doctest::Approx(10));
    CHECK(*bf16.host_bound == doctest::Approx(0.2));
    CHECK(*bf16.loss_1 == doctest::Approx(10.3725));
    CHECK(*legs[1].over_fp32 == doctest::Approx(4));
    CHECK_FALSE(legs[1].over_tf32); // it is that leg
    CHECK_FALSE(legs[2].over_tf32); // what 16 bits gain is asked, not what fp32 loses
    CHECK_FALSE(legs[1].host_bound);
    const report::training_leg& fp16 = legs[3];
    CHECK(*fp16.over_tf32 == doctest::Approx(1.2)); // the two that are at the cap, not 9 over 6
    CHECK(*fp16.items_per_s() == doctest::Approx(64 / 6e-3));
    CHECK(*fp16.skipped_steps == 2);
    const report::training_leg& accumulated = legs[5];
    CHECK_FALSE(accumulated.over_fp32); // that leg was measured without accumulation
    CHECK(*accumulated.items_per_s() == doctest::Approx(4 * 8192 / 60e-3));
}

TEST_CASE("the host's share is not negative, and needs both ways of launching") {
    result::baseline all;
    all.results = {step("training_step/bottleneck/bf16", 6), step("training_step/bottleneck/bf16/stream", 5.9)};
    CHECK(*report::training_legs(all).at(0).host_bound == 0);
    all.results.erase(all.results.begin());
    const auto legs = report::training_legs(all);
    CHECK_FALSE(legs.at(0).host_bound);
    CHECK(*legs.at(0).step_s() == doctest::Approx(5.9e-3));
}

TEST_CASE("sizes other than the default ones are told apart and named") {
    result::baseline all;
    all.results = {step("training_step/transformer/fp32/l2d128h4f512v1024b4t64", 30),
                   step("training_step/transformer/bf16/l2d128h4f512v1024b4t64", 10),
                   step("training_step/transformer/bf16/l2d128h4f512v1024b8t64", 19)};
    const auto legs = report::training_legs(all);
    REQUIRE(legs.size() == 3);
    CHECK(*legs[1].over_fp32 == doctest::Approx(3));
    CHECK_FALSE(legs[2].over_fp32);
    CHECK(report::training_row_of(legs[1]).cells[0] == "transformer/bf16/l2d128h4f512v1024b4t64");
}

TEST_CASE("what was not measured, failed, or is of another family or version is no line and no trouble") {
    result::baseline all = run();
    for (auto& each : all.results) each.status = result::result_status::failed;
    CHECK(written(all, 140).empty());
    all = run();
    all.results.resize(1);
    all.results[0].what.id = "training_step/mixture_of_experts/fp4";
    CHECK(written(all, 140).empty());
    all.results[0] = step("training_step/transformer/bf16", 16);
    all.results[0].what.family = "gemm";
    CHECK(written(all, 140).empty());
    all.results[0] = step("training_step/transformer/bf16", 16);
    for (auto& session : all.results[0].sessions) session.ran.parts.clear();
    const report::training_row bare = report::training_row_of(report::training_legs(all).at(0));
    CHECK(bare.cells[1] == "16.00 ms");
    for (std::size_t i = 4; i < 10; ++i) CHECK(bare.cells[i] == "-");
    CHECK(bare.cells[10] == "- -> -");
    for (auto& session : all.results[0].sessions) session.samples.clear();
    CHECK(report::training_row_of(report::training_legs(all).at(0)).cells[1] == "-");
}
