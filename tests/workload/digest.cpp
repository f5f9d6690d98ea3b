// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/workload/digest.hpp"

using plumbline::workload::digest;

TEST_CASE("a digest sees every bit, the order and the length") {
    std::vector<unsigned char> data(37, 0);
    std::set<std::string> seen{digest(data.data(), data.size())};
    for (std::size_t bit = 0; bit < 8 * data.size(); ++bit) {
        data[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
        seen.insert(digest(data.data(), data.size()));
        data[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
    }
    for (std::size_t length = 0; length < data.size(); ++length) seen.insert(digest(data.data(), length));
    CHECK(seen.size() == 1 + 8 * 37 + 37);
    const std::vector<unsigned char> forwards{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0};
    const std::vector<unsigned char> backwards{2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    CHECK(digest(forwards.data(), 16) != digest(backwards.data(), 16));
    CHECK(digest(forwards.data(), 16).size() == 16);
    CHECK(digest(data.data(), data.size()) == digest(data.data(), data.size()));
}
