// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "fake_backend.hpp"
#include "plumbline/measure/plan_search.hpp"
#include "plumbline/measure/predict.hpp"

using namespace plumbline;

namespace {

/// A search over plans that take these times; a negative one does not run.
measure::search_outcome search(fake::backend& on, const std::vector<double>& launch_ns, std::size_t slots = 1,
                               std::vector<std::size_t>* slots_run = nullptr) {
    return measure::fastest(on, launch_ns.size(), slots, [&](std::size_t which, std::size_t slot) {
        if (launch_ns[which] < 0) throw unsupported_error("plan " + std::to_string(which) + " does not run");
        if (slots_run != nullptr) slots_run->push_back(slot);
        on.enqueue(launch_ns[which]);
    });
}

} // namespace

TEST_CASE("the fastest plan is found wherever it stands, and what trusting the first costs") {
    fake::backend on;
    const measure::search_outcome last = search(on, {50e3, 60e3, 45e3, 40e3});
    CHECK(last.index == 3);
    CHECK(last.first_over_best == doctest::Approx(1.25));
    const measure::search_outcome first = search(on, {40e3, 60e3, 45e3});
    CHECK(first.index == 0);
    CHECK(first.first_over_best == 1);
    CHECK(search(on, {40e3}).index == 0);
    // Short ones are batched, long ones are not.
    CHECK(search(on, {2100, 2000}).index == 1);
    CHECK(search(on, {3e6, 2.9e6}).index == 1);
}

TEST_CASE("a plan that does not run is passed over; when none runs the first failure is told") {
    fake::backend on;
    const measure::search_outcome found = search(on, {-1, 60e3, 45e3, -1});
    CHECK(found.index == 2);
    CHECK(found.first_over_best == 1); // the first cannot be trusted at all
    CHECK_THROWS_WITH_AS(static_cast<void>(search(on, {-1, -1})),
                         doctest::Contains("none of 2 plans runs: plan 0 does not run"), unsupported_error);
}

TEST_CASE("a plan that fails in another way, as in a capture, is passed over too") {
    fake::backend on;
    const auto found = measure::fastest(on, 3, 1, [&](std::size_t which, std::size_t) {
        if (which == 1) throw error("it cannot be captured");
        on.enqueue(which == 0 ? 60e3 : 45e3);
    });
    CHECK(found.index == 2);
}

TEST_CASE("noise of a percent does not hide two percent") {
    fake::script noisy;
    noisy.noise = 0.01;
    fake::backend on(noisy);
    CHECK(search(on, {51e3, 50e3, 52e3, 51.5e3, 53e3}).index == 1);
}

TEST_CASE("bursts of a search stay below the power cap, so that the order of plans does not matter") {
    fake::script capped;
    capped.cap_after_ms = 15; // of work without a rest
    fake::backend on(capped);
    const measure::settings rules;
    const measure::search_outcome found = search(on, {1.45e6, 1.43e6, 1.40e6, 1.41e6});
    CHECK(found.index == 2);
    CHECK(found.first_over_best == doctest::Approx(1.45 / 1.40));
    for (const std::size_t samples : on.played_samples) CHECK(samples <= 8);
    CHECK(std::all_of(on.idles.begin(), on.idles.end(), [&](auto pause) { return pause == rules.pause; }));
}

TEST_CASE("a search is cold: launches rotate over all buffer sets") {
    fake::backend on;
    std::vector<std::size_t> slots_run;
    static_cast<void>(search(on, {50e3, 60e3}, 3, &slots_run));
    for (const std::size_t slot : {0u, 1u, 2u}) {
        CHECK(std::count(slots_run.begin(), slots_run.end(), slot) > 5);
    }
}

TEST_CASE("what a search takes is what is predicted") {
    for (const double launch_ns : {50e3, 2.2e6}) {
        fake::backend on;
        const auto begin = on.now();
        static_cast<void>(search(on, std::vector<double>(16, launch_ns)));
        const double taken = std::chrono::duration<double>(on.now() - begin).count();
        workload::description own;
        own.id = "test/own";
        own.flop = launch_ns * 1e-9 * 7e14;
        workload::description best = own;
        best.params["plan"] = std::string("best");
        const measure::predictor predict;
        const measure::budget two{std::chrono::seconds(2)};
        CAPTURE(launch_ns);
        CHECK(predict.seconds(best, two) - predict.seconds(own, two) == doctest::Approx(taken).epsilon(0.1));
    }
}
