// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/measure/burst.hpp"
#include "plumbline/measure/predict.hpp"
#include "plumbline/measure/stop_rule.hpp"

using namespace plumbline;
using namespace plumbline::measure;
using std::chrono::milliseconds;

TEST_CASE("a sample is at least 200 us long and 400 times the timer's resolution") {
    const settings rules;
    CHECK(shortest_sample_ns(500, rules) == 200'000);
    CHECK(shortest_sample_ns(20, rules) == 200'000);
    CHECK(shortest_sample_ns(1000, rules) == 400'000);
    CHECK_FALSE(below_resolution(100'001, 500, rules));
    CHECK(below_resolution(99'999, 500, rules));
}

TEST_CASE("launches of a sample: long enough, whole rounds over the buffers where that is cheap") {
    CHECK(launches_for(50'000, 200'000, 1, 1024) == 4);
    CHECK(launches_for(60'000, 200'000, 1, 1024) == 4);
    CHECK(launches_for(1'000'000, 200'000, 1, 1024) == 1);
    CHECK(launches_for(5'800, 200'000, 31, 1024) == 62);    // 35 needed, two rounds of 31
    CHECK(launches_for(172'000, 200'000, 3, 1024) == 3);    // 2 needed, a round of 3 is 0.5 ms
    CHECK(launches_for(1'000'000, 200'000, 31, 1024) == 1); // a round would be 31 ms
    CHECK(launches_for(400'000, 200'000, 2, 1024) == 2);    // 0.8 ms is just affordable
    CHECK(launches_for(400'001, 200'000, 2, 1024) == 1);    // and this is not
    CHECK(launches_for(10, 200'000, 7, 1024) == 1024);      // the limit
    CHECK(launches_for(0, 200'000, 7, 1024) == 1024);       // too short to see
    CHECK(launches_for(200, 200'000, 1000, 1024) == 1000);
}

TEST_CASE("the reference clock is the highest that was reached three times") {
    reference_clock reference;
    CHECK(reference.mhz() == 0);
    CHECK(reference.reached(1, 0.99)); // nothing is known yet
    reference.add(1980);
    reference.add(1979);
    CHECK(reference.mhz() == 0);
    reference.add(1981);
    CHECK(reference.mhz() == 1979);
    reference.add(9999); // one wrong reading
    CHECK(reference.mhz() == 1980);
    reference.add(1500);
    CHECK(reference.mhz() == 1980);
    CHECK(reference.reached(0.99 * 1980, 0.99));
    CHECK_FALSE(reference.reached(0.9899 * 1980, 0.99));
}

TEST_CASE("rest runs while other things happen, and the longer need wins") {
    resting rest;
    CHECK(rest.left(milliseconds(5)) == milliseconds(0));
    rest.worked(milliseconds(100), milliseconds(1000));
    rest.worked(milliseconds(200), milliseconds(60));
    CHECK(rest.left(milliseconds(200)) == milliseconds(900));
    CHECK(rest.left(milliseconds(1099)) == milliseconds(1));
    CHECK(rest.left(milliseconds(2000)) == milliseconds(0));
}

TEST_CASE("bursts start at their length in device time") {
    const settings rules;
    CHECK(burst_control(rules, 200'000, true, 1024).samples() == 40);
    CHECK(burst_control(rules, 4e6, true, 1024).samples() == 3);
    CHECK(burst_control(rules, 7e6, true, 1024).samples() == 2);
    CHECK(burst_control(rules, 12e6, true, 1024).samples() == 1);
    CHECK(burst_control(rules, 1e9, true, 1024).samples() == 1);
    CHECK(burst_control(rules, 200'000, true, 16).samples() == 16);
    CHECK(burst_control(rules, 200'000, true, 1024).pause() == rules.pause);
    CHECK(burst_control(rules, 200'000, false, 1024).pause() == milliseconds(0));
}

TEST_CASE("a burst that ends at the cap makes the next one shorter and the rest longer") {
    const settings rules;
    burst_control control(rules, 400'000, true, 1024);
    CHECK_FALSE(control.observe({true, true, std::vector<bool>(20, true)}));
    CHECK(control.samples() == 20);
    CHECK(control.pause() == rules.pause);

    std::vector<bool> one_low(20, true);
    one_low[7] = false;
    CHECK_FALSE(control.observe({true, true, one_low}));
    std::vector<bool> slow_start(20, true);
    slow_start[0] = slow_start[1] = false;
    CHECK_FALSE(control.observe({true, true, slow_start}));
    CHECK(control.samples() == 20);

    std::vector<bool> ends_low(20, true);
    ends_low[17] = ends_low[18] = ends_low[19] = false;
    CHECK(control.observe({true, true, ends_low}));
    CHECK(control.samples() == 17);
    CHECK(control.pause() == 2 * rules.pause);

    // The samples look all right, but the device is below its clock afterwards.
    CHECK(control.observe({true, false, std::vector<bool>(17, true)}));
    CHECK(control.samples() == 8);
    CHECK(control.pause() == 4 * rules.pause);

    CHECK(control.observe({true, true, std::vector<bool>(8, false)}));
    CHECK(control.samples() == 4);
    for (int i = 0; i < 5; ++i) CHECK(control.observe({true, true, std::vector<bool>(control.samples(), false)}));
    CHECK(control.samples() == 1);
    CHECK(control.pause() == rules.recovery);
}

TEST_CASE("a burst that starts at the cap asks for recovery, not for shorter bursts") {
    const settings rules;
    burst_control control(rules, 400'000, true, 1024);
    CHECK(control.observe({false, false, std::vector<bool>(20, false)}));
    CHECK(control.samples() == 20);
    CHECK(control.pause() == rules.recovery);
}

TEST_CASE("the stop rule needs enough clean samples and a narrow interval of their median") {
    const settings rules;
    CHECK_FALSE(precise_enough(std::vector<double>(29, 100.0), rules));
    CHECK(precise_enough(std::vector<double>(30, 100.0), rules));
    // Of samples of 20 ms five fill 100 ms, which is too few; of 5 ms twenty do, of 3 ms thirty.
    CHECK_FALSE(precise_enough(std::vector<double>(8, 100.0), rules, 20e6));
    CHECK(precise_enough(std::vector<double>(9, 100.0), rules, 20e6));
    CHECK(needed_clean(5e6, rules) == 20);
    CHECK(needed_clean(3e6, rules) == 30);
    CHECK(needed_clean(1e6, rules) == 30);
    // With 30 samples the 95 % interval is x(10) .. x(21); the median is the mean of x(15) and x(16).
    const auto with_ends = [](double low, double high) {
        std::vector<double> samples(30, 100.0);
        for (int i = 0; i < 10; ++i) samples[static_cast<std::size_t>(i)] = low;
        for (int i = 20; i < 30; ++i) samples[static_cast<std::size_t>(i)] = high;
        return samples;
    };
    CHECK(precise_enough(with_ends(99.5, 100.5), rules));
    CHECK_FALSE(precise_enough(with_ends(99.49, 100), rules));
    CHECK_FALSE(precise_enough(with_ends(100, 100.51), rules));
    CHECK(marked({1, 2, 3}, {true, false, true}) == std::vector<double>{1, 3});
    CHECK(marked({1, 2, 3}, {}) == std::vector<double>{1, 2, 3});
}

TEST_CASE("a prediction is what the benchmark took before, else the engine's own steps, never over its budget") {
    predictor predict;
    const budget two{std::chrono::seconds(2)};
    workload::description light;
    light.id = "test/light";
    workload::description heavy = light;
    heavy.id = "test/heavy";
    heavy.flop = 1.54e12;
    heavy.bytes = 4e8;
    const double one = predict.seconds(light, two);
    // 40 samples in each burst after a lead-in, three bursts, two pauses.
    CHECK(one == doctest::Approx(0.02 + 0.4 + 123 * 200e-6 + 2 * 0.06));
    // 2.2 ms a launch, three in each burst of 8 ms after a lead-in, ten bursts, 9 pauses.
    const double other = predict.seconds(heavy, two);
    CHECK(other == doctest::Approx(0.02 + 0.4 + 40 * 2.2e-3 + 9 * 0.06));
    CHECK(predict.seconds(heavy, budget{milliseconds(500)}) == doctest::Approx(0.02 + 0.4 + 0.5));
    heavy.kind = benchmark_class::sustained;
    CHECK(predict.seconds(heavy, two) == doctest::Approx(4.02));
    heavy.kind = benchmark_class::training_step;
    CHECK(predict.seconds(heavy, two) == doctest::Approx(0.6 + 0.4 + 40 * 2.2e-3 + 9 * 0.06));
    heavy.kind = benchmark_class::dataloader;
    CHECK(predict.seconds(heavy, two) == doctest::Approx(2.5));
    heavy.kind = benchmark_class::host;
    CHECK(predict.seconds(heavy, two) == doctest::Approx(2.25));
    heavy.params["kind"] = std::string("h2d_pageable");
    CHECK(predict.seconds(heavy, two) == doctest::Approx(2.25 + 0.4));
    heavy.params["kind"] = std::string("launch");
    CHECK(predict.seconds(heavy, two) == doctest::Approx(0.1));
    light.params["dtype"] = std::string("fp32");
    light.flop = 1e11; // 2 ms without tensor cores
    CHECK(predict.seconds(light, two) == doctest::Approx(0.02 + 0.4 + 8 * 5 * 2e-3 + 7 * 0.06));
    light.flop = 0;

    result::result seen;
    seen.what = heavy;
    seen.sessions.resize(3);
    seen.sessions[0].state["total_seconds"] = 7.0;
    seen.sessions[1].state["total_seconds"] = 3.0;
    seen.sessions[2].state["total_seconds"] = std::string("unknown");
    predict.learn({seen});
    CHECK(predict.seconds(heavy, two) == 5.0);
    CHECK(predict.seconds(std::vector{heavy, light}, two) == doctest::Approx(5.0 + one));
}
