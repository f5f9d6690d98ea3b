// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_GBENCH_VERSION_HPP
#define PLUMBLINE_GBENCH_VERSION_HPP

#include <string>

#include <benchmark/benchmark.h>

#include "plumbline/version.hpp"

// Everything that differs between Google Benchmark 1.7.1 and later versions. 1.7 has no macro that tells its version,
// so differences are found by looking for the member, and CMake passes the version where it knows it.

PLUMBLINE_NAMESPACE_BEGIN

namespace gbench {

/// The version of Google Benchmark as CMake found it, "unknown" in a program built another way.
[[nodiscard]] inline std::string library_version() {
#ifdef PLUMBLINE_GBENCH_VERSION
    return PLUMBLINE_GBENCH_VERSION;
#else
    return "unknown";
#endif
}

namespace detail {

/// How a run ended: normally, skipped on purpose (1.8 and later), or with an error.
enum class run_end { normal, skipped, error };

/// 1.7 has error_occurred, 1.8 and later an enumeration `skipped` (0 not, 1 with a message, 2 with an error).
template <class Run>
[[nodiscard]] run_end end_of(const Run& run) {
    if constexpr (requires { run.skipped; }) {
        switch (static_cast<int>(run.skipped)) {
        case 0:
            return run_end::normal;
        case 1:
            return run_end::skipped;
        default:
            return run_end::error;
        }
    } else {
        return run.error_occurred ? run_end::error : run_end::normal;
    }
}

template <class Run>
[[nodiscard]] std::string message_of(const Run& run) {
    if constexpr (requires { run.skip_message; }) {
        return run.skip_message;
    } else {
        return run.error_message;
    }
}

/// 1.7 takes a C string and knows errors only.
template <class State>
void stop_with_error(State& state, const std::string& why) {
    if constexpr (requires { state.SkipWithError(why); }) {
        state.SkipWithError(why);
    } else {
        state.SkipWithError(why.c_str());
    }
}

template <class State>
void skip(State& state, const std::string& why) {
    if constexpr (requires { state.SkipWithMessage(why); }) {
        state.SkipWithMessage(why);
    } else {
        state.SkipWithError(("skipped: " + why).c_str());
    }
}

} // namespace detail

} // namespace gbench

PLUMBLINE_NAMESPACE_END

#endif
