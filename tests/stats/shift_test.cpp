// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include "plumbline/stats/shift_test.hpp"

namespace stats = plumbline::stats;
using doctest::Approx;

TEST_CASE("shift: epochs are a level of their own") {
    CHECK(stats::epoch_term{0.02, 1, 1}.variance() == Approx(0.0008));
    CHECK(stats::epoch_term{0.02, 4, 2}.variance() == Approx(0.0003));
    CHECK(stats::epoch_term{0.02, 0, 1}.variance() == Approx(0.0008)); // nobody counted: one
    CHECK(stats::epoch_term{}.variance() == 0);
}

TEST_CASE("shift: moderated by hand") {
    // base 1 3, candidate 6 6 9: SS = 2 + 6 = 8, d = 3; prior 4 * 0.5^2 = 1; s^2 = 9/7
    const stats::prior known{0.5, 4, 0.01};
    const auto found = stats::moderated_shift({1, 3}, {6, 6, 9}, known, {0.3, 1, 2});
    CHECK(found.delta == 5);
    CHECK(found.s_pooled == Approx(std::sqrt(8.0 / 3)));
    CHECK(found.s == Approx(std::sqrt(9.0 / 7)));
    CHECK(found.df == 7);
    CHECK(found.se == Approx(std::sqrt(9.0 / 7 * (1.0 / 2 + 1.0 / 3) + 0.09 * 1.5)));
    CHECK(found.p_greater() == Approx(stats::t_upper_tail(5 / found.se, 7)));
    CHECK(found.p_less() == Approx(1 - found.p_greater()));
    CHECK(found.half_width(0.9) == Approx(stats::t_upper_quantile(0.05, 7) * found.se));
    CHECK(found.half_width(0.95) == Approx(stats::t_upper_quantile(0.025, 7) * found.se));
}

TEST_CASE("shift: one session a side leans on the prior, equal sessions on the floor") {
    const auto single = stats::moderated_shift({1}, {2}, {0.1, 4, 0.01});
    CHECK(single.s_pooled == 0);
    CHECK(single.s == Approx(0.1));
    CHECK(single.df == 4);
    const auto constant = stats::moderated_shift({1, 1}, {1, 1}, {0, 4, 0.01});
    CHECK(constant.s == 0.01);
    CHECK(constant.se == Approx(0.01));
    const auto above = stats::moderated_shift({1, 1}, {1, 1}, {0.1, 4, 0.01});
    CHECK(above.s == Approx(std::sqrt(4 * 0.01 / 6)));
}

TEST_CASE("shift: an estimated epoch term brings its own degrees of freedom") {
    // s^2 = 1 with df = 4 + 2, se^2 within = 1, between = 0.5 * 2 = 1 with df 3: (1 + 1)^2 / (1/6 + 1/3) = 8
    const stats::prior known{1, 4, 0.01};
    const double root = std::sqrt(0.5);
    const auto found = stats::moderated_shift({-root, root}, {-root, root}, known, {root, 1, 1, 3});
    CHECK(found.s == Approx(1));
    CHECK(found.se == Approx(std::sqrt(2.0)));
    CHECK(found.df == Approx(8));
    CHECK(stats::moderated_shift({-root, root}, {-root, root}, known, {root, 1, 1, 0}).df == 6);
    CHECK(stats::moderated_shift({-root, root}, {-root, root}, known, {0, 1, 1, 3}).df == 6);
    // One degree of freedom is little, but some: (1 + 1)^2 / (1/6 + 1/1)
    CHECK(stats::moderated_shift({-root, root}, {-root, root}, known, {root, 1, 1, 1}).df == Approx(24.0 / 7));
    // The same in another unit: degrees of freedom have none.
    const double small = root * 1e-3;
    const stats::prior known_small{1e-3, 4, 1e-5};
    CHECK(stats::moderated_shift({-small, small}, {-small, small}, known_small, {small, 1, 1, 3}).df == Approx(8));
    // Nearly all of the error from three epochs: not much more sure than those.
    CHECK(stats::moderated_shift({-root, root}, {-root, root}, known, {100, 1, 1, 3}).df == Approx(3).epsilon(1e-3));
}

TEST_CASE("shift: paired rounds") {
    // differences 1 2 6: SS 14, d 2; prior for weight 2: s0^2 * 2 = 0.5, d0 4: s^2 = (2 + 14) / 6
    const auto found = stats::moderated_paired_shift({1, 2, 6}, {0.5, 4, 0.01}, 2);
    CHECK(found.delta == 3);
    CHECK(found.df == 6);
    CHECK(found.s == Approx(std::sqrt(16.0 / 6)));
    CHECK(found.se == Approx(std::sqrt(16.0 / 6 / 3)));
    CHECK(found.s_pooled == Approx(std::sqrt(7.0)));
    const auto floor = stats::moderated_paired_shift({1, 1}, {0, 4, 0.01}, 4);
    CHECK(floor.s == Approx(0.02)); // the floor is that of one session, too
}

TEST_CASE("shift: Welch by hand") {
    // variances 2 (n 2) and 7 (n 3): 1 and 7/3; df = (10/3)^2 / (1/1 + (49/9)/2)
    const auto found = stats::welch_shift({1, 3}, {1, 2, 6});
    CHECK(found.delta == 1);
    CHECK(found.se == Approx(std::sqrt(1 + 7.0 / 3)));
    CHECK(found.df == Approx(100.0 / 9 / (1 + 49.0 / 18)));
}

TEST_CASE("shift: equivalence") {
    stats::shift found;
    found.delta = 0.01;
    found.se = 0.01;
    found.df = 10;
    const auto test = stats::tost(found, 0.03);
    CHECK(test.p_lower == Approx(stats::t_upper_tail(4, 10)));
    CHECK(test.p_upper == Approx(stats::t_upper_tail(2, 10)));
    CHECK(test.p == test.p_upper);
    found.delta = -0.01;
    CHECK(stats::tost(found, 0.03).p == Approx(stats::t_upper_tail(2, 10)));
}

TEST_CASE("shift: what could be detected, and with how many sessions") {
    const double t1 = stats::t_upper_quantile(0.01, 12);
    const double t2 = stats::t_upper_quantile(0.2, 12);
    CHECK(stats::detectable_shift(0.5, 12, 0.01, 1) == Approx((t1 + t2) * 0.5));
    CHECK(stats::detectable_shift(0.5, 12, 0.01, 0) == Approx((t1 + t2) * 0.5));
    CHECK(stats::detectable_shift(1, 12, 0.01, 50) == Approx(stats::t_upper_quantile(0.0002, 12) + t2));

    const auto needed = [](double wanted, const stats::session_precision& one, std::size_t most = 1000) {
        return stats::sessions_to_detect(wanted, one, 0.01, 1, stats::t_upper_quantile, most);
    };
    const stats::session_precision one{0.01, 0, 4};
    const auto shift_with = [&](std::size_t k) {
        const double sessions = static_cast<double>(k);
        return stats::detectable_shift(std::sqrt(2 * 1e-4 / sessions), 4 + 2 * sessions - 2, 0.01, 1);
    };
    const auto k = needed(0.02, one);
    REQUIRE(k);
    CHECK(shift_with(*k) <= 0.02);
    CHECK(shift_with(*k - 1) > 0.02);
    CHECK(needed(1, one) == std::size_t{1});
    CHECK(needed(shift_with(7), one) == std::size_t{7}); // exactly enough is enough
    CHECK_FALSE(needed(0.02, {0.01, 1e-2, 4}));          // the epochs alone are too restless
    CHECK_FALSE(needed(0.0001, one, 10));
    CHECK(needed(shift_with(10), one, 10) == std::size_t{10});
    CHECK(stats::sessions_to_detect(shift_with(1000), one, 0.01, 1, stats::t_upper_quantile) == std::size_t{1000});
    CHECK_FALSE(stats::sessions_to_detect(shift_with(1001), one, 0.01, 1, stats::t_upper_quantile));
    CHECK(needed(10, {0.01, 0, 0}) == std::size_t{2}); // without a prior one session has no degree of freedom
    const auto with_epochs = needed(0.02, {0.01, 1e-6, 4});
    REQUIRE(with_epochs);
    CHECK(*with_epochs >= *k);
}

TEST_CASE("shift: what nobody set claims nothing") {
    const stats::prior known;
    CHECK(known.s0 == 0);
    CHECK(known.d0 == 0);
    CHECK(known.floor == 0);
    const stats::epoch_term epochs;
    CHECK(epochs.s_e == 0);
    CHECK(epochs.base_epochs == 1);
    CHECK(epochs.candidate_epochs == 1);
    CHECK(epochs.df == 0);
    const stats::shift found;
    CHECK(found.delta == 0);
    CHECK(found.s_pooled == 0);
    CHECK(found.s == 0);
    CHECK(found.se == 0);
    CHECK(found.df == 0);
    CHECK(stats::welch_shift({1, 3}, {1, 3}).s == 0);
    const stats::equivalence_test test;
    CHECK(test.p_lower == 1);
    CHECK(test.p_upper == 1);
    CHECK(test.p == 1);
    const stats::session_precision one;
    CHECK(one.s == 0);
    CHECK(one.epoch_variance == 0);
    CHECK(one.d0 == 0);
}
