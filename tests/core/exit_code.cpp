// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include <doctest/doctest.h>

#include "plumbline/core/exit_code.hpp"

using namespace plumbline;

TEST_CASE("when several exit codes apply the documented one wins, whatever the order") {
    const exit_code order[] = {exit_code::interrupted,  exit_code::usage,      exit_code::precondition,
                               exit_code::incomparable, exit_code::regressed,  exit_code::incomplete,
                               exit_code::inconclusive, exit_code::ok};
    for (std::size_t i = 0; i < std::size(order); ++i) {
        for (std::size_t j = i; j < std::size(order); ++j) {
            CHECK(worse(order[i], order[j]) == order[i]);
            CHECK(worse(order[j], order[i]) == order[i]);
        }
    }
    CHECK(worse(exit_code::terminated, exit_code::usage) == exit_code::terminated);
}
