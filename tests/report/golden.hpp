// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_REPORT_GOLDEN_HPP
#define PLUMBLINE_TESTS_REPORT_GOLDEN_HPP

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>

namespace plumbline::tests {

/// Compares a text with the file tests/data/report/NAME. PLUMBLINE_UPDATE_GOLDEN=1 writes the file instead: look at
/// the difference before it is committed.
inline void check_golden(const std::string& name, const std::string& text) {
    const std::string path = std::string(PLUMBLINE_TEST_DATA) + "/report/" + name;
    if (std::getenv("PLUMBLINE_UPDATE_GOLDEN") != nullptr) {
        std::ofstream(path) << text;
        return;
    }
    std::ifstream file(path);
    const std::string expected{std::istreambuf_iterator<char>(file), {}};
    REQUIRE_MESSAGE(!expected.empty(), path);
    CHECK_MESSAGE(text == expected, path << " is:\n" << text);
}

} // namespace plumbline::tests

#endif
