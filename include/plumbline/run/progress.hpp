// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_PROGRESS_HPP
#define PLUMBLINE_RUN_PROGRESS_HPP

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <ostream>
#include <string>
#include <utility>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// A duration for people: "0.4 s", "12 s", "3 min 05 s".
[[nodiscard]] inline std::string duration_text(double seconds) {
    char text[48];
    if (seconds < 9.95) {
        std::snprintf(text, sizeof text, "%.1f s", seconds < 0 ? 0 : seconds);
    } else if (seconds < 99.5) {
        std::snprintf(text, sizeof text, "%.0f s", seconds);
    } else {
        const long whole = std::lround(seconds);
        std::snprintf(text, sizeof text, "%ld min %02ld s", whole / 60, whole % 60);
    }
    return text;
}

/// Tells a person how far a run is: one line that is overwritten on a terminal; elsewhere plain lines, few of them.
class progress {
public:
    /// What kind of place the lines go to.
    enum class style { silent, lines, terminal };

    progress(std::ostream& out, style how, bool colour) : out_(&out), how_(how), colour_(colour) {}
    progress(const progress&) = delete;
    progress& operator=(const progress&) = delete;
    ~progress() { clear(); }

    /// A remark that stays: what was found, predicted, skipped.
    void note(const std::string& text) {
        if (how_ == style::silent) return;
        clear();
        *out_ << text << '\n' << std::flush;
    }

    /// A warning: shown even when quiet was asked for.
    void warn(const std::string& text) {
        clear();
        *out_ << (colour_ ? "\033[33mwarning:\033[0m " : "warning: ") << text << '\n' << std::flush;
    }

    /// What is being done right now, on a terminal only.
    void step(const std::string& text) {
        if (how_ != style::terminal) return;
        *out_ << "\r\033[K" << text.substr(0, 79) << std::flush;
        shown_ = true;
    }

    /// Benchmark `id`, number `done` + 1 of `all` of the whole run, is beginning; `left_s` seconds are left.
    void begin(const std::string& id, std::size_t session, std::size_t sessions, std::size_t done, std::size_t all,
               double left_s) {
        const auto now = std::chrono::steady_clock::now();
        const std::string text = "session " + std::to_string(session) + "/" + std::to_string(sessions) + "  " +
                                 std::to_string(done + 1) + " of " + std::to_string(all) + "  " +
                                 duration_text(left_s) + " left  " + id;
        if (how_ == style::terminal) {
            step(text); // cut rather than wrapped: a wrapped line cannot be overwritten
        } else if (how_ == style::lines && (session != last_session_ || now - last_ >= std::chrono::seconds(10))) {
            *out_ << text << '\n' << std::flush;
            last_ = now;
        }
        last_session_ = session;
    }

    /// Takes the overwritten line away.
    void clear() {
        if (std::exchange(shown_, false)) *out_ << "\r\033[K" << std::flush;
    }

private:
    std::ostream* out_;
    style how_;
    bool colour_;
    bool shown_ = false;
    std::size_t last_session_ = 0;
    std::chrono::steady_clock::time_point last_{};
};

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
