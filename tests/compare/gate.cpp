// SPDX-License-Identifier: Apache-2.0
// What may be compared at all.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "build.hpp"
#include "plumbline/compare/compare.hpp"

namespace compare = plumbline::compare;
namespace result = plumbline::result;
using build::has_reason;
using build::values;
using compare::marker;
using compare::reason_code;
using compare::verdict;
using doctest::Approx;
using doctest::Contains;
using plumbline::exit_code;

namespace {

const values five{100, 100.1, 99.9, 100.05, 99.95};

compare::finding only(const result::baseline& base, const result::baseline& candidate,
                      const compare::policy& rules = {}) {
    const auto got = compare::compare(base, candidate, rules);
    REQUIRE(got.findings.size() == 1);
    return got.findings[0];
}

result::attribute identity(plumbline::scalar value) {
    result::attribute a;
    a.kind = result::attribute_class::identity;
    a.read = result::reading::of(std::move(value));
    return a;
}

} // namespace

TEST_CASE("gate: units are converted, other dimensions refused") {
    auto milli = build::single(build::scaled(five, 1e-3));
    milli.results[0].what.unit = "ms";
    const auto same = only(build::single(five), milli);
    CHECK(same.outcome == verdict::equivalent);
    CHECK(same.unit == "us");
    CHECK(same.candidate.value.value() == Approx(100));
    CHECK(same.ratio.value() == Approx(1));
    const auto back = only(milli, build::single(five));
    CHECK(back.outcome == verdict::equivalent);
    CHECK(back.candidate.value.value() == Approx(0.1));
    CHECK(back.used.s0 == 0.0015); // 0.1 ms is not short

    auto bytes = build::single(five);
    bytes.results[0].what.unit = "B";
    const auto other = only(build::single(five), bytes);
    CHECK(other.outcome == verdict::incomparable);
    CHECK(has_reason(other, reason_code::unit_differs));
    CHECK(compare::compare(build::single(five), bytes).exit == exit_code::incomparable);

    auto unknown = build::single(five);
    unknown.results[0].what.unit = "parsec";
    CHECK_THROWS_WITH_AS((void)compare::compare(unknown, build::single(five)), Contains("base's result 'a'"),
                         plumbline::usage_error);
    CHECK_THROWS_WITH_AS((void)compare::compare(build::single(five), unknown), Contains("candidate's result 'a'"),
                         plumbline::usage_error);
    CHECK_THROWS_WITH_AS((void)compare::compare(build::single(five), unknown), Contains("parsec"),
                         plumbline::usage_error);
    auto counted = build::baseline(5);
    build::add(counted, "a", five, plumbline::benchmark_class::kernel, "widgets_made/s");
    CHECK(only(counted, counted).outcome == verdict::equivalent);
}

TEST_CASE("gate: damaged files are refused") {
    auto twice = build::single(five);
    build::add(twice, "a", five);
    CHECK_THROWS_WITH_AS((void)compare::compare(twice, twice), Contains("'a' with metric 'time' twice"),
                         plumbline::usage_error);
    twice.results[1].what.metric = "throughput"; // another metric is another result
    CHECK(compare::compare(twice, twice).findings.size() == 2);
    auto dangling = build::single(five);
    dangling.results[0].sessions[1].session = 5;
    CHECK_THROWS_WITH_AS((void)compare::compare(build::single(five), dangling), Contains("session 5 of 5"),
                         plumbline::usage_error);
    compare::policy nonsense;
    nonsense.q = 0;
    CHECK_THROWS_AS((void)compare::compare(twice, twice, nonsense), plumbline::usage_error);
}

TEST_CASE("gate: other work or direction is incomparable, with every reason") {
    auto other = build::single(five);
    other.results[0].what.params["n"] = std::int64_t{5};
    other.results[0].what.better = plumbline::direction::higher;
    const auto found = only(build::single(five), other);
    CHECK(found.outcome == verdict::incomparable);
    CHECK(has_reason(found, reason_code::workload_differs));
    CHECK(has_reason(found, reason_code::direction_differs));
    CHECK_FALSE(has_reason(found, reason_code::unit_differs));
    CHECK_FALSE(found.effect);
    CHECK_FALSE(found.ratio);
    other.results[0].sessions[0].samples = {std::nan("")};
    const auto both = only(build::single(five), other); // incomparable weighs more than invalid, but both are said
    CHECK(both.outcome == verdict::incomparable);
    CHECK(has_reason(both, reason_code::not_finite));
}

TEST_CASE("gate: other hardware") {
    auto base = build::single(five);
    auto candidate = build::single(build::scaled(five, 1.2));
    base.environment.attributes["gpu.sm_count"] = identity(std::int64_t{132});
    candidate.environment.attributes["gpu.sm_count"] = identity(std::int64_t{114});
    const auto refused = compare::compare(base, candidate);
    CHECK(refused.findings[0].outcome == verdict::incomparable);
    CHECK(refused.findings[0].reasons.at(0).code == reason_code::hardware_differs);
    CHECK(refused.findings[0].reasons.at(0).text == "gpu.sm_count 132 -> 114");
    CHECK(refused.exit == exit_code::incomparable);
    CHECK(refused.environment.size() == 1);

    compare::policy allow;
    allow.allow_hardware_diff = true;
    const auto ratio = compare::compare(base, candidate, allow);
    CHECK(ratio.findings[0].outcome == verdict::cross_hardware);
    CHECK(ratio.findings[0].ratio.value() == Approx(1.2));
    CHECK_FALSE(ratio.findings[0].effect);
    CHECK(ratio.tests == 0);
    CHECK(ratio.exit == exit_code::ok);
    CHECK(ratio.findings[0].base.value.value() == Approx(100));
    candidate.results[0].what.params["n"] = std::int64_t{5}; // still not other work
    CHECK(compare::compare(base, candidate, allow).findings[0].outcome == verdict::incomparable);

    build::add(base, "b", five);
    build::add(candidate, "b", five);
    candidate.results[0].what.params.clear();
    CHECK(compare::compare(base, candidate, allow).count(verdict::cross_hardware) == 2);
    base.results.pop_back();

    // Unknown on one side is no difference; neither is configuration, which may explain instead.
    candidate = build::single(five);
    candidate.environment.attributes["gpu.sm_count"] = identity(std::int64_t{132});
    candidate.environment.attributes["gpu.sm_count"].read = result::reading::denied("EPERM");
    CHECK(only(base, candidate).outcome == verdict::equivalent);
    CHECK(only(candidate, base).outcome == verdict::equivalent);
    candidate.environment.attributes.clear();
    CHECK(only(base, candidate).outcome == verdict::equivalent);
    // What is no difference does not hide one that follows.
    auto many = base;
    auto others = base;
    many.environment.attributes["a.config"] = identity(std::int64_t{1});
    many.environment.attributes["a.config"].kind = result::attribute_class::config;
    many.environment.attributes["b.unknown"] = identity(std::int64_t{1});
    many.environment.attributes["c.same"] = identity(std::int64_t{1});
    many.environment.attributes["d.other"] = identity(std::int64_t{1});
    others.environment.attributes["c.same"] = identity(std::int64_t{1});
    others.environment.attributes["d.other"] = identity(std::int64_t{2});
    CHECK(only(many, others).outcome == verdict::incomparable);
    base.environment.attributes["driver"] = identity(std::string("570"));
    candidate.environment.attributes["driver"] = identity(std::string("580"));
    CHECK(only(base, candidate).outcome == verdict::incomparable);
    base.environment.attributes["driver"].kind = result::attribute_class::config;
    candidate.environment.attributes["driver"].kind = result::attribute_class::config;
    CHECK(only(base, candidate).outcome == verdict::equivalent);
}

TEST_CASE("gate: backends") {
    auto cpu = build::single(five);
    cpu.device.backend = cpu.results[0].backend = "cpu";
    const auto crossed = only(build::single(five), cpu);
    CHECK(crossed.outcome == verdict::incomparable);
    CHECK(crossed.reasons.at(0).text == "backend cuda -> cpu");
    auto fallback = build::single(five);
    fallback.results[0].backend = "cpu"; // in a file about a GPU
    const auto silent = only(build::single(five), fallback);
    CHECK(silent.outcome == verdict::invalid);
    CHECK(silent.reasons.size() == 1);
    CHECK(has_reason(silent, reason_code::wrong_backend));
    CHECK(silent.reasons.at(0).text.rfind("candidate:", 0) == 0);
    CHECK(only(fallback, build::single(five)).reasons.at(0).text.rfind("base:", 0) == 0);
    auto nameless = build::single(five);
    nameless.device.backend.clear();
    CHECK(only(nameless, build::single(five)).outcome == verdict::equivalent);
    CHECK(only(build::single(five), nameless).outcome == verdict::equivalent);
    nameless.results[0].backend = "cpu";
    const auto differs = only(build::single(five), nameless);
    CHECK(differs.outcome == verdict::invalid);
    CHECK(differs.reasons.at(0).text == "ran on cuda -> cpu");
}

TEST_CASE("gate: values that are no numbers") {
    const auto spoiled = [](const values& samples) {
        auto b = build::single(five);
        b.results[0].sessions[3].samples = samples;
        return b;
    };
    const auto check = [&](const values& samples, reason_code code) {
        const auto candidate = only(build::single(five), spoiled(samples));
        CHECK(candidate.outcome == verdict::invalid);
        CHECK(has_reason(candidate, code));
        CHECK(candidate.reasons.size() == 1);
        CHECK(candidate.reasons[0].text.rfind("candidate: ", 0) == 0);
        const auto base = only(spoiled(samples), build::single(five));
        CHECK(base.outcome == verdict::invalid);
        CHECK(base.reasons.at(0).text.rfind("base: ", 0) == 0);
        CHECK(compare::compare(build::single(five), spoiled(samples)).exit == exit_code::incomplete);
    };
    check({100, std::nan(""), 100}, reason_code::not_finite);
    check({100, std::numeric_limits<double>::infinity(), 100}, reason_code::not_finite);
    check({100, 0, 100}, reason_code::not_positive);
    check({100, -1, 100}, reason_code::not_positive);
    check({}, reason_code::no_samples);
    auto none = build::single(five);
    none.results[0].sessions.clear();
    CHECK(has_reason(only(build::single(five), none), reason_code::no_samples));
    auto failed = none;
    failed.results[0].status = result::result_status::failed;
    failed.results[0].reason = "wrong result";
    const auto found = only(build::single(five), failed);
    CHECK(found.outcome == verdict::invalid);
    REQUIRE(found.reasons.size() == 1); // not that it also has no samples
    CHECK(found.reasons[0].code == reason_code::failed);
    CHECK(found.reasons[0].text == "candidate: wrong result");
    failed.results[0].reason.clear();
    CHECK(only(build::single(five), failed).reasons[0].text == "candidate: failed");
    // One that ended its process has no description, and is not "other work" for that.
    auto crashed = failed;
    crashed.results[0].what = {};
    crashed.results[0].what.id = "a";
    for (const bool first : {true, false}) {
        const auto got =
            first ? compare::compare(crashed, build::single(five)) : compare::compare(build::single(five), crashed);
        CHECK(got.findings.at(0).outcome == verdict::invalid);
        CHECK_FALSE(has_reason(got.findings[0], reason_code::workload_differs));
        CHECK(got.exit == exit_code::incomplete);
    }
}

TEST_CASE("gate: values that leave the range of numbers when they are used") {
    const double least = std::numeric_limits<double>::denorm_min();
    const auto check = [](const result::baseline& base, const result::baseline& candidate, const char* side) {
        const auto found = only(base, candidate);
        CHECK(found.outcome == verdict::invalid);
        REQUIRE(has_reason(found, reason_code::not_finite));
        CHECK(found.reasons.at(0).text == std::string(side) + ": a value out of the range of numbers");
        CHECK_FALSE(found.effect);
    };
    auto seconds = build::single(five);
    seconds.results[0].what.unit = "s";
    check(
        build::single(five),
        [&] {
            auto b = seconds;
            b.results[0].sessions[2].samples = {1e305};
            return b;
        }(),
        "candidate");
    check(seconds, build::single({100, 100, least, 100, 100}), "candidate");
    auto halved = build::single(five);
    halved.results[0].sessions[0].samples = {least, least}; // their median is 0
    check(halved, build::single(five), "base");
}

TEST_CASE("gate: foreign load is invalid, throttling a mark, unless the policy says otherwise") {
    auto loaded = build::single(five);
    loaded.results[0].sessions[1].flags = {"host_bound", result::flag::foreign_load};
    const auto invalid = only(build::single(five), loaded);
    CHECK(invalid.outcome == verdict::invalid);
    CHECK(has_reason(invalid, reason_code::foreign_load));
    CHECK(only(loaded, build::single(five)).outcome == verdict::invalid);
    compare::policy lenient;
    lenient.foreign_load_is_invalid = false;
    CHECK(only(build::single(five), loaded, lenient).outcome == verdict::equivalent);

    auto throttled = build::single(build::scaled(five, 1.1));
    throttled.results[0].sessions[1].flags = {result::flag::throttled};
    throttled.results[0].sessions[4].flags = {result::flag::throttled};
    const auto stands = only(build::single(five), throttled);
    CHECK(stands.outcome == verdict::regressed);
    CHECK(stands.has(marker::throttled));
    REQUIRE(has_reason(stands, reason_code::throttled));
    CHECK(stands.reasons.at(0).text == "candidate: the clock was below its reference in 2 of 5 sessions");
    const auto mirrored = only(throttled, build::single(five));
    CHECK(mirrored.reasons.at(0).text == "base: the clock was below its reference in 2 of 5 sessions");
    CHECK(mirrored.reasons.size() == 1);
    compare::policy severe;
    severe.throttled_is_invalid = true;
    CHECK(only(build::single(five), throttled, severe).outcome == verdict::invalid);
    CHECK_FALSE(only(build::single(five), build::single(five)).has(marker::throttled));
}

TEST_CASE("gate: skipped, missing and new") {
    const auto skipped = [](const std::string& why) {
        auto b = build::single({});
        b.results[0].status = result::result_status::skipped;
        b.results[0].reason = why;
        return b;
    };
    const auto alike = compare::compare(skipped("no fp8"), skipped("no fp8"));
    CHECK(alike.findings[0].outcome == verdict::skipped);
    CHECK(alike.findings[0].reasons.empty());
    CHECK(alike.exit == exit_code::incomplete); // nothing at all was compared
    const auto differently = only(skipped("no fp8"), skipped("out of memory"));
    CHECK(differently.outcome == verdict::invalid);
    CHECK(differently.reasons.at(0).code == reason_code::skipped_differently);
    CHECK(differently.reasons.at(0).text == "no fp8 -> out of memory");
    const auto stopped = only(build::single(five), skipped("no fp8"));
    CHECK(stopped.outcome == verdict::invalid);
    CHECK(stopped.reasons.at(0).code == reason_code::skipped_one_side);
    CHECK(stopped.reasons.at(0).text == "failed: it ran in the base and cannot run here: no fp8");
    const auto begun = compare::compare(skipped("no fp8"), build::single(five));
    CHECK(begun.findings[0].outcome == verdict::new_benchmark);
    CHECK(has_reason(begun.findings[0], reason_code::skipped_one_side));

    auto two = build::baseline(5);
    build::add(two, "a", five);
    build::add(two, "b", five);
    auto hurried = build::single(five);
    hurried.results.push_back(skipped(result::not_measured).results[0]);
    hurried.results[1].what.id = "b";
    hurried.checks[result::sessions_check] = std::string("warn: the time budget was spent: 1 of 2 benchmarks");
    const auto hasty = compare::compare(two, hurried);
    CHECK(build::at(hasty, "b").outcome == verdict::missing);
    REQUIRE(build::at(hasty, "b").reasons.size() == 1);
    CHECK(build::at(hasty, "b").reasons[0].text == "not measured for lack of time");
    CHECK(hasty.exit == exit_code::incomplete);
    CHECK(std::count(hasty.notes.begin(), hasty.notes.end(),
                     "candidate: warn: the time budget was spent: 1 of 2 benchmarks") == 1);
    CHECK(build::at(compare::compare(hurried, two), "b").outcome == verdict::new_benchmark);
    const auto missing = compare::compare(two, build::single(five));
    CHECK(build::at(missing, "b").outcome == verdict::missing);
    CHECK(build::at(missing, "b").reasons.empty());
    CHECK(missing.exit == exit_code::incomplete);
    auto selected = build::single(five);
    selected.selected.left_out = {"b"};
    const auto subset = compare::compare(two, selected);
    CHECK(build::at(subset, "b").outcome == verdict::missing);
    CHECK(build::at(subset, "b").has(marker::not_selected));
    CHECK(has_reason(build::at(subset, "b"), reason_code::not_selected));
    CHECK(subset.exit == exit_code::ok);
    const auto more = compare::compare(build::single(five), two);
    CHECK(build::at(more, "b").outcome == verdict::new_benchmark);
    CHECK(build::at(more, "b").unit == "us");
    CHECK(more.exit == exit_code::ok);
    CHECK(more.count(verdict::new_benchmark) == 1);
    CHECK(more.count(verdict::regressed) == 0);

    // New is no excuse for being wrong.
    auto wrong = two;
    wrong.results[1].status = result::result_status::failed;
    wrong.results[1].reason = "wrong result";
    const auto failing = compare::compare(build::single(five), wrong);
    CHECK(build::at(failing, "b").outcome == verdict::invalid);
    CHECK(build::at(failing, "b").reasons.at(0).text == "candidate: wrong result");
    CHECK(failing.exit == exit_code::incomplete);
    auto disturbed = two;
    disturbed.results[1].sessions[0].flags = {result::flag::foreign_load};
    CHECK(build::at(compare::compare(build::single(five), disturbed), "b").outcome == verdict::invalid);
    wrong.results[1].status = result::result_status::skipped;
    CHECK(build::at(compare::compare(build::single(five), wrong), "b").outcome == verdict::new_benchmark);
    auto broken = build::single(five);
    broken.results[0].status = result::result_status::failed;
    const auto begun_badly = compare::compare(skipped("no fp8"), broken);
    CHECK(begun_badly.findings[0].outcome == verdict::invalid);
    CHECK(has_reason(begun_badly.findings[0], reason_code::skipped_one_side));
    CHECK(begun_badly.exit == exit_code::incomplete);
}

TEST_CASE("gate: implementations and verification") {
    const auto with = [](const std::vector<std::string>& names) {
        auto b = build::single(five);
        for (std::size_t i = 0; i < names.size(); ++i) b.results[0].sessions[i].ran.implementation = names[i];
        return b;
    };
    const auto same = only(with({"x", "x", "x", "x", "x"}), with({"x", "x", "x", "x", "x"}));
    CHECK_FALSE(same.has(marker::implementation_changed));
    CHECK_FALSE(same.has(marker::implementation_varies));
    REQUIRE(same.base.implementations.size() == 1);
    CHECK(same.base.implementations[0].name == "x");
    CHECK(same.base.implementations[0].sessions == 5);
    CHECK(same.base.implementations[0].value == 100);
    const auto changed = only(with({"x", "x", "x", "x", "x"}), with({"y", "y", "y", "y", "y"}));
    CHECK(changed.has(marker::implementation_changed));
    CHECK_FALSE(changed.has(marker::implementation_varies));
    const auto varies = only(with({"x", "y", "y", "y", "x"}), with({"x", "y", "x", "y", "x"}));
    CHECK(varies.has(marker::implementation_varies));
    CHECK_FALSE(varies.has(marker::implementation_changed));
    CHECK(varies.base.implementations.at(0).name == "y"); // most sessions first
    CHECK(varies.base.implementations.at(0).sessions == 3);
    CHECK(varies.base.implementations.at(0).value == 100.05);
    CHECK(varies.base.implementations.at(1).value == Approx(99.975));
    const auto tie = only(with({"", "b", "a", "a", "b"}), with({})); // who came first is told first
    REQUIRE(tie.base.implementations.size() == 2);
    CHECK(tie.base.implementations[0].name == "b");
    CHECK(tie.base.implementations[0].sessions == 2);
    CHECK(only(with({"x", "x", "x", "x", "x"}), with({"x", "x", "x", "x", "y"})).has(marker::implementation_varies));
    CHECK(only(with({"x", "x", "x", "x", "y"}), with({"x", "x", "x", "x", "x"})).has(marker::implementation_varies));
    // Unknown is no change.
    CHECK_FALSE(only(with({}), with({"x", "x", "x", "x", "x"})).has(marker::implementation_changed));
    CHECK_FALSE(only(with({"x", "x", "x", "x", "x"}), with({})).has(marker::implementation_changed));

    auto unchecked = build::single(five);
    unchecked.results[0].verified = false;
    CHECK(only(build::single(five), unchecked).has(marker::unverified));
    CHECK_FALSE(only(unchecked, build::single(five)).has(marker::unverified));
    CHECK_FALSE(only(unchecked, unchecked).has(marker::unverified));
}

TEST_CASE("gate: notes on sessions that died and on empty fingerprints") {
    auto candidate = build::single(five);
    candidate.environment.attributes["driver"] = identity(std::string("580"));
    candidate.sessions.resize(7);
    candidate.sessions[6].failed = true;
    candidate.sessions[6].reason = "hung";
    const auto got = compare::compare(build::single(five), candidate);
    REQUIRE(got.notes.size() == 2);
    CHECK(got.notes[0] == "base: the file has no fingerprint");
    CHECK(got.notes[1] == "candidate: 1 of 7 sessions failed: hung");
}

TEST_CASE("gate: a session that is on both sides is said") {
    auto base = build::single(five);
    base.environment.attributes["driver"] = identity(std::string("580"));
    for (auto& s : base.sessions) s.order = {"a"};
    auto other = base;
    for (auto& s : other.sessions) s.seed = 7;
    CHECK(compare::compare(base, other).notes.empty());
    other.sessions[1] = base.sessions[1];
    const auto got = compare::compare(base, other);
    REQUIRE(got.notes.size() == 1);
    CHECK(got.notes[0].rfind("1 of the candidate's 5 sessions are in the base too", 0) == 0);
}
