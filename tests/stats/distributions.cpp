// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "plumbline/stats/distributions.hpp"

namespace stats = plumbline::stats;
using doctest::Approx;

namespace {

Approx to(double v) {
    return Approx(v).epsilon(1e-11);
}

} // namespace

TEST_CASE("distributions: incomplete beta in closed form") {
    // I_x(1, b) = 1 - (1-x)^b, I_x(a, 1) = x^a, I_x(2, 2) = 3x^2 - 2x^3
    for (const double x : {0.01, 0.2, 0.5, 0.8, 0.99}) {
        CHECK(stats::incomplete_beta(1, 3, x, 1 - x) == to(1 - std::pow(1 - x, 3)));
        CHECK(stats::incomplete_beta(4, 1, x, 1 - x) == to(std::pow(x, 4)));
        CHECK(stats::incomplete_beta(2, 2, x, 1 - x) == to(3 * x * x - 2 * x * x * x));
    }
    CHECK(stats::incomplete_beta(2, 3, 0, 1) == 0);
    CHECK(stats::incomplete_beta(2, 3, 1, 0) == 1);
    // A large parameter needs many terms: I_1/2(a, a) = 1/2 for every a.
    CHECK(stats::incomplete_beta(4e4, 4e4, 0.5, 0.5) == Approx(0.5).epsilon(1e-9));
    // b = 1 makes terms of the fraction vanish, and a < 1 is allowed.
    CHECK(stats::incomplete_beta(0.5, 1, 0.09, 0.91) == to(0.3));
    // The point where the fraction is swapped for its mirror image must not be a step.
    const double at = 3.0 / 6.0; // (a + 1) / (a + b + 2) for a = b = 2
    CHECK(stats::incomplete_beta(2, 2, at - 1e-12, 1 - at + 1e-12) == to(0.5));
    CHECK(stats::incomplete_beta(2, 2, at + 1e-12, 1 - at - 1e-12) == to(0.5));
}

TEST_CASE("distributions: Student's t in closed form") {
    // df 1: 1/2 - atan(t)/pi; df 2: (1 - t / sqrt(2 + t^2)) / 2
    for (const double t : {0.0, 0.3, 1.0, 4.0, 50.0}) {
        CHECK(stats::t_upper_tail(t, 1) == Approx(0.5 - std::atan(t) / std::acos(-1.0)).epsilon(1e-10));
        CHECK(stats::t_upper_tail(t, 2) == Approx((1 - t / std::sqrt(2 + t * t)) / 2).epsilon(1e-9));
        CHECK(stats::t_upper_tail(-t, 2) == Approx((1 + t / std::sqrt(2 + t * t)) / 2).epsilon(1e-11));
        CHECK(stats::t_cdf(t, 2) == Approx((1 + t / std::sqrt(2 + t * t)) / 2).epsilon(1e-11));
    }
    CHECK(stats::t_upper_tail(1e200, 3) == 0);
    CHECK(stats::t_upper_tail(-1e200, 3) == 1);
    CHECK(std::isnan(stats::t_upper_tail(stats::nan, 3)));
    // A tail far out keeps its digits: 2 / (sqrt(2 + t^2) (sqrt(2 + t^2) + t)) / 2 for df 2, about 1 / (2 t^2).
    CHECK(stats::t_upper_tail(1e8, 2) == Approx(0.5e-16).epsilon(1e-9));
    // Fractions of a degree of freedom are allowed; the normal distribution is the limit.
    CHECK(stats::t_upper_tail(1.959963984540054, 1e6) == Approx(0.025).epsilon(1e-5));
}

TEST_CASE("distributions: quantiles of Student's t") {
    CHECK(stats::t_upper_quantile(0.5, 5) == 0);
    CHECK(stats::t_quantile(0.5, 5) == 0);
    CHECK(stats::t_upper_quantile(0.25, 1) == to(1)); // tan(pi/4)
    CHECK(stats::t_quantile(0.75, 1) == to(1));
    CHECK(stats::t_quantile(0.25, 1) == to(-1));
    CHECK(stats::t_upper_quantile(0.9, 2) == Approx(-0.8 * std::sqrt(2.0 / (1 - 0.64))).epsilon(1e-9));
    CHECK(stats::t_upper_quantile(1e-9, 1) == Approx(1 / (std::acos(-1.0) * 1e-9)).epsilon(1e-9));
    for (const double bad : {0.0, 1.0, -0.1, 1.1, stats::nan}) CHECK(std::isnan(stats::t_upper_quantile(bad, 5)));
    for (const double q : {0.4999999, 0.3, 0.01, 1e-6, 1e-12}) {
        for (const double df : {1.0, 2.5, 12.0, 300.0}) {
            CHECK(stats::t_upper_tail(stats::t_upper_quantile(q, df), df) == Approx(q).epsilon(1e-11));
        }
    }
}

TEST_CASE("distributions: normal") {
    CHECK(stats::normal_upper_tail(0) == 0.5);
    CHECK(stats::normal_upper_tail(1) == to(0.15865525393145707));
    CHECK(stats::normal_upper_tail(-1) == to(0.8413447460685429));
    CHECK(stats::normal_quantile(0.5) == 0);
    CHECK(stats::normal_quantile(0.8413447460685429) == to(1));
    CHECK(stats::normal_quantile(0.15865525393145707) == to(-1));
    for (const double bad : {0.0, 1.0, -1.0, 2.0}) CHECK(std::isnan(stats::normal_quantile(bad)));
}

TEST_CASE("distributions: binomial tails and bounds") {
    CHECK(stats::binomial_upper_tail(0, 5, 0.3) == 1);
    CHECK(stats::binomial_upper_tail(6, 5, 0.3) == 0);
    CHECK(stats::binomial_upper_tail(5, 5, 0.3) == to(std::pow(0.3, 5)));
    CHECK(stats::binomial_upper_tail(1, 5, 0.3) == to(1 - std::pow(0.7, 5)));
    CHECK(stats::binomial_upper_tail(2, 3, 0.5) == to(0.5));
    CHECK(stats::binomial_upper_bound(0, 300) == to(1 - std::pow(0.05, 1.0 / 300))); // the rule of three
    CHECK(stats::binomial_upper_bound(0, 300, 0.99) == to(1 - std::pow(0.01, 1.0 / 300)));
    CHECK(stats::binomial_upper_bound(3, 3) == 1);
    CHECK(stats::binomial_upper_bound(1, 2) == to(std::sqrt(0.95))); // 1 - p^2 = 5 %
}

TEST_CASE("distributions: sign test and Fisher's exact test") {
    CHECK(stats::sign_test(0, 0) == 1);
    CHECK(stats::sign_test(3, 3) == 1);
    CHECK(stats::sign_test(5, 0) == to(2.0 / 32));
    CHECK(stats::sign_test(0, 5) == to(2.0 / 32));
    CHECK(stats::sign_test(4, 1) == to(12.0 / 32));
    CHECK(stats::fisher_exact(2, 5, 4, 5) == Approx(0.523809523809524).epsilon(1e-9)); // scipy.stats.fisher_exact
    CHECK(stats::fisher_exact(5, 5, 0, 5) == Approx(2.0 / 252).epsilon(1e-9));
    CHECK(stats::fisher_exact(0, 5, 5, 5) == Approx(2.0 / 252).epsilon(1e-9));
    CHECK(stats::fisher_exact(3, 4, 1, 9) == Approx(0.0517482517482517).epsilon(1e-9));
    CHECK(stats::fisher_exact(0, 4, 0, 9) == Approx(1));
    CHECK(stats::fisher_exact(4, 4, 2, 3) == Approx(0.428571428571429).epsilon(1e-9));
    CHECK(stats::fisher_exact(9, 10, 2, 3) == Approx(0.423076923076923).epsilon(1e-9));
}
