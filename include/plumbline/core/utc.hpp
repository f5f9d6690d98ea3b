// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CORE_UTC_HPP
#define PLUMBLINE_CORE_UTC_HPP

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// A moment as UTC in ISO 8601 with milliseconds, as baselines store it: "2026-11-30T20:15:00.250Z". Milliseconds,
/// because sessions are told apart by when they started and two may start within a second.
[[nodiscard]] inline std::string utc_text(std::chrono::system_clock::time_point at) {
    const auto since = std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch());
    const auto whole = std::chrono::floor<std::chrono::seconds>(since);
    const std::time_t seconds = static_cast<std::time_t>(whole.count());
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 32> day{};
    std::strftime(day.data(), day.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    std::array<char, 8> fraction{};
    std::snprintf(fraction.data(), fraction.size(), ".%03dZ", static_cast<int>((since - whole).count()));
    return std::string(day.data()) + fraction.data();
}

/// Now, with milliseconds.
[[nodiscard]] inline std::string utc_now() {
    return utc_text(std::chrono::system_clock::now());
}

/// A time in whole seconds as UTC in ISO 8601: "2026-11-30T20:15:00Z".
[[nodiscard]] inline std::string utc_text(std::time_t at) {
    return utc_text(std::chrono::system_clock::from_time_t(at)).substr(0, 19) + "Z";
}

PLUMBLINE_NAMESPACE_END

#endif
