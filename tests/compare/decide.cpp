// SPDX-License-Identifier: Apache-2.0
// Verdicts of single pairs, and what they carry.
#include <cmath>

#include <doctest/doctest.h>

#include "build.hpp"
#include "plumbline/compare/compare.hpp"

namespace compare = plumbline::compare;
namespace stats = plumbline::stats;
namespace result = plumbline::result;
using build::has_reason;
using build::scaled;
using build::values;
using compare::marker;
using compare::reason_code;
using compare::verdict;
using doctest::Approx;
using plumbline::benchmark_class;

namespace {

const values five{100, 100.1, 99.9, 100.05, 99.95};

compare::finding only(const result::baseline& base, const result::baseline& candidate,
                      const compare::policy& rules = {}) {
    return compare::compare(base, candidate, rules).findings.at(0);
}

compare::finding by(double factor, const compare::policy& rules = {}) {
    return only(build::single(five), build::single(scaled(five, factor)), rules);
}

result::baseline higher(const values& of) {
    auto b = build::single(of);
    b.results[0].what.better = plumbline::direction::higher;
    b.results[0].what.unit = "images/s";
    return b;
}

} // namespace

TEST_CASE("decide: size and direction of a change") {
    CHECK(by(1).outcome == verdict::equivalent);
    CHECK(by(1.02).outcome == verdict::regressed);
    CHECK(by(0.98).outcome == verdict::improved);
    CHECK(by(1.012).outcome == verdict::inconclusive); // proven, but below the margin, and not inside it either
    CHECK(by(1 / 1.012).outcome == verdict::inconclusive);
    CHECK(by(1.005).outcome == verdict::equivalent);
    CHECK(only(higher(five), higher(scaled(five, 1.1))).outcome == verdict::improved);
    CHECK(only(higher(five), higher(scaled(five, 0.9))).outcome == verdict::regressed);
    const auto slower = only(higher(five), higher(scaled(five, 0.8)));
    CHECK(slower.ratio.value() == Approx(1.25)); // cost, whatever the direction
    CHECK(slower.effect->hl == Approx(std::log(1.25)));
    CHECK(slower.candidate.value.value() == 80);
}

TEST_CASE("decide: what an effect carries, by hand") {
    // ln values: base 0 +-0.001, candidate 0.05 +-0.001 around 100
    const auto e = [](double x) { return 100 * std::exp(x); };
    const auto found = only(build::single({e(-0.001), e(0), e(0.001)}), build::single({e(0.049), e(0.05), e(0.051)}));
    REQUIRE(found.effect);
    const auto& effect = *found.effect;
    CHECK(effect.delta == Approx(0.05));
    CHECK(effect.hl == Approx(0.05));
    CHECK(effect.df == 8);
    const double s2 = (4 * 0.0015 * 0.0015 + 4e-6) / 8;
    const double se = std::sqrt(s2 * 2 / 3 + 0.002 * 0.002 * 2);
    CHECK(effect.se == Approx(se));
    CHECK(effect.p_regressed == Approx(stats::t_upper_tail(0.05 / se, 8)));
    CHECK(effect.p_improved == Approx(1 - effect.p_regressed));
    CHECK(effect.adjusted_regressed == effect.p_regressed);
    CHECK(effect.adjusted_improved == effect.p_improved);
    CHECK(effect.low90 == Approx(0.05 - stats::t_upper_quantile(0.05, 8) * se));
    CHECK(effect.high90 == Approx(0.05 + stats::t_upper_quantile(0.05, 8) * se));
    CHECK(effect.low95 == Approx(0.05 - stats::t_upper_quantile(0.025, 8) * se));
    CHECK(effect.high95 == Approx(0.05 + stats::t_upper_quantile(0.025, 8) * se));
    CHECK_FALSE(effect.rank_regressed); // three sessions are too few for ranks
    CHECK_FALSE(effect.hl_low);
    CHECK(effect.smallest_detectable == Approx(std::expm1(stats::detectable_shift(se, 8, 0.01, 1))));
    CHECK_FALSE(effect.occupancy_p);
    CHECK(found.outcome == verdict::regressed);
    CHECK(found.ratio.value() == Approx(std::exp(0.05)));
    CHECK(found.base.spread == Approx(0.001));
    CHECK(found.base.sessions == 3);
    CHECK(found.candidate.epochs == 1);
    CHECK(found.base.value.value() == 100);
    CHECK(found.candidate.value.value() == Approx(e(0.05)));
    CHECK(only(build::single({100}), build::single({100})).base.spread == 0);
    CHECK(only(build::single({100, 101}), build::single({100})).base.spread == Approx(std::log(1.01) / std::sqrt(2.0)));
    const auto more = by(1.05);
    REQUIRE(more.effect->rank_regressed);
    CHECK(*more.effect->rank_regressed == Approx(1.0 / 252));
    CHECK(*more.effect->rank_improved == 1);
    CHECK(more.effect->hl_low.value() < more.effect->hl);
    CHECK(more.effect->hl_high.value() > more.effect->hl);
    compare::policy wide;
    wide.alpha_equivalence = 0.2;
    CHECK(by(1.05, wide).effect->low90 ==
          Approx(more.effect->delta - stats::t_upper_quantile(0.2, 12) * more.effect->se));
}

TEST_CASE("decide: exactly at a limit") {
    // 1.0625 and its logarithm are such that both sides of the comparison are the same double.
    REQUIRE(std::log(1.0625) == std::log1p(0.0625));
    const values one(5, 1.0);
    compare::policy p;
    p.classes["kernel"].margin = 0.0625;
    const auto found = only(build::single(one), build::single(scaled(one, 1.0625)), p);
    CHECK(found.outcome == verdict::regressed); // the margin itself counts
    CHECK(only(build::single(scaled(one, 1.0625)), build::single(one), p).outcome == verdict::improved);
    p.q = found.effect->adjusted_regressed;
    CHECK(only(build::single(one), build::single(scaled(one, 1.0625)), p).outcome == verdict::regressed);
    p.q = std::nextafter(p.q, 0.0);
    CHECK(only(build::single(one), build::single(scaled(one, 1.0625)), p).outcome == verdict::inconclusive);
    p.q = 0.01;
    p.alpha_rank = found.effect->rank_regressed.value();
    CHECK(only(build::single(one), build::single(scaled(one, 1.0625)), p).outcome == verdict::regressed);
    p.alpha_rank = std::nextafter(p.alpha_rank, 0.0);
    CHECK(only(build::single(one), build::single(scaled(one, 1.0625)), p).outcome == verdict::inconclusive);
    CHECK_FALSE(only(build::single(one), build::single(scaled(one, 0.5))).has(marker::suspicious));

    compare::acceptance a;
    a.match = "*";
    a.up_to = std::expm1(std::log(1.25));
    compare::policy accepting;
    accepting.accepted = {a};
    CHECK(only(build::single(one), build::single(scaled(one, 1.25)), accepting).has(marker::accepted));

    compare::rule r;
    r.match = "*";
    r.resolution = 4;
    compare::policy coarse;
    coarse.rules = {r};
    const auto below = [&](double candidate) {
        return only(build::single(values(5, 128.0)), build::single(values(5, candidate)), coarse)
            .has(marker::below_resolution);
    };
    CHECK(below(131));
    CHECK_FALSE(below(132));          // a whole tick
    coarse.rules[0].margin = 0.03125; // of 128 is a tick: fine enough
    CHECK_FALSE(below(130));
}

TEST_CASE("decide: a session's value is the median of its samples, a side's that of its sessions") {
    auto base = build::single({1, 1, 1});
    base.results[0].sessions[0].samples = {1, 900, 3, 2, 900};
    base.results[0].sessions[1].samples = {5, 7};
    base.results[0].sessions[2].samples = {4};
    const auto found = only(base, base);
    CHECK(found.base.value.value() == 4); // of 3, 6, 4
}

TEST_CASE("decide: few sessions can claim large effects only") {
    CHECK(only(build::single({100}), build::single({106})).outcome == verdict::regressed);
    auto base = build::baseline(1);
    auto candidate = build::baseline(1);
    for (int i = 0; i < 10; ++i) {
        build::add(base, "b" + std::to_string(i), {100});
        build::add(candidate, "b" + std::to_string(i), {i == 0 ? 101.8 : 100});
    }
    CHECK(build::at(compare::compare(base, candidate), "b0").outcome == verdict::inconclusive);
    CHECK(only(build::single({100}), build::single({10000})).outcome == verdict::regressed);
    const auto equal = only(build::single({100}), build::single({100}));
    CHECK(equal.outcome == verdict::equivalent); // by the prior, inside 1.5 %
    CHECK(only(build::single({100}, benchmark_class::sustained), build::single({100}, benchmark_class::sustained))
              .outcome == verdict::inconclusive);
}

TEST_CASE("decide: ranks can veto") {
    // A large mean shift carried by some sessions: the t test is impressed, the ranks are not.
    compare::policy loose;
    loose.classes["kernel"].s_e = 0;
    loose.q = 0.2;
    const values base{100, 100.2, 99.8, 103, 100.1};
    const values candidate{102.2, 102, 99.7, 102.4, 102.1};
    const auto found = only(build::single(base), build::single(candidate), loose);
    REQUIRE(found.effect->rank_regressed);
    CHECK(*found.effect->rank_regressed > 0.05);
    CHECK(found.effect->hl > std::log(1.015));
    CHECK(found.effect->adjusted_regressed < 0.2);
    CHECK(found.outcome == verdict::inconclusive);
    CHECK(found.has(marker::rank_veto));
    CHECK(has_reason(found, reason_code::rank_veto));
    const auto mirrored = only(build::single(candidate), build::single(base), loose);
    CHECK(mirrored.outcome == verdict::inconclusive);
    CHECK(mirrored.has(marker::rank_veto));
    loose.rank_minimum = 6;
    const auto unheard = only(build::single(base), build::single(candidate), loose);
    CHECK(unheard.outcome == verdict::regressed);
    CHECK_FALSE(unheard.effect->rank_regressed);
    loose.rank_minimum = 5;
    loose.alpha_rank = 0.5;
    CHECK(only(build::single(base), build::single(candidate), loose).outcome == verdict::regressed);
    CHECK(only(build::single(candidate), build::single(base), loose).outcome == verdict::improved);
}

TEST_CASE("decide: the rank test needs five sessions on both sides") {
    const values four{100, 100.1, 99.9, 100.05};
    CHECK_FALSE(only(build::single(four), build::single(five)).effect->rank_regressed);
    CHECK_FALSE(only(build::single(five), build::single(four)).effect->rank_regressed);
    CHECK(only(build::single(five), build::single(five)).effect->rank_regressed);
}

TEST_CASE("decide: small but real") {
    compare::policy still;
    still.classes["kernel"].s_e = 0;
    CHECK(by(1.005, still).outcome == verdict::equivalent);
    CHECK(by(1.005, still).has(marker::small_but_real));
    CHECK(by(0.995, still).has(marker::small_but_real));
    CHECK_FALSE(by(1.0005, still).has(marker::small_but_real));
    CHECK_FALSE(by(1).has(marker::small_but_real));
}

TEST_CASE("decide: too good to be true") {
    CHECK_FALSE(by(0.51).has(marker::suspicious));
    CHECK(by(0.49).has(marker::suspicious));
    CHECK(by(0.49).outcome == verdict::improved);
    CHECK_FALSE(by(3).has(marker::suspicious)); // a slowdown is no question about the data
    compare::policy strict;
    strict.suspicious_speedup = 1.5;
    CHECK(by(0.6, strict).has(marker::suspicious));

    // Above the hardware's limit: 80 us at the measured peak of the base.
    auto base = build::single(five);
    base.results[0].what.params["dtype"] = std::string("bf16");
    base.results[0].what.flop = 8e9;
    base.device.ceilings["gemm_bf16_flop_per_s"] = 1e14;
    auto candidate = base;
    const auto run = [&](double factor) {
        candidate.results[0] = build::single(scaled(five, factor)).results[0];
        candidate.results[0].what = base.results[0].what;
        return only(base, candidate);
    };
    CHECK(run(0.9).fraction_of_limit.value() == Approx(8.0 / 9));
    CHECK(run(0.9).outcome == verdict::improved);
    CHECK_FALSE(run(0.9).has(marker::suspicious));
    CHECK_FALSE(run(0.75).has(marker::suspicious));           // 1.07: the limits are measurements too
    CHECK(run(0.72).has(marker::suspicious));                 // 1.11
    candidate.device.ceilings["gemm_bf16_flop_per_s"] = 1e16; // the candidate's own limit does not excuse it
    CHECK(run(0.72).has(marker::suspicious));
    CHECK_FALSE(by(0.72).fraction_of_limit);
}

TEST_CASE("decide: below the timer's resolution") {
    compare::policy rules;
    rules.resolution_s = 3e-6; // 3 us of 100: coarser than the margin
    const auto same = by(1.02, rules);
    CHECK(same.outcome == verdict::inconclusive);
    CHECK(same.has(marker::below_resolution));
    CHECK(has_reason(same, reason_code::below_resolution));
    CHECK_FALSE(by(1.2, rules).has(marker::below_resolution)); // far more than a tick is seen all the same
    CHECK_FALSE(by(1.031, rules).has(marker::below_resolution));
    CHECK(by(0.98, rules).has(marker::below_resolution));
    rules.resolution_s = 1e-6; // finer than the margin of 1.5 us: only a floor of the error
    CHECK_FALSE(by(1.005, rules).has(marker::below_resolution));

    auto base = build::single(five);
    auto candidate = build::single(scaled(five, 1.5));
    const auto flag = [](result::baseline& of, std::size_t sessions) {
        for (std::size_t i = 0; i < sessions; ++i) of.results[0].sessions[i].flags = {result::flag::below_resolution};
    };
    flag(base, 5);
    CHECK(only(base, candidate).outcome == verdict::regressed); // the candidate is long enough to be timed
    flag(candidate, 4);
    CHECK(only(base, candidate).outcome == verdict::regressed);
    flag(candidate, 5);
    CHECK(only(base, candidate).outcome == verdict::inconclusive);
    CHECK(only(base, candidate).has(marker::below_resolution));
    CHECK(only(build::single(five), candidate).outcome == verdict::regressed);
}

TEST_CASE("decide: two modes") {
    const values low{100, 100.1, 99.9, 108, 108.1};
    const values high{100, 108.2, 107.9, 108, 108.1};
    auto base = build::single(low);
    auto candidate = build::single(high);
    for (std::size_t i = 0; i < 5; ++i) {
        base.results[0].sessions[i].ran.implementation = i < 3 ? "eng1" : "eng2";
        base.results[0].sessions[i].cycles = {low[i] * (i < 3 ? 1980 : 1700)};
        candidate.results[0].sessions[i].state["sm_clock_mhz"] = i < 1 ? 1900.0 : 1500.0;
    }
    const auto found = only(base, candidate);
    CHECK(found.outcome == verdict::inconclusive);
    CHECK(found.has(marker::bimodal));
    CHECK(has_reason(found, reason_code::bimodal));
    REQUIRE(found.base.modes.size() == 2);
    CHECK(found.base.modes[0].value == 100);
    CHECK(found.base.modes[0].sessions == 3);
    CHECK(found.base.modes[0].implementations == std::vector<std::string>{"eng1"});
    CHECK(found.base.modes[0].clock_mhz.value() == Approx(1980));
    CHECK(found.base.modes[1].value == Approx(108.05));
    CHECK(found.base.modes[1].sessions == 2);
    CHECK(found.base.modes[1].implementations == std::vector<std::string>{"eng2"});
    CHECK(found.base.modes[1].clock_mhz.value() == Approx(1700));
    CHECK(found.candidate.modes.empty()); // one session of five is no mode
    CHECK(found.effect->occupancy_p.value() == Approx(stats::fisher_exact(2, 5, 4, 5)));
    const auto mirrored = only(candidate, base);
    CHECK(mirrored.has(marker::bimodal));
    CHECK(mirrored.base.modes.empty());
    CHECK(mirrored.candidate.modes.size() == 2);
    CHECK(mirrored.effect->occupancy_p.value() == Approx(stats::fisher_exact(4, 5, 2, 5)));
    // The sides are apart by more than the margin: the modes are told, the verdict stands.
    const auto apart = only(base, build::single(scaled(low, 1.5)));
    CHECK(apart.outcome == verdict::regressed);
    CHECK(apart.has(marker::bimodal));
    CHECK(apart.candidate.modes.size() == 2);
    CHECK_FALSE(apart.candidate.modes[0].clock_mhz);
    CHECK(only(build::single(scaled(low, 1.5)), base).outcome == verdict::improved);
    // Just less than the margin apart is not apart: 108.1 to 109.6 is 1.39 %, to 109.8 1.57 %.
    compare::policy sure;
    sure.classes["kernel"].s0 = 0.1; // so that only the modes speak
    CHECK(only(build::single(low), build::single(values(5, 109.6)), sure).outcome == verdict::inconclusive);
    CHECK(has_reason(only(build::single(low), build::single(values(5, 109.6)), sure), reason_code::bimodal));
    CHECK_FALSE(has_reason(only(build::single(low), build::single(values(5, 109.8)), sure), reason_code::bimodal));
    CHECK(has_reason(only(build::single(low), build::single(values(5, 98.5)), sure), reason_code::bimodal));
    CHECK_FALSE(has_reason(only(build::single(low), build::single(values(5, 98.3)), sure), reason_code::bimodal));
    // Where the numbers are no times there is no clock to compute, and higher is better: modes by cost.
    auto rates = higher(low);
    for (auto& s : rates.results[0].sessions) s.cycles = {1000};
    const auto rate = only(rates, rates);
    REQUIRE(rate.base.modes.size() == 2);
    CHECK(rate.base.modes[0].value == Approx(108.05)); // the better ones first
    CHECK_FALSE(rate.base.modes[0].clock_mhz);
}

TEST_CASE("decide: inconclusive says what would settle it") {
    const auto found = only(build::single({100, 100.5, 99.5}), build::single({100.9, 101.4, 100.4}));
    CHECK(found.outcome == verdict::inconclusive);
    REQUIRE(has_reason(found, reason_code::too_noisy));
    CHECK(found.effect->smallest_detectable > 0.015);
    CHECK(compare::smallest_reported(found) == found.effect->smallest_detectable);
    auto quiet = found; // however little noise there is, the margin is the least that is reported
    quiet.effect->smallest_detectable = 0.001;
    CHECK(compare::smallest_reported(quiet) == quiet.used.margin);
    quiet.effect.reset();
    CHECK(std::isinf(compare::smallest_reported(quiet)));
    REQUIRE(found.effect->sessions_needed);
    CHECK(*found.effect->sessions_needed > 3);
    CHECK(found.reasons.back().text == "the change is neither proven nor excluded");
    compare::policy restless;
    restless.classes["kernel"].s_e = 0.02;
    const auto hopeless = by(1.02, restless);
    CHECK(hopeless.outcome == verdict::inconclusive);
    CHECK_FALSE(hopeless.effect->sessions_needed);
}

TEST_CASE("decide: sessions needed follow from the pair's own precision") {
    const auto found = by(1.012);
    const auto needed = stats::sessions_to_detect(
        std::log1p(0.015),
        {std::sqrt((4 * 0.0015 * 0.0015 + 2 * stats::sum_of_squares({std::log(100), std::log(100.1), std::log(99.9),
                                                                     std::log(100.05), std::log(99.95)})) /
                   12),
         2 * 0.002 * 0.002, 4},
        0.01, 1, stats::t_upper_quantile);
    CHECK(found.effect->sessions_needed == needed);
    CHECK(needed);
}

TEST_CASE("decide: many tests make each one harder") {
    auto base = build::baseline(2);
    auto candidate = build::baseline(2);
    const double shift = 1.02;
    for (int i = 0; i < 50; ++i) {
        build::add(base, "b" + std::to_string(i), {100, 100});
        build::add(candidate, "b" + std::to_string(i), scaled({100, 100}, i == 0 ? shift : 1));
    }
    const auto many = compare::compare(base, candidate);
    CHECK(many.tests == 50);
    const auto& one = build::at(many, "b0");
    CHECK(one.outcome == verdict::inconclusive);
    CHECK(one.effect->adjusted_regressed == Approx(50 * one.effect->p_regressed));
    CHECK(one.effect->smallest_detectable ==
          Approx(std::expm1(stats::detectable_shift(one.effect->se, one.effect->df, 0.01, 50))));
    CHECK(only(build::single({100, 100}), build::single(scaled({100, 100}, shift))).outcome == verdict::regressed);
    // Improvements are a family of their own.
    const auto& other = build::at(compare::compare(candidate, base), "b0");
    CHECK(other.effect->adjusted_improved == Approx(50 * other.effect->p_improved));
    CHECK(other.effect->adjusted_regressed == Approx(other.effect->p_regressed).epsilon(0.02));
}

TEST_CASE("decide: clock and cycles") {
    auto base = build::single({100, 100, 100});
    auto candidate = build::single({120, 120, 120});
    const auto cycles = [](result::baseline& of, double clock_mhz) {
        for (auto& s : of.results[0].sessions) s.cycles = {s.samples[0] * clock_mhz};
    };
    CHECK_FALSE(only(base, candidate).parts);
    cycles(base, 2000);
    CHECK_FALSE(only(base, candidate).parts);
    cycles(candidate, 1800);
    const auto found = only(base, candidate);
    REQUIRE(found.parts);
    CHECK(found.parts->clock == Approx(std::log(2000.0 / 1800)));
    CHECK(found.parts->cycles == Approx(std::log(1.2 * 0.9)));
    CHECK(found.parts->clock + found.parts->cycles == Approx(found.effect->delta));
    CHECK(compare::split::fraction(std::log(1.25)) == Approx(0.25));
    candidate.results[0].sessions[1].cycles.clear();
    CHECK_FALSE(only(base, candidate).parts);
    cycles(candidate, 1800);
    candidate.results[0].sessions[1].cycles = {0};
    CHECK_FALSE(only(base, candidate).parts);
    candidate.results[0].sessions[1].cycles = {1, 2}; // not one for each sample
    CHECK_FALSE(only(base, candidate).parts);
    auto rates = higher({100, 100, 100});
    cycles(rates, 2000);
    CHECK_FALSE(only(rates, rates).parts);
    cycles(base, 2000);
    base.results[0].what.better = plumbline::direction::higher; // a time that should be long: nothing to split
    CHECK_FALSE(only(base, base).parts);
    rates.results[0].what.better = plumbline::direction::lower;
    CHECK_FALSE(only(rates, rates).parts);
}
