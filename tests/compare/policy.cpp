// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "build.hpp"
#include "plumbline/compare/noise.hpp"

namespace compare = plumbline::compare;
namespace result = plumbline::result;
using plumbline::benchmark_class;

TEST_CASE("policy: the defaults are those of the design") {
    const compare::policy p;
    const auto& kernel = p.classes.at("kernel");
    CHECK(kernel.s0 == 0.0015);
    CHECK(kernel.s0_short == 0.004);
    CHECK(kernel.s_e == 0.002);
    CHECK(kernel.s_e_board == 0.004);
    CHECK(kernel.margin == 0.015);
    CHECK(kernel.margin_interleaved == 0.003);
    const auto plain = [&](const char* name, double s0, double s_e, double margin) {
        const auto& c = p.classes.at(name);
        CHECK(c.s0 == s0);
        CHECK(c.s_e == s_e);
        CHECK(c.margin == margin);
        CHECK_FALSE(c.s0_short);
        CHECK_FALSE(c.s_e_board);
    };
    plain("sustained", 0.02, 0.02, 0.07);
    plain("training_step", 0.01, 0.01, 0.05);
    plain("cpu_kernel", 0.02, 0.02, 0.10);
    plain("dataloader", 0.08, 0.06, 0.25);
    plain("host", 0.08, 0.06, 0.25);
    plain("imported", 0.01, 0.005, 0.03);
    CHECK(p.classes.size() == 7);
    CHECK(p.classes.at("dataloader").margin_interleaved == 0.10);
    for (const auto& [name, c] : p.classes) CHECK(c.advisory == (name == "dataloader" || name == "host"));
    CHECK(p.q == 0.01);
    CHECK(p.d0 == 4);
    CHECK(p.floor == 0.0005);
    CHECK(p.alpha_equivalence == 0.05);
    CHECK(p.alpha_rank == 0.05);
    CHECK(p.rank_minimum == 5);
    CHECK(p.suspicious_speedup == 2);
    CHECK(p.limit_tolerance == 1.1);
    CHECK(p.board_factor_limit == 0.03);
    CHECK(p.board_spread == 0.012);
    CHECK(p.compute_intensity == 100);
    CHECK(p.common_mode_share == 0.8);
    CHECK(p.common_mode_minimum == 5);
    CHECK(p.short_below_ns == 20000);
    CHECK(p.resolution_s == 0);
    CHECK(p.foreign_load_is_invalid);
    CHECK_FALSE(p.throttled_is_invalid);
    CHECK_FALSE(p.strict);
    CHECK_FALSE(p.allow_hardware_diff);
    const compare::class_policy unknown;
    CHECK(unknown.s0 == 0.01);
    CHECK(unknown.s_e == 0.005);
    CHECK(unknown.margin == 0.03);
    CHECK_FALSE(unknown.advisory);
}

TEST_CASE("policy: nonsense is refused") {
    compare::validate({});
    const auto refused = [](const std::function<void(compare::policy&)>& spoil, const std::string& name) {
        compare::policy p;
        spoil(p);
        INFO(name);
        CHECK_THROWS_WITH_AS(compare::validate(p), doctest::Contains(name.c_str()), plumbline::usage_error);
    };
    for (const double bad : {0.0, 1.0, -1.0, 2.0}) {
        refused([&](auto& p) { p.q = bad; }, "q must");
        refused([&](auto& p) { p.alpha_equivalence = bad; }, "alpha_equivalence");
        refused([&](auto& p) { p.alpha_rank = bad; }, "alpha_rank");
    }
    for (const double bad : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
        refused([&](auto& p) { p.d0 = bad; }, "d0");
        refused([&](auto& p) { p.floor = bad; }, "floor");
        refused([&](auto& p) { p.classes["host"].margin = bad; }, "classes.host.margin");
        refused([&](auto& p) { p.classes["host"].margin_interleaved = bad; }, "classes.host.margin_interleaved");
    }
    refused([](auto& p) { p.suspicious_speedup = 1; }, "suspicious_speedup");
    refused([](auto& p) { p.resolution_s = -1; }, "resolution_s");
    refused([](auto& p) { p.classes["host"].s0 = -1; }, "classes.host.s0");
    refused([](auto& p) { p.classes["host"].s0_short = -1; }, "classes.host.s0");
    refused([](auto& p) { p.classes["host"].s_e = -1; }, "classes.host.s_e");
    refused([](auto& p) { p.classes["host"].s_e_board = -1; }, "classes.host.s_e");
    compare::rule r;
    r.match = "gemm/*";
    r.margin = 0;
    refused([&](auto& p) { p.rules = {r}; }, "rules[gemm/*].margin");
    r.margin = 0.01;
    r.s0 = -1;
    refused([&](auto& p) { p.rules = {r}; }, "rules[gemm/*].s0");
    r.s0 = 0;
    r.s_e = -1;
    refused([&](auto& p) { p.rules = {r}; }, "rules[gemm/*].s0");
    compare::policy zero; // no noise is a belief one may have: the floor remains
    zero.classes["host"].s0 = 0;
    zero.classes["host"].s0_short = 0;
    zero.classes["host"].s_e = 0;
    zero.classes["host"].s_e_board = 0;
    r.s_e = 0;
    zero.rules = {r};
    compare::validate(zero);
}

TEST_CASE("policy: globs") {
    using compare::glob_matches;
    CHECK(glob_matches("", ""));
    CHECK_FALSE(glob_matches("", "a"));
    CHECK_FALSE(glob_matches("a", ""));
    CHECK(glob_matches("*", ""));
    CHECK(glob_matches("*", "gemm/bf16/tn"));
    CHECK(glob_matches("gemm/*", "gemm/bf16/tn"));
    CHECK_FALSE(glob_matches("gemm/*", "xgemm/bf16"));
    CHECK(glob_matches("*/tn", "gemm/bf16/tn"));
    CHECK_FALSE(glob_matches("*/tn", "gemm/bf16/tn/best"));
    CHECK(glob_matches("gemm/*/m*", "gemm/bf16/tn/m4096"));
    CHECK(glob_matches("a?c", "abc"));
    CHECK_FALSE(glob_matches("a?c", "ac"));
    CHECK(glob_matches("*ab", "aab")); // the star must give back
    CHECK(glob_matches("*aab*b", "aaabxb"));
    CHECK_FALSE(glob_matches("*aab*b", "aaabx"));
    CHECK(glob_matches("a**b", "ab"));
    CHECK(glob_matches("ab*", "ab"));
    CHECK(glob_matches("ab**", "ab"));
    CHECK_FALSE(glob_matches("abc", "ab"));
    const std::string hostile(2000, 'a');
    CHECK_FALSE(glob_matches("*a*a*a*a*a*a*a*a*b", hostile)); // at once, not after the age of the universe
}

TEST_CASE("policy: later rules win, field by field") {
    compare::policy p;
    compare::rule first;
    first.match = "gemm/*";
    first.margin = 0.1;
    first.s0 = 0.2;
    first.required = false;
    first.compute_bound = true;
    first.resolution = 3;
    compare::rule second;
    second.match = "gemm/bf16/*";
    second.margin = 0.5;
    second.s_e = 0.3;
    second.advisory = true;
    compare::rule other;
    other.match = "*";
    other.metric = "throughput";
    other.margin = 9;
    p.rules = {first, second, other};
    const auto both = compare::rules_for(p, "gemm/bf16/tn", "time");
    CHECK(both.margin == 0.5);
    CHECK(both.s0 == 0.2);
    CHECK(both.s_e == 0.3);
    CHECK(both.required == false);
    CHECK(both.advisory == true);
    CHECK(both.compute_bound == true);
    CHECK(both.resolution == 3);
    CHECK(compare::rules_for(p, "gemm/fp16/tn", "time").margin == 0.1);
    CHECK_FALSE(compare::rules_for(p, "conv", "time").margin);
    CHECK(compare::rules_for(p, "conv", "throughput").margin == 9);
}

TEST_CASE("policy: classes and noise keys") {
    result::result r;
    r.backend = "cuda";
    const auto name = [&](benchmark_class kind, const char* backend) {
        r.what.kind = kind;
        r.backend = backend;
        return compare::class_name(r);
    };
    CHECK(name(benchmark_class::kernel, "cuda") == "kernel");
    CHECK(name(benchmark_class::kernel, "cpu") == "cpu_kernel");
    CHECK(name(benchmark_class::sustained, "cpu") == "cpu_kernel");
    CHECK(name(benchmark_class::training_step, "cpu") == "cpu_kernel");
    CHECK(name(benchmark_class::training_step, "cuda") == "training_step");
    CHECK(name(benchmark_class::dataloader, "cpu") == "dataloader");
    CHECK(name(benchmark_class::host, "cpu") == "host");
    CHECK(name(benchmark_class::imported, "cpu") == "imported");
    CHECK(compare::noise_key("a", "time") == "a");
    CHECK(compare::noise_key("a", "throughput") == "a#throughput");
    const compare::policy p;
    CHECK(compare::class_rules(p, "kernel").margin == 0.015);
    CHECK(compare::class_rules(p, "nonsense").margin == 0.03);
}
