// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "plumbline/stats/ranks.hpp"

namespace stats = plumbline::stats;
using doctest::Approx;
using values = std::vector<double>;
using sizes = std::vector<std::size_t>;

namespace {

values sequence(std::size_t n, double start, double step = 1) {
    values v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = start + step * static_cast<double>(i);
    return v;
}

} // namespace

TEST_CASE("ranks: doubled midranks") {
    CHECK(stats::detail::doubled_midranks({}) == sizes{});
    CHECK(stats::detail::doubled_midranks({30, 10, 20}) == sizes{6, 2, 4});
    CHECK(stats::detail::doubled_midranks({5, 5, 1}) == sizes{5, 5, 2}); // ranks 2.5, 2.5, 1
    CHECK(stats::detail::doubled_midranks({7, 7, 7}) == sizes{4, 4, 4});
    CHECK(stats::detail::tie_term({2, 4, 6}) == 0);
    CHECK(stats::detail::tie_term({5, 2, 5}) == 6);     // 8 - 2
    CHECK(stats::detail::tie_term({4, 9, 4, 4}) == 24); // 27 - 3
    CHECK(stats::detail::tie_term({}) == 0);
}

TEST_CASE("ranks: counts of subset sums") {
    // two of {1, 2, 3}: 3, 4, 5; one of them: 1, 2, 3; none: 0
    CHECK(stats::detail::subset_sums({1, 2, 3}, 2) == values{0, 0, 0, 1, 1, 1, 0});
    CHECK(stats::detail::subset_sums({1, 2, 3}, 1) == values{0, 1, 1, 1, 0, 0, 0});
    CHECK(stats::detail::subset_sums({1, 2, 3}, 0) == values{1, 0, 0, 0, 0, 0, 0});
    CHECK(stats::detail::subset_sums({1, 2, 3}, 3) == values{0, 0, 0, 0, 0, 0, 1});
    CHECK(stats::detail::subset_sums({2, 2, 5}, 2) == values{0, 0, 0, 0, 1, 0, 0, 2, 0, 0});
}

TEST_CASE("ranks: Mann-Whitney by enumeration") {
    // 1 2 | 3: the candidate 3 has one of three places
    const auto small = stats::mann_whitney({1, 2}, {3});
    CHECK(small.exact);
    CHECK(small.u == 2);
    CHECK(small.p_greater == Approx(1.0 / 3));
    CHECK(small.p_less == 1);
    CHECK(small.p_two_sided == Approx(2.0 / 3));
    const auto mirrored = stats::mann_whitney({3}, {1, 2});
    CHECK(mirrored.u == 0);
    CHECK(mirrored.p_less == Approx(1.0 / 3));
    CHECK(mirrored.p_greater == 1);
    // ties: {1, 2} against {2, 3}: pooled midranks 1, 2.5, 2.5, 4; sums of two: 3.5 3.5 5 5 6.5 6.5; seen 6.5
    const auto tied = stats::mann_whitney({1, 2}, {2, 3});
    CHECK(tied.u == 3.5);
    CHECK(tied.p_greater == Approx(2.0 / 6));
    CHECK(tied.p_less == 1);
    CHECK(stats::mann_whitney({}, {1}).p_two_sided == 1);
    CHECK(stats::mann_whitney({1}, {}).p_greater == 1);
    CHECK(stats::mann_whitney({1}, {}).u == 0);
}

TEST_CASE("ranks: the normal approximation takes over for many values") {
    const auto exact = stats::mann_whitney(sequence(30, 0), sequence(30, 0.5));
    CHECK(exact.exact);
    const auto normal = stats::mann_whitney(sequence(31, 0), sequence(30, 0.5));
    CHECK_FALSE(normal.exact);
    CHECK(normal.p_greater == Approx(stats::mann_whitney_normal(sequence(31, 0), sequence(30, 0.5)).p_greater));
    // Where both can be had they agree.
    const auto approximate = stats::mann_whitney_normal(sequence(30, 0), sequence(30, 6.5));
    CHECK(approximate.p_greater ==
          Approx(stats::mann_whitney(sequence(30, 0), sequence(30, 6.5)).p_greater).epsilon(0.03));
    CHECK(approximate.p_less == Approx(stats::mann_whitney(sequence(30, 0), sequence(30, 6.5)).p_less).epsilon(0.03));
    // By hand: 2 against 2 with u = 4: mean 2, variance 2*2*5/12, continuity 1/2.
    const auto hand = stats::mann_whitney_normal({1, 2}, {3, 4});
    CHECK(hand.u == 4);
    CHECK(hand.p_greater == Approx(stats::normal_upper_tail(1.5 / std::sqrt(20.0 / 12))));
    CHECK(hand.p_less == Approx(stats::normal_upper_tail(-2.5 / std::sqrt(20.0 / 12))));
    CHECK(hand.p_two_sided == Approx(2 * hand.p_greater));
    // With ties the variance is n m / 12 (N + 1 - sum(t^3 - t) / (N (N - 1))).
    const auto ties = stats::mann_whitney_normal({1, 1}, {1, 2});
    CHECK(ties.u == 3); // 2 pairs won, 2 tied
    CHECK(ties.p_greater == Approx(stats::normal_upper_tail(0.5 / std::sqrt(4.0 / 12 * (5 - 24.0 / 12)))));
    CHECK(stats::mann_whitney_normal({1, 1}, {1, 1}).p_two_sided == 1);
}

TEST_CASE("ranks: smallest p that ranks can give") {
    CHECK(stats::smallest_rank_p(3, 5) == Approx(2.0 / 56));
    CHECK(stats::smallest_rank_p(5, 3) == Approx(2.0 / 56));
    CHECK(stats::smallest_rank_p(1, 1) == 1);
    CHECK(stats::smallest_rank_p(0, 4) == 1);
}

TEST_CASE("ranks: signed ranks by enumeration") {
    const auto all = stats::signed_rank({1, 2, 3, 4, 5});
    CHECK(all.exact);
    CHECK(all.u == 15);
    CHECK(all.p_greater == Approx(1.0 / 32));
    CHECK(all.p_less == 1);
    CHECK(all.p_two_sided == Approx(2.0 / 32));
    // -1 2 3: positive rank sum 5 of 6; sums >= 5 are 5 and 6: 2 of 8
    const auto mixed = stats::signed_rank({-1, 2, 3});
    CHECK(mixed.u == 5);
    CHECK(mixed.p_greater == Approx(2.0 / 8));
    CHECK(mixed.p_less == Approx(7.0 / 8));
    // ties: magnitudes 1, 1, 2 with ranks 1.5, 1.5, 3; signs + - +: 4.5; sums: 0 1.5 1.5 3 3 4.5 4.5 6
    const auto tied = stats::signed_rank({1, -1, 2});
    CHECK(tied.u == 4.5);
    CHECK(tied.p_greater == Approx(3.0 / 8));
    CHECK(tied.p_less == Approx(7.0 / 8));
    CHECK(stats::signed_rank({0, 0}).p_greater == 1);
    CHECK(stats::signed_rank({0, 3, 0}).p_greater == 0.5); // zeros are left out
    CHECK(stats::signed_rank({-3}).p_less == 0.5);
    CHECK(stats::signed_rank({}).p_two_sided == 1);
}

TEST_CASE("ranks: signed ranks of many values") {
    values sixty = sequence(60, 0.25);
    sixty[3] = -sixty[3];
    CHECK(stats::signed_rank(sixty).exact);
    values many = sequence(61, 0.25);
    for (std::size_t i = 0; i < many.size(); i += 2) many[i] = -many[i]; // negative ranks 1, 3, ..., 61 sum to 961
    const auto normal = stats::signed_rank(many);
    CHECK_FALSE(normal.exact);
    const double positive = 61 * 62 / 2 - 961;
    CHECK(normal.u == positive);
    const double sd = std::sqrt(61.0 * 62 * 123 / 24);
    CHECK(normal.p_greater == Approx(stats::normal_upper_tail((positive - 61.0 * 62 / 4 - 0.5) / sd)));
    CHECK(normal.p_less == Approx(stats::normal_upper_tail((61.0 * 62 / 4 - positive - 0.5) / sd)));
    // 61 equal magnitudes: variance loses (t^3 - t) / 48.
    values equal(61, 1.0);
    for (std::size_t i = 0; i < 20; ++i) equal[i] = -1;
    const double tied_sd = std::sqrt(61.0 * 62 * 123 / 24 - (61.0 * 61 * 61 - 61) / 48);
    CHECK(stats::signed_rank(equal).p_greater ==
          Approx(stats::normal_upper_tail((41 * 31.0 - 61.0 * 62 / 4 - 0.5) / tied_sd)));
}

TEST_CASE("ranks: Hodges-Lehmann") {
    const auto none = stats::hodges_lehmann({}, {1});
    CHECK(std::isnan(none.shift));
    CHECK_FALSE(none.range.exists());
    CHECK(stats::hodges_lehmann({1}, {4}).shift == 3);
    CHECK(stats::hodges_lehmann({1, 2}, {4}).shift == 2.5);  // differences 2, 3
    CHECK(stats::hodges_lehmann({1, 2, 6}, {4}).shift == 2); // -2, 2, 3
    // With a rank given: differences of {0, 10} and {1, 2} are -9 -8 1 2
    const auto ranked = stats::hodges_lehmann({0, 10}, {1, 2}, stats::shift_rank{2, 0.6});
    CHECK(ranked.shift == -3.5);
    CHECK(ranked.range.low == -8);
    CHECK(ranked.range.high == 1);
    CHECK(ranked.range.coverage == 0.6);
    CHECK(stats::hodges_lehmann({0, 10}, {1, 2}, stats::shift_rank{1, 0.7}).range.high == 2);
    CHECK_FALSE(stats::hodges_lehmann({0, 10}, {1, 2}, stats::shift_rank{}).range.exists());
}

TEST_CASE("ranks: rank of the Hodges-Lehmann interval") {
    CHECK(stats::hodges_lehmann_rank(0, 5).k == 0);
    CHECK(stats::hodges_lehmann_rank(5, 0).k == 0);
    // 1 against 1: P(U < 1) = 1/2 a side, never an interval at 95 %; at no confidence at all it is the one difference.
    CHECK(stats::hodges_lehmann_rank(1, 1).k == 0);
    CHECK(stats::hodges_lehmann_rank(1, 1, 0).k == 1);
    CHECK(stats::hodges_lehmann_rank(1, 1, 0).coverage == Approx(0).epsilon(1e-12));
    // 2 against 2 at 60 %: P(U < 1) = 1/6 a side
    const auto two = stats::hodges_lehmann_rank(2, 2, 0.6);
    CHECK(two.k == 1);
    CHECK(two.coverage == Approx(2.0 / 3));
    CHECK(stats::hodges_lehmann_rank(2, 2, 0).k == 2); // at most the middle
    // Above the exact limit: m n / 2 - z sqrt(m n (m + n + 1) / 12), rounded down.
    const auto large = stats::hodges_lehmann_rank(31, 30);
    CHECK(large.k == static_cast<std::size_t>(std::floor(465 - 1.959963984540054 * std::sqrt(930 * 62 / 12.0))));
    CHECK(large.coverage == 0.95);
    CHECK(stats::hodges_lehmann_rank(30, 30).coverage != 0.95); // still exact
    CHECK(stats::hodges_lehmann_rank(60, 1, 0.95).k == 0);      // 30 - 1.96 * 17.6 < 1
    CHECK(stats::hodges_lehmann_rank(60, 1, 0.91).coverage == 0); // 30 - 1.695 * 17.6 < 1: no interval, no coverage
    CHECK(stats::hodges_lehmann_rank(60, 1, 0.95).coverage == 0);
    CHECK(stats::hodges_lehmann_rank(60, 1, 0.9).k == 1); // 30 - 1.645 * 17.6 = 1.03
    CHECK(stats::hodges_lehmann_rank(3, 3, 0).k == 5);    // of nine differences the middle one
    CHECK(stats::hodges_lehmann_rank(3, 3, -2).k == 5);
    const stats::shift_rank none;
    CHECK(none.k == 0);
    CHECK(none.coverage == 0);
}

TEST_CASE("ranks: a test that was not made claims nothing") {
    const stats::rank_test none;
    CHECK(none.u == 0);
    CHECK(none.p_greater == 1);
    CHECK(none.p_less == 1);
    CHECK(none.p_two_sided == 1);
    CHECK(none.exact);
}

TEST_CASE("ranks: Walsh median") {
    CHECK(stats::walsh_median({4}) == 4);
    CHECK(stats::walsh_median({0, 4}) == 2);     // 0 2 4
    CHECK(stats::walsh_median({0, 1, 10}) == 3); // 0 .5 1 5 5.5 10
    CHECK(std::isnan(stats::walsh_median({})));
}
