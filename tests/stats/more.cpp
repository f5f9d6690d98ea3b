// SPDX-License-Identifier: Apache-2.0
// Adjustment, modes, hierarchy and rounds.
#include <cmath>

#include <doctest/doctest.h>

#include "plumbline/stats/bimodality.hpp"
#include "plumbline/stats/hierarchy.hpp"
#include "plumbline/stats/multiplicity.hpp"
#include "plumbline/stats/paired.hpp"

namespace stats = plumbline::stats;
using doctest::Approx;
using values = std::vector<double>;

TEST_CASE("multiplicity: order is kept and the result is monotone") {
    const auto bh = stats::benjamini_hochberg({0.5, 0.01, 0.04});
    CHECK(bh[0] == Approx(0.5));
    CHECK(bh[1] == Approx(0.03));
    CHECK(bh[2] == Approx(0.06));
    const auto by = stats::benjamini_yekutieli({0.01, 0.02});
    CHECK(by[0] == Approx(0.03)); // 0.02 * 2/2 * 1.5
    CHECK(by[1] == Approx(0.03));
    CHECK(stats::benjamini_hochberg({}).empty());
    CHECK(stats::benjamini_hochberg({0.7}) == values{0.7});
    CHECK(stats::benjamini_yekutieli({0.9, 0.95}) == values{1, 1});
}

TEST_CASE("bimodality: what two modes are") {
    const auto found = stats::find_two_modes({10.2, 10.0, 20.1, 10.1, 20.0}, 1, 0.001);
    REQUIRE(found);
    CHECK(found->low == 10.1);
    CHECK(found->high == 20.05);
    CHECK(found->low_count == 3);
    CHECK(found->high_count == 2);
    CHECK(found->threshold == Approx(15.1));
    CHECK_FALSE(stats::find_two_modes({10.2, 10.0, 20.1, 20.0}, 1, 0.001));       // four are too few
    CHECK_FALSE(stats::find_two_modes({10.2, 10.0, 10.1, 10.3, 20.0}, 1, 0.001)); // one is an outlier, not a mode
    CHECK_FALSE(stats::find_two_modes({20.2, 20.0, 20.1, 20.3, 10.0}, 1, 0.001));
    CHECK_FALSE(stats::find_two_modes({10.2, 10.0, 20.1, 10.1, 20.0}, 9.96, 0.001)); // apart by less than asked
    CHECK(stats::find_two_modes({10.2, 10.0, 20.1, 10.1, 20.0}, 9.95, 0.001));       // exactly is enough
    CHECK_FALSE(stats::find_two_modes({10.2, 10.0, 20.1, 10.1, 20.0}, 1, 1.66));     // 6 floors are 9.96
    CHECK(stats::find_two_modes({10.2, 10.0, 20.1, 10.1, 20.0}, 1, 1.65));
    CHECK_FALSE(stats::find_two_modes({1, 2, 3, 4, 5, 6}, 1, 0.001)); // a spread, not two heaps
    CHECK_FALSE(stats::find_two_modes({5, 5, 5, 5, 5}, 0, 0.001));
}

TEST_CASE("bimodality: six standard deviations and 15 per cent") {
    // Groups {0, 2, 4} and {x, x+2, x+4}: SS = 8 + 8, df 4, sd 2, so the medians must be 12 apart.
    CHECK(stats::find_two_modes({0, 2, 4, 12, 14, 16}, 1, 0.001));
    CHECK_FALSE(stats::find_two_modes({0, 2, 4, 11.9, 13.9, 15.9}, 1, 0.001));
    values many(12, 1.0);
    many.push_back(9);
    many.push_back(9); // 2 of 14 are 14 %
    CHECK_FALSE(stats::find_two_modes(many, 1, 0.001));
    many.pop_back();
    many.erase(many.begin());
    many.push_back(9); // 2 of 13 are 15.4 %
    REQUIRE(many.size() == 13);
    CHECK(stats::find_two_modes(many, 1, 0.001));
    values twenty(17, 1.0);
    twenty.insert(twenty.end(), 3, 9.0); // exactly 15 %
    CHECK(stats::find_two_modes(twenty, 1, 0.001));
}

TEST_CASE("hierarchy: two levels by hand") {
    // sessions {1, 3} and {5, 9}: means 2 and 7, variances 2 and 8
    const auto found = stats::kalibera({{1, 3}, {5, 9}});
    CHECK(found.mean == 4.5);
    CHECK(found.s1_squared == 5);
    CHECK(found.s2_squared == 12.5);
    CHECK(found.t2_squared == 10);
    CHECK(found.half_width == Approx(stats::t_upper_quantile(0.025, 1) * 2.5));
    CHECK(stats::kalibera({{1, 3}, {5, 9}}, 0.5).half_width == Approx(2.5)); // t(0.25, 1) = 1
    CHECK(std::isnan(stats::kalibera({{1, 3}}).mean));
    CHECK(std::isnan(stats::kalibera({{1}, {2}}).mean));
    CHECK(std::isnan(stats::kalibera({}).mean));
}

TEST_CASE("hierarchy: Fieller's interval") {
    stats::two_level base, candidate;
    base.mean = 10;
    base.half_width = 0;
    candidate.mean = 20;
    candidate.half_width = 2;
    const auto exact_base = stats::ratio_interval(base, candidate); // (200 -+ sqrt(40000 - 100 * 396)) / 100
    CHECK(exact_base.first == Approx(1.8));
    CHECK(exact_base.second == Approx(2.2));
    base.half_width = 10;
    CHECK(std::isnan(stats::ratio_interval(base, candidate).first)); // the base may be zero
    CHECK(std::isnan(stats::ratio_interval(base, candidate).second));
    base.half_width = 6; // 64: (200 -+ sqrt(40000 - 64 * 396)) / 64
    CHECK(stats::ratio_interval(base, candidate).second == Approx((200 + std::sqrt(40000 - 64 * 396.0)) / 64));
}

TEST_CASE("hierarchy: noise within and between epochs") {
    const auto found = stats::estimate_noise({{1, 3}, {5, 9}, {}, {4}});
    CHECK(found.epochs == 3);
    CHECK(found.sessions == 5);
    CHECK(found.df == 2);
    CHECK(found.s0 == Approx(std::sqrt(5.0))); // (2 + 8) / 2
    // means 2 7 4: variance 19/3; explained 5 * (1/2 + 1/2 + 1) / 3
    CHECK(found.s_e == Approx(std::sqrt(19.0 / 3 - 10.0 / 3)));
    const auto steady = stats::estimate_noise({{1, 3}, {1, 3}});
    CHECK(steady.s_e == 0); // less than the sessions explain
    const auto single = stats::estimate_noise({{1, 2, 6}});
    CHECK(single.s0 == Approx(std::sqrt(7.0)));
    CHECK(std::isnan(single.s_e));
    const auto lonely = stats::estimate_noise({{1}, {3}});
    CHECK(std::isnan(lonely.s0));
    CHECK(lonely.s_e == Approx(std::sqrt(2.0)));
    CHECK(lonely.df == 0);
    CHECK(std::isnan(stats::estimate_noise({}).s0));
}

TEST_CASE("hierarchy: a cautious estimate") {
    CHECK(stats::cautious_deviation(0, 2, 3, 4) == Approx(std::sqrt(4 * 9 / 6.0)));
    CHECK(stats::cautious_deviation(3, 2, 3, 4) == Approx(3));
    CHECK(stats::cautious_deviation(5, 2, 3, 4) == 5); // believed as seen
    CHECK(stats::cautious_deviation(2, 12, 3, 4) == Approx(std::sqrt((36 + 48) / 16.0)));
}

TEST_CASE("paired: incomplete rounds are left out") {
    const auto found = stats::difference_rounds({{{1, 3}, {5, 7}}, {{1}, {}}, {{}, {1}}, {{2}, {1}}});
    CHECK(found.values == values{4, -1});
    CHECK(found.weight == Approx((1 + 2) / 2.0));
    CHECK(stats::difference_rounds({}).weight == 0);
    CHECK(stats::difference_rounds({{{1, 1, 1, 1}, {2}}}).weight == Approx(1.25));
}

TEST_CASE("more: what nobody found is empty") {
    const stats::two_modes modes;
    CHECK(modes.threshold == 0);
    CHECK(modes.low == 0);
    CHECK(modes.high == 0);
    CHECK(modes.low_count == 0);
    CHECK(modes.high_count == 0);
    const stats::noise_estimate noise;
    CHECK(noise.df == 0);
    CHECK(noise.sessions == 0);
    CHECK(noise.epochs == 0);
    CHECK(std::isnan(noise.s0));
    CHECK(std::isnan(noise.s_e));
    CHECK(stats::paired_differences{}.weight == 0);
}
