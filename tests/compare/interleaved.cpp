// SPDX-License-Identifier: Apache-2.0
// Interleaved rounds, boards, and the control.
#include <algorithm>
#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "build.hpp"
#include "plumbline/compare/compare.hpp"

namespace compare = plumbline::compare;
namespace stats = plumbline::stats;
namespace result = plumbline::result;
using build::scaled;
using build::values;
using compare::marker;
using compare::verdict;
using doctest::Approx;
using plumbline::benchmark_class;

namespace {

const values five{100, 100.1, 99.9, 100.05, 99.95};

result::baseline rounds(const values& of, std::size_t per_round = 1, const std::string& board = "board",
                        const std::string& boot = "boot") {
    auto b = build::baseline(of.size(), board, boot);
    for (std::size_t i = 0; i < of.size(); ++i) b.sessions[i].control = "r" + std::to_string(i / per_round);
    build::add(b, "a", of);
    return b;
}

compare::finding only(const result::baseline& base, const result::baseline& candidate,
                      const compare::policy& rules = {}) {
    return compare::compare(base, candidate, rules).findings.at(0);
}

// A baseline of a board with the compute canary, a matrix product and a copy.
result::baseline board(const std::string& name, const values& canary, const values& gemm, const values& copy) {
    auto b = build::baseline(canary.size(), name);
    for (auto& s : build::add(b, "probe/canary_mma", canary).sessions) s.ran.parts["code_hash"] = std::string("frozen");
    auto& g = build::add(b, "gemm", gemm);
    g.what.flop = 1e12;
    g.what.bytes = 1e8;
    auto& c = build::add(b, "copy", copy);
    c.what.bytes = 1e8;
    return b;
}

} // namespace

TEST_CASE("interleaved: drift cancels within rounds") {
    // Each round is 5 % slower than the one before: hopeless for two heaps of sessions, nothing to the pairs.
    const values drift{100, 105, 110.25, 115.76, 121.55};
    const auto found = only(rounds(drift), rounds(scaled(drift, 1.01)));
    CHECK(found.outcome == verdict::regressed);
    CHECK(found.has(marker::interleaved));
    CHECK(found.used.margin == 0.003);
    CHECK(found.used.s_e == 0);
    CHECK(found.effect->hl == Approx(std::log(1.01)));
    CHECK(found.effect->delta == Approx(std::log(1.01)));
    CHECK(found.effect->df == 8); // 4 + 5 - 1
    CHECK(found.effect->se == Approx(std::sqrt(4 * 0.0015 * 0.0015 * 2 / 8 / 5)));
    CHECK(found.effect->rank_regressed.value() == Approx(1.0 / 32));
    CHECK(found.effect->rank_improved.value() == 1);
    CHECK_FALSE(found.effect->hl_low);
    const auto got = compare::compare(rounds(drift), rounds(scaled(drift, 1.01)));
    CHECK(got.interleaved);
    CHECK_FALSE(compare::compare(build::single(drift), build::single(drift)).interleaved);
    CHECK(only(rounds(drift), rounds(scaled(drift, 0.99))).outcome == verdict::improved);
    CHECK(only(rounds(drift), rounds(drift)).outcome == verdict::equivalent);
    CHECK(only(build::single(drift), build::single(scaled(drift, 1.01))).outcome == verdict::inconclusive);
    const auto needed = stats::sessions_to_detect(std::log1p(0.003), {std::sqrt(0.0015 * 0.0015 * 4 / 8), 0, 4}, 0.01,
                                                  1, stats::t_upper_quantile);
    CHECK(found.effect->sessions_needed == needed);
}

TEST_CASE("interleaved: ABBA rounds weigh half, and the veto is that of signed ranks") {
    const auto found = only(rounds({100, 100, 100, 100, 100, 100}, 2), rounds({101, 101, 101, 101, 101, 101}, 2));
    CHECK(found.effect->df == 6);
    CHECK(found.effect->se == Approx(std::sqrt(4 * 0.0015 * 0.0015 / 6 / 3)));
    CHECK_FALSE(found.effect->rank_regressed); // three rounds
    CHECK(found.base.sessions == 6);

    compare::policy loose;
    loose.q = 0.4;
    const values base(5, 100);
    const values mixed{103, 104, 99, 103, 104};
    const auto vetoed = only(rounds(base), rounds(mixed), loose);
    CHECK(vetoed.effect->rank_regressed.value() == Approx(2.0 / 32));
    CHECK(vetoed.has(marker::rank_veto));
    CHECK(only(rounds(base), rounds({103, 104, 100.5, 103, 104}), loose).outcome == verdict::regressed);
}

TEST_CASE("interleaved: only complete rounds of the same boot and board count") {
    auto base = rounds(five);
    auto candidate = rounds(scaled(five, 1.01));
    base.sessions[4].control = "lost";
    candidate.sessions[0].control.clear();
    const auto found = only(base, candidate);
    CHECK(found.has(marker::interleaved));
    CHECK(found.base.sessions == 3);
    CHECK(found.candidate.sessions == 3);
    CHECK(found.effect->df == 6);
    CHECK_FALSE(only(rounds(five), rounds(five, 1, "board", "another boot")).has(marker::interleaved));
    CHECK_FALSE(only(rounds(five), rounds(five, 1, "another board")).has(marker::interleaved));
    CHECK_FALSE(only(rounds(five), build::single(five)).has(marker::interleaved));
    CHECK_FALSE(only(build::single(five), rounds(five)).has(marker::interleaved));
    CHECK_FALSE(only(build::single(five), build::single(five)).has(marker::interleaved));
    // Rounds of one name from two runs, one after the other: no pairs, although boot and board are the same.
    auto later = rounds(five);
    for (auto& s : later.sessions) s.started.replace(0, 4, "2027");
    CHECK_FALSE(only(rounds(five), later).has(marker::interleaved));
    CHECK_FALSE(only(later, rounds(five)).has(marker::interleaved));
    const auto stored = compare::compare(rounds(five), later);
    CHECK(only(rounds(five), later).used.margin == 0.015);
    const auto said = [](const compare::comparison& in) {
        return std::count_if(in.notes.begin(), in.notes.end(), [](const std::string& note) {
            return note.rfind("1 result is compared as if stored, not in pairs", 0) == 0;
        });
    };
    CHECK(said(stored) == 1);
    CHECK(said(compare::compare(rounds(five), rounds(five))) == 0);
    CHECK(said(compare::compare(rounds(five), rounds(five, 1, "board", "another boot"))) == 0);
    auto two = rounds({100, 100});
    auto later_two = rounds({100, 100});
    for (auto& session : later_two.sessions) session.started.replace(0, 4, "2027");
    CHECK(only(two, two).has(marker::interleaved));
    CHECK_FALSE(only(two, later_two).has(marker::interleaved));
    auto beside = rounds(five); // each a little after its partner, before the next round
    for (auto& s : beside.sessions) s.started.insert(s.started.size() - 1, ".5");
    CHECK(only(rounds(five), beside).has(marker::interleaved));
    CHECK(only(beside, rounds(five)).has(marker::interleaved));
    auto touching = rounds(five); // starts when the next round does
    for (std::size_t i = 0; i + 1 < 5; ++i) touching.sessions[i].started = touching.sessions[i + 1].started;
    CHECK(only(rounds(five), touching).has(marker::interleaved));
    auto named = rounds(five);
    for (auto& s : named.sessions) s.control += "x";
    CHECK_FALSE(only(rounds(five), named).has(marker::interleaved));
}

TEST_CASE("interleaved: margins of classes that do not name one of their own") {
    auto base = rounds(five);
    base.results[0].what.kind = benchmark_class::sustained;
    CHECK(only(base, base).used.margin == 0.07);
    base.results[0].what.kind = benchmark_class::dataloader;
    CHECK(only(base, base).used.margin == 0.10);
}

TEST_CASE("boards: the compute factor is removed from what follows it") {
    const auto base = board("b1", five, five, five);
    const auto other = board("b2", scaled(five, 1.02), scaled(five, 1.02), five);
    const auto got = compare::compare(base, other);
    REQUIRE(got.board);
    CHECK(got.board->canary == "probe/canary_mma");
    CHECK(got.board->base_board == "b1");
    CHECK(got.board->candidate_board == "b2");
    CHECK(got.board->shift == Approx(std::log(1.02)));
    CHECK_FALSE(got.board->red);
    CHECK(got.board->problem.empty());
    const double ss =
        2 * stats::sum_of_squares({std::log(100), std::log(100.1), std::log(99.9), std::log(100.05), std::log(99.95)});
    const double s2 = (4 * 0.0015 * 0.0015 + ss) / 12;
    CHECK(got.board->se == Approx(std::sqrt(s2 * 0.4)));
    const auto& gemm = build::at(got, "gemm");
    CHECK(gemm.outcome == verdict::equivalent);
    CHECK(gemm.has(marker::board_factor_removed));
    CHECK(std::abs(gemm.effect->hl) < 1e-12);
    CHECK(gemm.used.s_e == 0.004);
    CHECK(gemm.effect->se == Approx(std::sqrt(s2 * 0.4 + 2 * 0.004 * 0.004 + s2 * 0.4))); // the factor's own error too
    CHECK(gemm.candidate.value.value() == Approx(102)); // what was measured stays visible
    CHECK(build::at(got, "probe/canary_mma").has(marker::board_factor_removed));
    const auto& copy = build::at(got, "copy");
    CHECK_FALSE(copy.has(marker::board_factor_removed));
    CHECK(copy.used.s_e == 0.004);
    CHECK(copy.outcome == verdict::equivalent);
    CHECK(got.exit == plumbline::exit_code::ok);
    const auto slow = compare::compare(base, board("b2", scaled(five, 1.02), scaled(five, 1.08), five));
    CHECK(build::at(slow, "gemm").outcome == verdict::regressed);
    CHECK(build::at(slow, "gemm").effect->hl == Approx(std::log(1.08 / 1.02)));
}

TEST_CASE("boards: beyond the limit a board is red by itself") {
    const auto base = board("b1", five, five, five);
    const auto red = compare::compare(base, board("b2", scaled(five, 1.031), scaled(five, 1.031), five));
    CHECK(red.board->red);
    CHECK(red.count(verdict::regressed) == 0);
    CHECK(red.exit == plumbline::exit_code::regressed);
    CHECK_FALSE(compare::compare(base, board("b2", scaled(five, 1.029), five, five)).board->red);
    CHECK_FALSE(compare::compare(base, board("b2", scaled(five, 0.9), scaled(five, 0.9), five)).board->red);
    const values one(5, 1.0);
    compare::policy exact;
    exact.board_factor_limit = 0.0625;
    CHECK_FALSE(
        compare::compare(board("b1", one, one, one), board("b2", scaled(one, 1.0625), one, one), exact).board->red);
    compare::policy strict;
    strict.board_factor_limit = 0.01;
    CHECK(compare::compare(base, board("b2", scaled(five, 1.02), five, five), strict).board->red);
}

TEST_CASE("boards: the same board, or one nobody knows, has no factor") {
    const auto base = board("b1", five, five, five);
    CHECK_FALSE(compare::compare(base, board("b1", scaled(five, 1.02), five, five)).board);
    CHECK_FALSE(compare::compare(base, board("", scaled(five, 1.02), five, five)).board);
    CHECK_FALSE(compare::compare(board("", five, five, five), base).board);
    auto both = board("b2", five, five, five);
    both.sessions[3].when.board = "b1"; // partly the same board
    CHECK_FALSE(compare::compare(base, both).board);
    CHECK(build::at(compare::compare(base, board("b1", five, five, five)), "gemm").used.s_e == 0.002);
}

TEST_CASE("boards: without a canary the spread between boards is in the error") {
    const auto strip = [](result::baseline b) {
        b.results.erase(b.results.begin());
        return b;
    };
    const auto base = strip(board("b1", five, five, five));
    const auto other = strip(board("b2", five, scaled(five, 1.04), scaled(five, 1.04)));
    const auto got = compare::compare(base, other);
    REQUIRE(got.board);
    CHECK(got.board->canary.empty());
    CHECK_FALSE(got.board->red);
    CHECK(got.board->problem.find("no benchmark probe/canary_mma*") == 0);
    CHECK(build::at(got, "gemm").used.s_e == Approx(std::hypot(0.004, 0.012)));
    CHECK(build::at(got, "gemm").outcome == verdict::inconclusive);
    CHECK(build::at(got, "copy").used.s_e == 0.004);
    CHECK(build::at(got, "copy").outcome == verdict::regressed);
}

TEST_CASE("boards: a canary of other machine code is no measure") {
    const auto code = [](result::baseline b, const std::string& hash, std::size_t sessions) {
        for (std::size_t i = 0; i < sessions; ++i) b.results[0].sessions[i].ran.parts["code_hash"] = hash;
        return b;
    };
    const auto unknown = [](result::baseline b) {
        for (auto& s : b.results[0].sessions) s.ran.parts.clear();
        return b;
    };
    const auto plain = unknown(board("b1", five, five, five));
    const auto other = unknown(board("b2", five, five, five));
    const auto canary = [](const result::baseline& a, const result::baseline& b) {
        return compare::compare(a, b).board->canary;
    };
    CHECK(canary(code(plain, "x", 5), code(other, "x", 5)) == "probe/canary_mma");
    CHECK(canary(code(plain, "x", 5), code(other, "y", 5)).empty());
    CHECK(compare::compare(code(plain, "x", 5), code(other, "y", 5)).board->problem.find("machine code") !=
          std::string::npos);
    CHECK(canary(code(plain, "x", 5), other).empty()); // unknown is not the same
    CHECK(canary(plain, other).empty());               // nor on both sides
    CHECK(canary(code(plain, "x", 5), code(other, "x", 4)).empty());
    CHECK(canary(code(plain, "x", 5), code(code(other, "x", 5), "y", 1)).empty());
    auto skipped = other;
    skipped.results[0].what.metric = "throughput"; // only the time is the measure
    auto base = plain;
    base.results[0].what.metric = "throughput";
    CHECK(canary(base, skipped).empty());
}

TEST_CASE("boards: what follows the factor") {
    plumbline::workload::description what;
    const compare::policy p;
    CHECK_FALSE(compare::is_compute_bound(what, {}, p));
    what.bytes = 10;
    CHECK_FALSE(compare::is_compute_bound(what, {}, p));
    what.flop = 1000;
    CHECK(compare::is_compute_bound(what, {}, p));
    what.flop = 999;
    CHECK_FALSE(compare::is_compute_bound(what, {}, p));
    what.bytes = 0;
    CHECK(compare::is_compute_bound(what, {}, p));
    CHECK_FALSE(compare::is_compute_bound(what, false, p));
    what.flop = 0;
    CHECK(compare::is_compute_bound(what, true, p));
    // and through the policy's rules
    const auto base = board("b1", five, five, five);
    const auto other = board("b2", scaled(five, 1.02), scaled(five, 1.02), five);
    compare::policy rules;
    rules.rules.resize(2);
    rules.rules[0].match = "gemm";
    rules.rules[0].compute_bound = false;
    rules.rules[1].match = "copy";
    rules.rules[1].compute_bound = true;
    const auto got = compare::compare(base, other, rules);
    CHECK_FALSE(build::at(got, "gemm").has(marker::board_factor_removed));
    CHECK(build::at(got, "copy").has(marker::board_factor_removed));
}

TEST_CASE("boards: measured noise between days does not shrink what boards do") {
    auto base = board("b1", five, five, five);
    base.noise["gemm"].s_e = 0.0001;
    base.noise["gemm"].epochs = 5;
    base.noise["copy"].s_e = 0.03;
    base.noise["copy"].epochs = 5;
    const auto got = compare::compare(base, board("b2", five, five, five));
    CHECK(build::at(got, "gemm").used.s_e == 0.004);
    CHECK(build::at(got, "copy").used.s_e == 0.03);
}

TEST_CASE("boards: other hardware has no board factor") {
    auto base = board("b1", five, five, five);
    auto other = board("b2", five, five, five);
    for (auto* b : {&base, &other}) {
        result::attribute a;
        a.kind = result::attribute_class::identity;
        a.read = result::reading::of(std::string(b == &base ? "H100" : "H200"));
        b->environment.attributes["gpu"] = a;
    }
    CHECK(compare::compare(base, other).findings.at(0).outcome == verdict::incomparable);
    compare::policy allow;
    allow.allow_hardware_diff = true;
    CHECK_FALSE(compare::compare(base, other, allow).board);
    // The permission alone makes no hardware other.
    CHECK(compare::compare(board("b1", five, five, five), board("b2", five, five, five), allow).board);
}

TEST_CASE("control: the noise that the base measured counts, unless the control measured its own") {
    auto base = build::single(five);
    const std::string id = base.results[0].what.id;
    base.noise[id].s0 = 0.0123;
    base.noise[id].sessions = 12;
    auto control = build::single(five);
    const auto used = [&] { return compare::compare(base, build::single(five), control, {}).findings.at(0).used.s0; };
    CHECK(used() == 0.0123);
    control.noise[id] = base.noise[id];
    control.noise[id].s0 = 0.0345;
    CHECK(used() == 0.0345);
}

TEST_CASE("control: it is the reference, and tells that the base is out of date") {
    auto base = build::baseline(5);
    build::add(base, "a", five);
    build::add(base, "b", five);
    build::add(base, "c", five);
    auto control = build::baseline(5);
    build::add(control, "a", scaled(five, 1.1));
    build::add(control, "b", five);
    auto candidate = build::baseline(5);
    build::add(candidate, "a", scaled(five, 1.1));
    build::add(candidate, "b", scaled(five, 1.1));
    build::add(candidate, "c", scaled(five, 1.1));
    const auto got = compare::compare(base, candidate, control, {});
    CHECK(build::at(got, "a").outcome == verdict::equivalent);
    CHECK(build::at(got, "a").has(marker::baseline_drift));
    CHECK(build::at(got, "b").outcome == verdict::regressed);
    CHECK_FALSE(build::at(got, "b").has(marker::baseline_drift));
    CHECK(build::at(got, "c").outcome == verdict::regressed); // the control did not run it: against the base
    CHECK(build::at(got, "c").base.value.value() == 100);
    CHECK_FALSE(build::at(got, "c").has(marker::baseline_drift));
    CHECK(got.findings.size() == 3);
    REQUIRE_FALSE(got.notes.empty());
    CHECK(got.notes.back().find("in 1 results") != std::string::npos);
    const auto quiet = compare::compare(base, candidate, base, {});
    CHECK(build::at(quiet, "a").outcome == verdict::regressed);
    CHECK_FALSE(build::at(quiet, "a").has(marker::baseline_drift));
    for (const auto& note : quiet.notes) CHECK(note.find("control") == std::string::npos);
    build::add(base, "a", scaled(five, 3)).what.metric = "throughput"; // another metric of the same id
    CHECK(compare::compare(base, candidate, control, {}).findings.size() == 4);
    auto faster = control;
    faster.results[0].sessions = build::single(scaled(five, 0.9)).results[0].sessions;
    CHECK(build::at(compare::compare(base, candidate, faster, {}), "a").has(marker::baseline_drift));
}
