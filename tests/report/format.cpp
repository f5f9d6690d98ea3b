// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include "plumbline/report/options.hpp"
#include "plumbline/report/phrases.hpp"

using namespace plumbline;

TEST_CASE("values get the unit in which they read best") {
    CHECK(report::quantity(172'714.159, "ns") == "172.7 us");
    CHECK(report::quantity(999.4, "ns") == "999.4 ns");
    CHECK(report::quantity(0.5, "ns") == "0.5000 ns");
    CHECK(report::quantity(1.373e6, "ns") == "1.373 ms");
    CHECK(report::quantity(90e9, "ns") == "90.00 s");
    CHECK(report::quantity(0.25, "ms") == "250.0 us");
    CHECK(report::quantity(8.01e14, "FLOP/s") == "801.0 TFLOP/s");
    CHECK(report::quantity(4.2e12, "B/s") == "4.200 TB/s");
    CHECK(report::quantity(12345, "items/s") == "12345 items/s");
    CHECK(report::quantity(3, "furlongs") == "3.000 furlongs"); // unknown units stay as they are
    CHECK(report::quantity(0, "ns") == "0 ns");
}

TEST_CASE("two values show as many digits as it takes to tell them apart") {
    CHECK(report::change_of_quantity(306e3, 331e3, "ns") == "306 -> 331 us");
    CHECK(report::change_of_quantity(306.1e3, 306.2e3, "ns") == "306.1 -> 306.2 us");
    CHECK(report::change_of_quantity(306.11e3, 306.12e3, "ns") == "306.11 -> 306.12 us");
    CHECK(report::change_of_quantity(306e3, 306e3, "ns") == "306.0 -> 306.0 us");
    CHECK(report::change_of_quantity(900, 1100, "us") == "900 -> 1100 us");
}

TEST_CASE("percentages") {
    CHECK(report::signed_percent(0.082) == "+8.2 %");
    CHECK(report::signed_percent(-0.00042) == "-0.04 %");
    CHECK(report::signed_percent(2.5) == "+250 %");
    CHECK(report::signed_percent(0) == "+0.00 %");
    CHECK(report::percent(0.009) == "0.9 %");
    CHECK(report::percent(HUGE_VAL) == "no size");
    CHECK(report::detectable(0.0151) == "1.5 %");
    CHECK(report::detectable(8.9) == "890 %");
    CHECK(report::detectable(6e6) == "more than 10x");
    CHECK(report::detectable(HUGE_VAL) == "no size");
    CHECK(report::signed_percent(NAN) == "? %");
}

TEST_CASE("numbers do not follow the locale and hold the largest values") {
    CHECK(report::fixed(1234567.5, 1) == "1234567.5");
    CHECK(report::fixed(1e308, 0).size() == 309);
    CHECK(report::fixed(-0.5, 2) == "-0.50");
}

TEST_CASE("implementations are reduced to what differs") {
    CHECK(compare::implementation_change("cudnn/A/eng38/k2=1", "cudnn/A/eng0/k2=1") == "eng38 -> eng0");
    CHECK(compare::implementation_change("a/b", "a/b/c") == "(none) -> c");
    CHECK(compare::implementation_change("x", "y") == "x -> y");
    CHECK(compare::implementation_change("a/a", "a") == "a -> (none)");
}

TEST_CASE("the change is that of the metric, its sign included") {
    compare::finding one;
    one.effect.emplace();
    one.effect->hl = std::log(1.08);
    one.effect->low95 = std::log(1.07);
    one.effect->high95 = std::log(1.09);
    CHECK(report::change(one, true) == "+8.0 % [7.0, 9.0]");
    one.better = direction::higher;
    CHECK(report::change(one, true) == "-7.4 % [-8.3, -6.5]");
    one.effect->low95 = -HUGE_VAL;
    CHECK(report::change(one, true) == "-7.4 %");
    CHECK(report::change(one, false) == "-7.4 %");
    one.effect.reset();
    CHECK(report::change(one, true).empty());
}

TEST_CASE("texts are cut between characters and padded by columns") {
    CHECK(report::shortened("abcdefgh", 8) == "abcdefgh");
    CHECK(report::shortened("abcdefghi", 8) == "abcde...");
    CHECK(report::shortened("ab\xc3\xa9\xc3\xa9\xc3\xa9", 7) == "ab\xc3\xa9...");
    CHECK(report::shortened("ab\xc3\xa9\xc3\xa9\xc3\xa9", 6) == "ab...");
    CHECK(report::pad_right("\xc3\xa9", 3) == "\xc3\xa9  ");
    CHECK(report::pad_left("ab", 3) == " ab");
    CHECK(report::pad_left("abcd", 3) == "abcd");
    CHECK(report::detail::wrapped("one two three", 7) == std::vector<std::string>{"one two", "three"});
    CHECK(report::detail::wrapped("one two three", 0).size() == 1);
    CHECK(report::detail::wrapped("toolongword x", 4) == std::vector<std::string>{"toolongword", "x"});
}
