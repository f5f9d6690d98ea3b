// SPDX-License-Identifier: Apache-2.0
// Starts itself again, as programs do to measure a cold start. With a GPU the times come back; without one the reason.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdlib>

#include <doctest/doctest.h>

#include "plumbline/cuda/machine/cold_start.hpp"

using namespace plumbline;
namespace machine = plumbline::cuda::machine;

TEST_CASE("a fresh process measures a cold start or says why it cannot") {
    if (cuda::probe::try_start().devices > 0) {
        const machine::cold_start taken = machine::detail::start_cold(0);
        CHECK(taken.context > 0);
        CHECK(taken.first_launch > 0);
        CHECK(taken.library > 0);
    } else {
        CHECK_THROWS_WITH_AS(static_cast<void>(machine::detail::start_cold(0)), doctest::Contains("cudaSetDevice"),
                             error);
    }
}

TEST_CASE("a cold start never starts another one") {
    REQUIRE(::setenv(machine::cold_start_variable, "1", 1) == 0);
    CHECK_THROWS_WITH_AS(static_cast<void>(machine::detail::start_cold(0)), doctest::Contains("itself a cold start"),
                         unsupported_error);
    REQUIRE(::unsetenv(machine::cold_start_variable) == 0);
}

TEST_CASE("what a silent child leaves is read to its end, and one that hangs is given up") {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    CHECK_FALSE(machine::detail::read_until_end(ends[0], 0).has_value());
    machine::detail::write_all(ends[1], "ok 1 2 3\n");
    ::close(ends[1]);
    CHECK(machine::detail::read_until_end(ends[0], 5) == "ok 1 2 3\n");
    ::close(ends[0]);
}

int main(int argc, char** argv) {
    if (const auto code = machine::serve_cold_start(argc, argv)) return *code;
    return doctest::Context(argc, argv).run();
}
