// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/core/nearest.hpp"

using namespace plumbline;

TEST_CASE("the edit distance counts insertions, deletions, substitutions and swaps of neighbours") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("", "abc") == 3);
    CHECK(edit_distance("margin", "margins") == 1);
    CHECK(edit_distance("margin", "mragin") == 1);
    CHECK(edit_distance("kitten", "sitting") == 3);
    CHECK(edit_distance(std::string(1000, 'a'), "a") == 63);
}

TEST_CASE("a misspelt name finds its neighbour, and a foreign one finds none") {
    const std::vector<std::string> known{"margin", "quantile", "classes"};
    CHECK(nearest("margn", known) == "margin");
    CHECK(nearest("class", known) == "");
    CHECK(nearest("clases", known) == "classes");
    CHECK(nearest("zebra", known) == "");
    CHECK(nearest("", known) == "");
}
