// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <doctest/doctest.h>

#include "plumbline/core/utf8.hpp"

using plumbline::valid_utf8;

TEST_CASE("well-formed text stays as it is") {
    for (const std::string text : {"", "plain", "caf\xc3\xa9", "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf",
                                   "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\x7f\xc2\x80\xdf\xbf"}) {
        CHECK(valid_utf8(text) == text);
    }
    CHECK(valid_utf8(std::string("a\0b", 3)) == std::string("a\0b", 3));
}

TEST_CASE("other bytes are spelt out, each for itself") {
    CHECK(valid_utf8("caf\xe9") == "caf\\xE9");
    CHECK(valid_utf8("\xe9t\xe9") == "\\xE9t\\xE9");
    CHECK(valid_utf8("\x80") == "\\x80");
    CHECK(valid_utf8("\xc1\xbf") == "\\xC1\\xBF");          // overlong
    CHECK(valid_utf8("\xe0\x9f\xbf") == "\\xE0\\x9F\\xBF"); // overlong
    CHECK(valid_utf8("\xed\xa0\x80") == "\\xED\\xA0\\x80"); // a surrogate
    CHECK(valid_utf8("\xf0\x8f\xbf\xbf") == "\\xF0\\x8F\\xBF\\xBF");
    CHECK(valid_utf8("\xf4\x90\x80\x80") == "\\xF4\\x90\\x80\\x80"); // beyond U+10FFFF
    CHECK(valid_utf8("\xf5\x80\x80\x80") == "\\xF5\\x80\\x80\\x80");
    CHECK(valid_utf8("\xe2\x82") == "\\xE2\\x82"); // cut
    CHECK(valid_utf8("\xf0\x90\x80") == "\\xF0\\x90\\x80");
    CHECK(valid_utf8("\xe2\x82\xac\xe2") == "\xe2\x82\xac\\xE2");
}
