// SPDX-License-Identifier: Apache-2.0
// The comparison as a whole: exit code, acceptances, machine-wide shifts, order, means, names.
#include <cmath>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "build.hpp"
#include "plumbline/compare/compare.hpp"

namespace compare = plumbline::compare;
namespace result = plumbline::result;
using build::scaled;
using build::values;
using compare::marker;
using compare::verdict;
using doctest::Approx;
using plumbline::benchmark_class;
using plumbline::exit_code;

namespace {

const values five{100, 100.1, 99.9, 100.05, 99.95};

struct entry {
    std::string id;
    double factor = 1; ///< 0: missing, negative: failed
    benchmark_class kind = benchmark_class::kernel;
};

compare::comparison run(const std::vector<entry>& of, const compare::policy& rules = {}) {
    auto base = build::baseline(5);
    auto candidate = build::baseline(5);
    for (const auto& e : of) {
        build::add(base, e.id, five, e.kind);
        if (e.factor == 0) continue;
        auto& r = build::add(candidate, e.id, scaled(five, std::abs(e.factor)), e.kind);
        if (e.factor < 0) r.status = result::result_status::failed;
    }
    return compare::compare(base, candidate, rules);
}

compare::policy with_rule(const compare::rule& r) {
    compare::policy p;
    p.rules = {r};
    return p;
}

} // namespace

TEST_CASE("outcome: exit codes") {
    CHECK(run({{"a"}}).exit == exit_code::ok);
    CHECK(run({{"a", 1.1}}).exit == exit_code::regressed);
    CHECK(run({{"a", 0.9}}).exit == exit_code::ok);
    CHECK(run({{"a"}, {"b", 0}}).exit == exit_code::incomplete);
    CHECK(run({{"a"}, {"b", -1}}).exit == exit_code::incomplete);
    CHECK(run({{"a", 1.1}, {"b", 0}}).exit == exit_code::regressed);
    CHECK(run({{"a", 0.4}}).exit == exit_code::incomplete); // too good to be true
    CHECK(run({}).exit == exit_code::incomplete);           // nothing matched
    CHECK(run({{"a", 1.012}}).exit == exit_code::ok);
    compare::policy strict;
    strict.strict = true;
    CHECK(run({{"a", 1.012}}, strict).exit == exit_code::inconclusive);
    CHECK(run({{"a", 1.012}, {"b", 0}}, strict).exit == exit_code::incomplete);
    CHECK(run({{"a"}}, strict).exit == exit_code::ok);
}

TEST_CASE("outcome: incomparable alone is 3, beside others 4") {
    auto base = build::baseline(5);
    build::add(base, "a", five);
    build::add(base, "b", five);
    auto candidate = base;
    candidate.results[0].what.params["n"] = std::int64_t{2};
    CHECK(compare::compare(base, candidate).exit == exit_code::incomplete);
    candidate.results[1].what.params["n"] = std::int64_t{2};
    CHECK(compare::compare(base, candidate).exit == exit_code::incomparable);
    auto fewer = candidate;
    fewer.results.pop_back();
    CHECK(compare::compare(base, fewer).exit == exit_code::incomparable); // one missing, one incomparable
    candidate.results[1] = base.results[1];
    candidate.results[1].status = result::result_status::failed;
    CHECK(compare::compare(base, candidate).exit == exit_code::incomplete); // one was meant to be comparable
    compare::rule r;
    r.match = "a";
    r.required = false;
    candidate.results[1].status = result::result_status::ok;
    CHECK(compare::compare(base, candidate, with_rule(r)).exit == exit_code::ok);
}

TEST_CASE("outcome: advisory and optional") {
    const std::vector<entry> loader{{"a"}, {"loader", 3, benchmark_class::dataloader}};
    CHECK(build::at(run(loader), "loader").outcome == verdict::regressed);
    CHECK(build::at(run(loader), "loader").has(marker::advisory));
    CHECK_FALSE(build::at(run(loader), "a").has(marker::advisory));
    CHECK(run(loader).exit == exit_code::ok);
    CHECK(run({{"a"}, {"loader", 0, benchmark_class::dataloader}}).exit == exit_code::incomplete);
    CHECK(run({{"a"}, {"loader", 0.1, benchmark_class::dataloader}}).exit == exit_code::ok); // suspicious, but advisory
    compare::rule r;
    r.match = "loader";
    r.advisory = false;
    CHECK(run(loader, with_rule(r)).exit == exit_code::regressed);
    r.match = "a";
    r.advisory = true;
    CHECK(run({{"a", 1.5}}, with_rule(r)).exit == exit_code::ok);
    auto strict = with_rule(r);
    strict.strict = true;
    CHECK(run({{"a", 1.012}}, strict).exit == exit_code::ok);
    r.match = "b";
    r.required = false;
    const auto optional = run({{"a"}, {"b", 0}}, with_rule(r));
    CHECK(optional.exit == exit_code::ok);
    CHECK(build::at(optional, "b").has(marker::optional));
    CHECK_FALSE(build::at(optional, "a").has(marker::optional));
    CHECK(run({{"a"}, {"b", -1}}, with_rule(r)).exit == exit_code::ok);
    r.required = true;
    CHECK(run({{"a"}, {"b", 0}}, with_rule(r)).exit == exit_code::incomplete);
}

TEST_CASE("outcome: accepted changes, until they expire") {
    compare::acceptance a;
    a.match = "gemm/*";
    a.reason = "cuDNN 9.20";
    const auto with = [&](const compare::acceptance& accepted, double factor = 1.2, const std::string& today = {}) {
        compare::policy p;
        p.accepted = {accepted};
        p.today = today;
        return run({{"gemm/a", factor}}, p);
    };
    CHECK(with(a).exit == exit_code::ok);
    CHECK(with(a).findings[0].outcome == verdict::regressed); // still told
    CHECK(with(a).findings[0].has(marker::accepted));
    a.until = "2026-11-30"; // the day the candidate was made: still holds
    CHECK(with(a).exit == exit_code::ok);
    a.until = "2026-11-29";
    CHECK(with(a).exit == exit_code::regressed);
    CHECK(with(a).findings[0].has(marker::acceptance_expired));
    CHECK_FALSE(with(a).findings[0].has(marker::accepted));
    CHECK(with(a, 1.2, "2026-11-29").exit == exit_code::ok);
    CHECK(with(a, 1.2, "2027-01-01").exit == exit_code::regressed);
    a.until.clear();
    a.up_to = 0.19;
    CHECK(with(a).exit == exit_code::regressed);
    CHECK_FALSE(with(a).findings[0].has(marker::acceptance_expired));
    a.up_to = 0.21;
    CHECK(with(a).exit == exit_code::ok);
    CHECK(with(a, 0.4).exit == exit_code::incomplete); // 1.5 times as fast again
    a.up_to = 1.6;
    CHECK(with(a, 0.4).exit == exit_code::ok);
    a.up_to.reset();
    a.metric = "throughput";
    CHECK(with(a).exit == exit_code::regressed);
    a.metric = "time";
    CHECK(with(a).exit == exit_code::ok);
    a.match = "conv/*";
    CHECK(with(a).exit == exit_code::regressed);
    CHECK_FALSE(with(a, 1).findings[0].has(marker::accepted)); // nothing to accept
    a.match = "*";
    CHECK_FALSE(with(a, 1).findings[0].has(marker::accepted));
    CHECK_FALSE(with(a, 0.9).findings[0].has(marker::accepted)); // an ordinary improvement needs none
    // The day counts to its last digit.
    auto base = build::single(five);
    auto candidate = build::single(scaled(five, 1.2));
    candidate.created = "2026-11-29T23:59:59Z";
    compare::policy daily;
    daily.accepted = {a};
    daily.accepted[0].until = "2026-11-28";
    CHECK(compare::compare(base, candidate, daily).exit == exit_code::regressed);
    daily.accepted[0].until = "2026-11-29";
    CHECK(compare::compare(base, candidate, daily).exit == exit_code::ok);
    // The first acceptance that does not fit leaves the next its turn.
    compare::acceptance other;
    other.match = "conv/*";
    compare::acceptance small = a;
    small.up_to = 0.01;
    daily.accepted.insert(daily.accepted.begin(), {other, small});
    CHECK(compare::compare(base, candidate, daily).exit == exit_code::ok);
    // One that holds covers for one that has expired.
    compare::policy both;
    both.accepted = {a, a};
    both.accepted[0].until = "2020-01-01";
    const auto covered = run({{"a", 1.2}}, both).findings[0];
    CHECK(covered.has(marker::accepted));
    CHECK_FALSE(covered.has(marker::acceptance_expired));
}

TEST_CASE("outcome: machine-wide shift") {
    std::vector<entry> all;
    for (int i = 0; i < 9; ++i) all.push_back({"b" + std::to_string(i), 1.1});
    const auto every = run(all);
    REQUIRE(every.machine_wide);
    CHECK(every.machine_wide->shift == Approx(std::log(1.1)));
    CHECK(every.machine_wide->share == 1);
    CHECK(every.machine_wide->pairs == 9);
    CHECK_FALSE(every.machine_wide->parts);
    CHECK(every.findings[0].has(marker::common_mode));
    CHECK(every.findings[0].residual.value() == Approx(0).epsilon(1e-9));
    CHECK(every.count(verdict::regressed) == 9); // on one board nothing is taken away
    all[8].factor = 1.3;
    const auto one_more = run(all);
    CHECK_FALSE(build::at(one_more, "b8").has(marker::common_mode));
    CHECK(build::at(one_more, "b8").residual.value() == Approx(std::log(1.3 / 1.1)));
    all[8].factor = 0.9; // 8 of 9 are 89 %
    CHECK(run(all).machine_wide);
    CHECK(run(all).machine_wide->share == Approx(8.0 / 9));
    all[7].factor = 0.9; // 7 of 9 are 78 %
    CHECK_FALSE(run(all).machine_wide);
    CHECK_FALSE(run(all).findings[0].residual);
    std::vector<entry> ten(all.begin(), all.begin() + 8); // 7 of 8, then 8 of 10: not more than 80 %
    ten.push_back({"x", 1.1});
    ten.push_back({"y", 0.9});
    CHECK_FALSE(run(ten).machine_wide);

    for (auto& e : ten) e.factor = e.factor == 0.9 ? 1 : 1.1; // nor when the rest stand still
    CHECK_FALSE(run(ten).machine_wide);

    CHECK(run({{"a", 1.1}, {"b", 1.1}, {"c", 1.1}, {"d", 1.1}, {"e", 1.1}}).machine_wide);
    const auto after_missing = run({{"0", 0}, {"a", 1.1}, {"b", 1.1}, {"c", 1.1}, {"d", 1.1}, {"e", 1.1}});
    REQUIRE(after_missing.machine_wide);
    CHECK(after_missing.machine_wide->pairs == 5);
    CHECK(build::at(after_missing, "e").has(marker::common_mode));
    CHECK(after_missing.overall.pairs == 5);
    CHECK_FALSE(run({{"a", 1.1}, {"b", 1.1}, {"c", 1.1}, {"d", 1.1}}).machine_wide); // four may be chance
    CHECK(run({{"a", 0.9}, {"b", 0.9}, {"c", 0.9}, {"d", 0.9}, {"e", 0.9}}).machine_wide->shift < 0);
    CHECK_FALSE(run({{"a", 1.002}, {"b", 1.002}, {"c", 1.002}, {"d", 1.002}, {"e", 1.002}}).machine_wide);
    CHECK(run({{"a", 1.004}, {"b", 1.004}, {"c", 1.004}, {"d", 1.004}, {"e", 1.004}}).machine_wide); // se is 0.3 %
    CHECK_FALSE(run({{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}}).machine_wide);
    CHECK_FALSE(run({}).machine_wide);
    compare::policy none;
    none.common_mode_minimum = 0;
    CHECK_FALSE(run({}, none).machine_wide);
}

TEST_CASE("outcome: machine-wide shift split into clock and cycles") {
    auto base = build::baseline(5);
    auto candidate = build::baseline(5);
    for (int i = 0; i < 6; ++i) {
        const std::string id = "b" + std::to_string(i);
        auto& b = build::add(base, id, five);
        auto& c = build::add(candidate, id, scaled(five, 1.1));
        if (i == 0) continue; // one without cycles
        for (auto& s : b.sessions) s.cycles = {s.samples[0] * 2000};
        for (auto& s : c.sessions) s.cycles = {s.samples[0] * 1900};
    }
    const auto got = compare::compare(base, candidate);
    REQUIRE(got.machine_wide);
    REQUIRE(got.machine_wide->parts);
    CHECK(got.machine_wide->parts->clock == Approx(std::log(2000.0 / 1900)));
    CHECK(got.machine_wide->parts->cycles == Approx(std::log(1.1 * 1900 / 2000)));
}

TEST_CASE("outcome: worst first") {
    const auto got = run({{"same"},
                          {"gone", 0},
                          {"b", 1.1},
                          {"a", 1.1},
                          {"worse", 1.5},
                          {"broken", -1},
                          {"faster", 0.9},
                          {"unclear", 1.012},
                          {"magic", 0.3}});
    std::string order;
    for (const auto& f : got.findings) order += f.id + " ";
    CHECK(order == "worse a b magic broken gone unclear faster same ");
    compare::policy p;
    p.accepted.resize(1);
    p.accepted[0].match = "magic";
    const auto accepted = run({{"magic", 0.3}, {"unclear", 1.012}, {"faster", 0.9}}, p);
    order.clear();
    for (const auto& f : accepted.findings) order += f.id + " ";
    CHECK(order == "unclear magic faster ");
    CHECK(got.count(verdict::regressed) == 3);
    CHECK(got.count(verdict::improved) == 2);
    CHECK(got.count(verdict::skipped) == 0);
    auto base = build::single(five);
    build::add(base, "a", five).what.metric = "throughput";
    const auto metrics = compare::compare(base, base);
    CHECK(metrics.findings[0].metric == "throughput");
    CHECK(metrics.findings[1].metric == "time");
}

TEST_CASE("outcome: geometric mean over valid pairs only") {
    const auto got = run({{"a", 2}, {"b", 0.5}, {"c", 2}, {"gone", 0}, {"broken", -1}});
    CHECK(got.overall.pairs == 3);
    CHECK(got.overall.ratio == Approx(std::cbrt(2.0)));
    CHECK(run({{"a", 2}}).overall.ratio == Approx(2));
    CHECK(run({{"gone", 0}}).overall.pairs == 0);
    CHECK(run({{"gone", 0}}).overall.ratio == 1);
}

TEST_CASE("outcome: environment differences are carried") {
    auto base = build::single(five);
    auto candidate = base;
    result::attribute a;
    a.read = result::reading::of(std::string("9.19"));
    base.environment.attributes["cudnn"] = a;
    a.read = result::reading::of(std::string("9.20"));
    candidate.environment.attributes["cudnn"] = a;
    const auto got = compare::compare(base, candidate);
    REQUIRE(got.environment.size() == 1);
    CHECK(got.environment[0].name == "cudnn");
    CHECK(plumbline::to_string(got.environment[0].from.value) == "9.19");
}

TEST_CASE("outcome: names are distinct and complete") {
    std::set<std::string> names;
    for (const auto v : compare::all_verdicts) names.insert(compare::to_string(v));
    CHECK(compare::all_verdicts.size() == 10);
    CHECK(names == std::set<std::string>{"regressed", "improved", "equivalent", "inconclusive", "missing", "new",
                                         "incomparable", "invalid", "skipped", "cross_hardware"});
    names.clear();
    const int reasons = static_cast<int>(compare::reason_code::rank_veto) + 1;
    for (int i = 0; i < reasons; ++i) names.insert(compare::to_string(static_cast<compare::reason_code>(i)));
    CHECK(names.size() == static_cast<std::size_t>(reasons));
    CHECK(names.count("") == 0);
    names.clear();
    const int markers = static_cast<int>(marker::unverified) + 1;
    for (int i = 0; i < markers; ++i) names.insert(compare::to_string(static_cast<marker>(i)));
    CHECK(names.size() == static_cast<std::size_t>(markers));
    CHECK(names.count("") == 0);
    CHECK(std::string(compare::to_string(marker::small_but_real)) == "small_but_real");
    CHECK(std::string(compare::to_string(compare::reason_code::workload_differs)) == "workload_differs");
    CHECK(compare::is_tested(verdict::inconclusive));
    CHECK_FALSE(compare::is_tested(verdict::cross_hardware));
    CHECK_FALSE(compare::is_tested(verdict::invalid));
}

TEST_CASE("outcome: what nobody filled claims nothing") {
    const compare::finding f;
    CHECK(f.outcome == verdict::invalid);
    CHECK(f.better == plumbline::direction::lower);
    CHECK(f.base.sessions == 0);
    CHECK(f.base.epochs == 0);
    CHECK(f.base.spread == 0);
    CHECK(f.used.s0 == 0);
    CHECK(f.used.s_e == 0);
    CHECK(f.used.d0 == 0);
    CHECK(f.used.d_e == 0);
    CHECK(f.used.floor == 0);
    CHECK(f.used.margin == 0);
    CHECK(f.used.resolution == 0);
    CHECK_FALSE(f.has(marker::advisory));
    const compare::estimate e;
    for (const double zero : {e.hl, e.delta, e.se, e.df, e.low90, e.high90, e.low95, e.high95, e.smallest_detectable}) {
        CHECK(zero == 0);
    }
    for (const double one : {e.p_regressed, e.p_improved, e.adjusted_regressed, e.adjusted_improved}) CHECK(one == 1);
    const compare::implementation i;
    CHECK(i.sessions == 0);
    CHECK(i.value == 0);
    const compare::mode m;
    CHECK(m.sessions == 0);
    CHECK(m.value == 0);
    const compare::split parts;
    CHECK(parts.clock == 0);
    CHECK(parts.cycles == 0);
    const compare::common_mode common;
    CHECK(common.shift == 0);
    CHECK(common.share == 0);
    CHECK(common.pairs == 0);
    const compare::board_factor board;
    CHECK(board.shift == 0);
    CHECK(board.se == 0);
    CHECK_FALSE(board.red);
    const compare::comparison empty;
    CHECK(empty.tests == 0);
    CHECK_FALSE(empty.interleaved);
    CHECK(empty.overall.ratio == 1);
    CHECK(empty.overall.pairs == 0);
    CHECK(empty.exit == exit_code::ok);
    CHECK(empty.count(verdict::regressed) == 0);
}
