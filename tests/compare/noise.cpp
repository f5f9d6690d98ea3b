// SPDX-License-Identifier: Apache-2.0
// Which noise and margin a benchmark gets, and how noise is estimated from stored sessions.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "build.hpp"
#include "plumbline/compare/compare.hpp"

namespace compare = plumbline::compare;
namespace result = plumbline::result;
using build::values;
using doctest::Approx;
using plumbline::benchmark_class;

namespace {

const values five{100, 100.1, 99.9, 100.05, 99.95};

compare::yardstick used(const result::baseline& base, const result::baseline& candidate,
                        const compare::policy& rules = {}) {
    return compare::compare(base, candidate, rules).findings.at(0).used;
}

compare::yardstick used(const result::baseline& both, const compare::policy& rules = {}) {
    return used(both, both, rules);
}

} // namespace

TEST_CASE("noise: starting values by class, size and backend") {
    const auto kernel = used(build::single(five));
    CHECK(kernel.class_name == "kernel");
    CHECK(kernel.s0 == 0.0015);
    CHECK(kernel.s_e == 0.002);
    CHECK(kernel.margin == 0.015);
    CHECK(kernel.d0 == 4);
    CHECK(kernel.d_e == 0);
    CHECK(kernel.floor == 0.0005);
    CHECK(kernel.resolution == 0);
    CHECK(used(build::single(build::scaled(five, 0.199))).s0 == 0.004);  // 19.9 us
    CHECK(used(build::single(build::scaled(five, 0.201))).s0 == 0.0015); // 20.1 us
    CHECK(used(build::single(build::scaled(five, 0.1), benchmark_class::sustained)).s0 == 0.02);
    auto cpu = build::single(five);
    cpu.device.backend = cpu.results[0].backend = "cpu";
    CHECK(used(cpu).margin == 0.10);
    auto rate = build::baseline(5);
    build::add(rate, "a", {1, 1, 1, 1, 1}, benchmark_class::kernel, "images/s");
    CHECK(used(rate).s0 == 0.0015); // short is a matter of times
    compare::policy other;
    other.short_below_ns = 200e3;
    other.d0 = 7;
    other.floor = 0.001;
    CHECK(used(build::single(five), other).s0 == 0.004);
    CHECK(used(build::single(five), other).d0 == 7);
    CHECK(used(build::single(five), other).floor == 0.001);
}

TEST_CASE("noise: what the base measured wins over the class, the policy's rules over both") {
    auto base = build::single(five);
    result::noise by_class;
    by_class.s0 = 0.011;
    by_class.s_e = 0.012;
    by_class.d0 = 9;
    by_class.sessions = 10;
    by_class.epochs = 3;
    base.noise["kernel"] = by_class;
    auto found = used(base);
    CHECK(found.s0 == 0.011);
    CHECK(found.s_e == 0.012);
    CHECK(found.d0 == 9);
    CHECK(found.d_e == 6); // d0 of the policy and two
    CHECK(compare::compare(base, base).findings[0].has(compare::marker::noise_measured));
    CHECK_FALSE(compare::compare(build::single(five), base).findings[0].has(compare::marker::noise_measured));

    result::noise own;
    own.s0 = 0.021;
    own.d0 = 13;
    own.sessions = 20;
    own.s_e = 0.5;
    own.epochs = 2; // too few to be believed
    base.noise["a"] = own;
    found = used(base);
    CHECK(found.s0 == 0.021);
    CHECK(found.d0 == 13);
    CHECK(found.s_e == 0.012);
    base.noise["a"].sessions = 9; // nor is this
    CHECK(used(base).s0 == 0.011);
    base.noise["a"].epochs = 3;
    CHECK(used(base).s_e == 0.5);
    auto only_s0 = build::single(five);
    only_s0.noise["a"].s0 = 0.01;
    only_s0.noise["a"].sessions = 10;
    CHECK(compare::compare(only_s0, only_s0).findings[0].has(compare::marker::noise_measured));
    CHECK(used(only_s0).d_e == 0);
    auto only_s_e = build::single(five);
    only_s_e.noise["a"].s_e = 0.5;
    only_s_e.noise["a"].epochs = 4;
    CHECK(used(only_s_e).d_e == 7);
    CHECK(compare::compare(only_s_e, base).findings[0].has(compare::marker::noise_measured));

    compare::policy rules;
    rules.rules.resize(1);
    rules.rules[0].match = "a";
    rules.rules[0].s0 = 0.031;
    rules.rules[0].s_e = 0.032;
    rules.rules[0].margin = 0.033;
    found = used(base, rules);
    CHECK(found.s0 == 0.031);
    CHECK(found.s_e == 0.032);
    CHECK(found.d_e == 0);
    CHECK(found.margin == 0.033);
}

TEST_CASE("noise: the timer's resolution is a floor") {
    auto base = build::single(five);
    for (auto& s : base.results[0].sessions) {
        s.state["timer_resolution_ns"] = 500.0;
        s.state["launches_per_sample"] = std::int64_t{5};
    }
    auto found = used(base);
    CHECK(found.resolution == Approx(0.1));                                        // us per launch
    CHECK(found.floor == Approx(0.001));                                           // of 100 us
    base.results[0].sessions[2].state["timer_resolution_ns"] = std::int64_t{1000}; // the coarsest counts
    CHECK(used(base).resolution == Approx(0.2));
    CHECK(used(build::single(five), base).resolution == Approx(0.2)); // of either side
    base.results[0].sessions[2].state["launches_per_sample"] = 0.0;
    CHECK(used(base).resolution == Approx(1)); // no division by zero
    base.results[0].sessions[2].state.erase("launches_per_sample");
    CHECK(used(base).resolution == Approx(1));
    base.results[0].sessions[2].state["timer_resolution_ns"] = std::string("unknown");
    CHECK(used(base).resolution == Approx(0.1));

    compare::policy rules;
    rules.resolution_s = 2e-6;
    CHECK(used(base, rules).resolution == Approx(0.1)); // what the file says comes first
    CHECK(used(build::single(five), rules).resolution == Approx(2));
    rules.rules.resize(1);
    rules.rules[0].match = "*";
    rules.rules[0].resolution = 0.7;
    CHECK(used(base, rules).resolution == Approx(0.7));
    auto rate = build::baseline(5);
    build::add(rate, "a", {1, 1, 1, 1, 1}, benchmark_class::kernel, "images/s");
    rules.rules.clear();
    CHECK(used(rate, rules).resolution == 0);
}

TEST_CASE("noise: estimated from ten sessions or three epochs") {
    auto ten = build::baseline(10);
    build::add(ten, "a", {100, 101, 100, 101, 100, 101, 100, 101, 100, 101});
    const auto from_ten = compare::estimate_noise(ten);
    REQUIRE(from_ten.count("a") == 1);
    const double half = std::log(1.01) / 2;
    CHECK(from_ten.at("a").s0.value() == Approx(std::sqrt(10 * half * half / 9)));
    CHECK(from_ten.at("a").d0 == 9);
    CHECK_FALSE(from_ten.at("a").s_e);
    CHECK(from_ten.at("a").sessions == 10);
    CHECK(from_ten.at("a").epochs == 1);

    auto nine = build::baseline(9);
    build::add(nine, "a", {100, 101, 100, 101, 100, 101, 100, 101, 100});
    CHECK(compare::estimate_noise(nine).empty());

    auto many = build::baseline(30);
    build::add(many, "a", values(30, 100.0));
    CHECK(compare::estimate_noise(many).at("a").d0 == 20); // worth no more than that
    many.results[0].sessions[3].samples = {0};             // has no logarithm
    CHECK(compare::estimate_noise(many).empty());
    many.results[0].sessions[3].samples = {100};
    many.results[0].status = result::result_status::failed;
    CHECK(compare::estimate_noise(many).empty());
    many.results[0].status = result::result_status::ok;
    many.results[0].what.metric = "throughput";
    CHECK(compare::estimate_noise(many).count("a#throughput") == 1);

    auto lonely = build::baseline(10); // ten epochs of one session: nothing to learn about sessions
    for (std::size_t i = 0; i < 10; ++i) lonely.sessions[i].when.day = std::to_string(i);
    build::add(lonely, "a", values(10, 100.0));
    const auto from_lonely = compare::estimate_noise(lonely);
    CHECK_FALSE(from_lonely.at("a").s0);
    CHECK(from_lonely.at("a").s_e);
}

TEST_CASE("noise: between epochs, pooled over the class and never below the policy's by luck") {
    const auto days = [](std::size_t n) {
        auto b = build::baseline(n);
        for (std::size_t i = 0; i < n; ++i) b.sessions[i].when.day = std::to_string(i);
        return b;
    };
    auto two = days(2);
    build::add(two, "a", {100, 101});
    CHECK(compare::estimate_noise(two).empty());

    auto calm = days(3);
    build::add(calm, "a", {100, 100, 100});
    CHECK(compare::estimate_noise(calm).at("a").s_e.value() == Approx(std::sqrt(4 * 0.002 * 0.002 / 6)));
    CHECK(compare::estimate_noise(calm).at("a").epochs == 3);
    compare::policy rules;
    rules.classes["kernel"].s_e = 0.01;
    rules.d0 = 8;
    CHECK(compare::estimate_noise(calm, rules).at("a").s_e.value() == Approx(std::sqrt(8 * 1e-4 / 10)));

    // "b" moves by 3 %: sd of ln. The pool of the two is its prior for "a".
    build::add(calm, "b", {100, 103, 106});
    const double sd = plumbline::stats::standard_deviation({std::log(100), std::log(103), std::log(106)});
    const double pooled = sd / std::sqrt(2.0);
    const auto both = compare::estimate_noise(calm);
    CHECK(both.at("b").s_e.value() == Approx(sd));
    CHECK(both.at("a").s_e.value() == Approx(std::sqrt(4 * pooled * pooled / 6)));
    // Another class does not take part, nor does what has too few epochs.
    build::add(calm, "c", {100, 150, 200}, benchmark_class::host);
    auto& short_one = build::add(calm, "d", {100, 200, 100});
    short_one.sessions.pop_back();
    CHECK(compare::estimate_noise(calm).at("a").s_e.value() == Approx(both.at("a").s_e.value()));
    CHECK(compare::estimate_noise(calm).count("d") == 0);
    // The order does not matter: what says nothing does not stop what follows.
    std::reverse(calm.results.begin(), calm.results.end());
    calm.results.insert(calm.results.begin(), calm.results.back());
    calm.results[0].what.id = "e";
    calm.results[0].status = result::result_status::failed;
    CHECK(compare::estimate_noise(calm).at("a").s_e.value() == Approx(both.at("a").s_e.value()));
}
