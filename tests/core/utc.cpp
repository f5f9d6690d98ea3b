// SPDX-License-Identifier: Apache-2.0
#include "plumbline/core/utc.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <ctime>

using std::chrono::milliseconds;
using std::chrono::system_clock;

TEST_CASE("a moment is written as UTC with milliseconds, rounded down") {
    const auto at = [](long long ms) { return plumbline::utc_text(system_clock::time_point(milliseconds(ms))); };
    CHECK(at(0) == "1970-01-01T00:00:00.000Z");
    CHECK(at(1'796'069'700'250) == "2026-11-30T20:15:00.250Z");
    CHECK(at(951'782'400'001) == "2000-02-29T00:00:00.001Z");
    CHECK(at(-1) == "1969-12-31T23:59:59.999Z");
    CHECK(plumbline::utc_text(std::time_t{0}) == "1970-01-01T00:00:00Z");
    CHECK(plumbline::utc_text(std::time_t{1'796'069'700}) == "2026-11-30T20:15:00Z");
}
