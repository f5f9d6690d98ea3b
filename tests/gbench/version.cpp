// SPDX-License-Identifier: Apache-2.0
#include "plumbline/gbench/version.hpp"

#include <doctest/doctest.h>

#include <string>

namespace gbench = plumbline::gbench;

namespace {

// The two shapes that Google Benchmark's types have had.
struct run_1_7 {
    bool error_occurred = false;
    std::string error_message;
};
enum skipped_enum { not_skipped, with_message, with_error };
struct run_1_8 {
    skipped_enum skipped = not_skipped;
    std::string skip_message;
};
struct state_1_7 {
    std::string error;
    void SkipWithError(const char* text) { error = text; }
};
struct state_1_8 {
    std::string error;
    std::string message;
    void SkipWithError(const std::string& text) { error = text; }
    void SkipWithMessage(const std::string& text) { message = text; }
};

} // namespace

TEST_CASE("the end of a run is found in both shapes of Google Benchmark's type") {
    using gbench::detail::run_end;
    CHECK(gbench::detail::end_of(run_1_7{}) == run_end::normal);
    CHECK(gbench::detail::end_of(run_1_7{true, "x"}) == run_end::error);
    CHECK(gbench::detail::message_of(run_1_7{true, "x"}) == "x");
    CHECK(gbench::detail::end_of(run_1_8{}) == run_end::normal);
    CHECK(gbench::detail::end_of(run_1_8{with_message, "y"}) == run_end::skipped);
    CHECK(gbench::detail::end_of(run_1_8{with_error, "z"}) == run_end::error);
    CHECK(gbench::detail::message_of(run_1_8{with_error, "z"}) == "z");
    // The installed one compiles too.
    CHECK(gbench::detail::end_of(benchmark::BenchmarkReporter::Run{}) == run_end::normal);
}

TEST_CASE("skipping says so in both shapes, an error stays an error") {
    state_1_7 old;
    gbench::detail::skip(old, "no bf16");
    CHECK(old.error == "skipped: no bf16"); // 1.7 knows errors only
    gbench::detail::stop_with_error(old, "wrong");
    CHECK(old.error == "wrong");
    state_1_8 current;
    gbench::detail::skip(current, "no bf16");
    CHECK(current.message == "no bf16");
    CHECK(current.error.empty());
    gbench::detail::stop_with_error(current, "wrong");
    CHECK(current.error == "wrong");
}

TEST_CASE("CMake has told the version of the library") {
    CHECK(gbench::library_version().find('.') != std::string::npos);
}
