// SPDX-License-Identifier: Apache-2.0
#include "plumbline/core/file_descriptor.hpp"
#include <doctest/doctest.h>

#include <utility>

#include <fcntl.h>

using plumbline::file_descriptor;

namespace {

file_descriptor opened() {
    return file_descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

bool is_open(int fd) {
    return ::fcntl(fd, F_GETFD) != -1;
}

} // namespace

TEST_CASE("a descriptor is closed once, by its last owner") {
    int number = -1;
    {
        file_descriptor first = opened();
        REQUIRE(first.valid());
        number = first.get();
        file_descriptor second(std::move(first));
        CHECK(second.get() == number);
        CHECK(is_open(number));
    }
    CHECK_FALSE(is_open(number));
}

TEST_CASE("assigning closes what was owned before") {
    file_descriptor one = opened(), other = opened();
    const int gone = one.get(), kept = other.get();
    one = std::move(other);
    CHECK(one.get() == kept);
    CHECK_FALSE(is_open(gone));
    CHECK(is_open(kept));
    one.close();
    CHECK_FALSE(one.valid());
    CHECK_FALSE(is_open(kept));
    CHECK_FALSE(file_descriptor().valid());
}
