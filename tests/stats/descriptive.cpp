// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include "plumbline/stats/descriptive.hpp"

namespace stats = plumbline::stats;

TEST_CASE("descriptive: median") {
    CHECK(std::isnan(stats::median({})));
    CHECK(stats::median({7}) == 7);
    CHECK(stats::median({3, 1}) == 2);
    CHECK(stats::median({9, 1, 5}) == 5);
    CHECK(stats::median({8, 1, 5, 2}) == 3.5);
    CHECK(stats::median({1, 1, 1, 100}) == 1);
    CHECK(std::isfinite(stats::median({1.7e308, 1.7e308}))); // a sum would overflow
}

TEST_CASE("descriptive: quantile of type 7") {
    CHECK(std::isnan(stats::quantile({}, 0.5)));
    CHECK(stats::quantile({4}, 0.9) == 4);
    CHECK(stats::quantile({4, 1, 2, 3}, 0) == 1);
    CHECK(stats::quantile({4, 1, 2, 3}, 1) == 4);
    CHECK(stats::quantile({4, 1, 2, 3}, 0.25) == doctest::Approx(1.75)); // numpy.percentile([1,2,3,4], 25)
    CHECK(stats::quantile({10, 20}, 0.3) == doctest::Approx(13));
    CHECK(stats::quantile({10, 20}, -1) == 10);
    CHECK(stats::quantile({10, 20}, 2) == 20);
}

TEST_CASE("descriptive: mean and spread") {
    CHECK(std::isnan(stats::mean({})));
    CHECK(stats::mean({1, 2, 6}) == 3);
    CHECK(stats::sum_of_squares({}) == 0);
    CHECK(stats::sum_of_squares({5}) == 0);
    CHECK(stats::sum_of_squares({1, 3}) == 2);
    CHECK(stats::sum_of_squares({1, 2, 6}) == 14);
    // Far from zero: sums of squares would cancel (sum(v^2) - n mean^2 is off by 100 here).
    CHECK(stats::sum_of_squares({1e9 + 0.25, 1e9 + 0.5, 1e9 + 1}) == doctest::Approx(0.291667).epsilon(1e-4));
    CHECK(std::isnan(stats::variance({})));
    CHECK(std::isnan(stats::variance({5})));
    CHECK(stats::variance({1, 3}) == 2);
    CHECK(stats::variance({1, 2, 6}) == 7);
    CHECK(stats::standard_deviation({1, 3}) == doctest::Approx(std::sqrt(2.0)));
    CHECK(stats::mad({1, 2, 6}) == 1); // distances 1, 0, 4
    CHECK(stats::mad({4, 4, 4}) == 0);
}

TEST_CASE("descriptive: fair binomial probabilities") {
    CHECK(stats::detail::fair_binomial(4, 0) == doctest::Approx(1.0 / 16));
    CHECK(stats::detail::fair_binomial(4, 1) == doctest::Approx(4.0 / 16));
    CHECK(stats::detail::fair_binomial(4, 2) == doctest::Approx(6.0 / 16));
    CHECK(stats::detail::fair_binomial(5, 5) == doctest::Approx(1.0 / 32));
}

TEST_CASE("descriptive: interval of the median by the sign test") {
    CHECK(stats::sign_test_rank(5, 0.95) == 0); // 2/32 > 5 %
    CHECK(stats::sign_test_rank(6, 0.95) == 1); // 2/64 <= 5 %
    CHECK(stats::sign_test_rank(9, 0.95) == 2); // 2 (1 + 9)/512 = 3.9 %
    CHECK(stats::sign_test_rank(0, 0.95) == 0);
    CHECK(stats::sign_test_rank(4, 0) == 2);   // never beyond the middle
    CHECK(stats::sign_test_rank(2, 0.5) == 1); // exactly 50 % is enough
    CHECK(stats::sign_test_rank(5, 0) == 3);   // the median itself
    CHECK(stats::sign_test_rank(5, -3) == 3);  // no less than no confidence
    const auto none = stats::median_interval({1, 2, 3, 4, 5});
    CHECK_FALSE(none.exists());
    CHECK(std::isnan(none.low));
    const auto six = stats::median_interval({6, 5, 4, 3, 2, 1});
    CHECK(six.exists());
    CHECK(six.low == 1);
    CHECK(six.high == 6);
    CHECK(six.coverage == doctest::Approx(1 - 2.0 / 64));
    const auto nine = stats::median_interval({9, 8, 7, 6, 5, 4, 3, 2, 1});
    CHECK(nine.low == 2);
    CHECK(nine.high == 8);
    CHECK(nine.coverage == doctest::Approx(1 - 2 * 10.0 / 512));
    CHECK(stats::median_interval({9, 8, 7, 6, 5, 4, 3, 2, 1}, 0.5).low ==
          3); // 2 (1 + 9 + 36)/512 = 18 %, the next 51 %
}

TEST_CASE("descriptive: an interval that nobody found does not exist") {
    const stats::interval none;
    CHECK(none.coverage == 0);
    CHECK_FALSE(none.exists());
    CHECK(std::isnan(none.low));
    CHECK(std::isnan(none.high));
    CHECK(stats::interval{1, 2, 0.5}.exists());
}
