// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "plumbline/core/hash.hpp"

using namespace plumbline;

TEST_CASE("sha256 gives the digests of FIPS 180-4 and of block-boundary lengths") {
    CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(sha256(std::string(200, 'a')) == "c2a908d98f5df987ade41b5fce213067efbcc21ef2240212a41e54b5e7c28ae5");
}

TEST_CASE("the hash of named values sees types, not insertion order") {
    scalar_map a{{"m", std::int64_t{1}}, {"n", std::string("x")}};
    scalar_map b{{"n", std::string("x")}, {"m", std::int64_t{1}}};
    CHECK(short_hash(a) == short_hash(b));
    for (const scalar& other : {scalar{1.0}, scalar{true}, scalar{std::string("1")}}) {
        b["m"] = other;
        CHECK(short_hash(a) != short_hash(b));
    }
}
