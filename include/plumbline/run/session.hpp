// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_SESSION_HPP
#define PLUMBLINE_RUN_SESSION_HPP

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "plumbline/json/store.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/run/paths.hpp"
#include "plumbline/run/process.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// How a parent starts sessions of one side: which program, on which device, with which limits.
struct launcher {
    std::string program = "/proc/self/exe"; ///< another stack's bench program with --control
    std::string name = "bench";             ///< argv[0] of the child
    std::string backend;
    int device = 0;
    double budget_s = 1;               ///< seconds a benchmark may take to measure
    std::optional<double> finish_s;    ///< see child_options::finish_s
    std::string inspect;               ///< see child_options::inspect
    std::optional<double> planted;     ///< see child_options::planted
    std::filesystem::path data;        ///< see options::data
    child_setting setting;             ///< what the child gets another way than this process has it
    std::chrono::seconds silence{120}; ///< a child that says nothing for so long is stopped
};

/// How a session ended.
struct session_end {
    result::baseline measured; ///< one session; none when the child left no readable file
    bool failed = false;       ///< it died, hung or could not start; `reason` says which
    std::string reason;
    std::string died_in;            ///< the benchmark it was in when it died or hung
    std::optional<exit_code> code;  ///< of the error the child reported, e.g. precondition
    std::optional<int> interrupted; ///< by this signal of ours
};

/// What a child says while it runs, taken apart.
struct session_event {
    bool begins = false; ///< benchmark `id` is beginning; else it is done
    std::string id;
    std::string note;     ///< a remark for people; nothing begins or is done then
    bool skipped = false; ///< only when done
    double seconds = 0;   ///< only when done
};

namespace detail {

/// Files that only exist while a session runs; removed at its end, and by the next run after a kill.
struct session_files {
    std::filesystem::path plan;
    std::filesystem::path result;

    explicit session_files(const std::filesystem::path& target)
        : plan(target.string() + ".tmp.plan"), result(target.string() + ".tmp.session") {
        remove();
    }
    session_files(const session_files&) = delete;
    session_files& operator=(const session_files&) = delete;
    ~session_files() { remove(); }

    void remove() const noexcept {
        std::error_code ignored;
        std::filesystem::remove(plan, ignored);
        std::filesystem::remove(result, ignored);
    }
};

[[nodiscard]] inline std::vector<std::string> session_arguments(const launcher& how, const session_files& files) {
    std::vector<std::string> arguments{how.name,
                                       "--session-plan=" + files.plan.string(),
                                       "--session-result=" + files.result.string(),
                                       "--session-progress-fd={fd}",
                                       "--session-budget=" + std::to_string(how.budget_s),
                                       "--backend=" + how.backend,
                                       "--device=" + std::to_string(how.device)};
    if (how.finish_s) arguments.push_back("--session-finish=" + std::to_string(*how.finish_s));
    if (!how.inspect.empty()) arguments.push_back("--session-inspect=" + how.inspect);
    if (how.planted) arguments.push_back("--session-planted=" + std::to_string(*how.planted));
    if (!how.data.empty()) arguments.push_back("--data=" + how.data.string());
    return arguments;
}

/// Follows one child from its start to its end.
class session_follower {
public:
    session_follower(child_process& child, interrupt_watch& signals, std::chrono::seconds silence,
                     const std::function<void(const session_event&)>& tell)
        : child_(child), signals_(signals), silence_(silence), tell_(tell) {}

    void follow(session_end& end) {
        using clock = std::chrono::steady_clock;
        auto heard = clock::now();
        bool over = false;
        while (!over) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(heard + silence_ - clock::now());
            std::array<pollfd, 2> watched{pollfd{child_.fd(), POLLIN, 0}, pollfd{signals_.fd(), POLLIN, 0}};
            ::poll(watched.data(), watched.size(), static_cast<int>(std::clamp<long long>(left.count(), 0, 60000)));
            if ((end.interrupted = signals_.taken())) return child_.stop(std::chrono::milliseconds(500));
            const std::vector<std::string> lines = child_.take_lines(over);
            if (!lines.empty()) heard = clock::now();
            for (const std::string& line : lines) hear(line, end);
            if (!over && clock::now() - heard >= silence_) return stop_silent(end);
        }
        finish(end);
    }

private:
    void hear(const std::string& line, session_end& end) {
        if (line.rfind("begin ", 0) == 0) {
            running_ = line.substr(6);
            tell_({true, running_, {}, false, 0});
        } else if (line.rfind("done ", 0) == 0) {
            const std::size_t second = line.find(' ', 5);
            const std::size_t third = second == std::string::npos ? second : line.find(' ', second + 1);
            if (third == std::string::npos) return;
            running_.clear();
            tell_({false,
                   line.substr(third + 1),
                   {},
                   line.compare(5, second - 5, "skipped") == 0,
                   std::strtod(line.c_str() + second, nullptr)});
        } else if (line.rfind("note ", 0) == 0) {
            tell_({false, {}, line.substr(5), false, 0});
        } else if (line.rfind("error ", 0) == 0) {
            char* text = nullptr;
            end.code = static_cast<exit_code>(std::strtol(line.c_str() + 6, &text, 10));
            end.reason = *text == ' ' ? text + 1 : text;
        }
    }

    void stop_silent(session_end& end) {
        child_.stop(std::chrono::milliseconds(200));
        end.failed = true;
        end.died_in = running_;
        end.reason = "the session said nothing for " + std::to_string(silence_.count()) + " s and was stopped";
        if (!running_.empty()) end.reason += " (in " + running_ + ")";
    }

    /// The pipe is closed: the child has ended or is about to.
    void finish(session_end& end) {
        for (int i = 0; i < 200 && !child_.wait(false); ++i) ::poll(nullptr, 0, 10);
        if (!child_.wait(false)) child_.stop(std::chrono::milliseconds(200));
        // A signal from the terminal reaches the child first.
        if ((end.interrupted = signals_.taken())) return;
        const int status = child_.wait(false).value_or(0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
        end.failed = true;
        end.died_in = running_;
        if (!end.reason.empty()) return; // the child has said why
        end.reason = "the session process ended by " + describe_wait_status(status);
        if (!running_.empty()) end.reason += " in " + running_;
    }

    child_process& child_;
    interrupt_watch& signals_;
    std::chrono::seconds silence_;
    const std::function<void(const session_event&)>& tell_;
    std::string running_;
};

} // namespace detail

/// Runs one session in a child process and returns what it measured, whatever became of it. `plan` is a one-session
/// baseline (child_options::plan); files lie beside `target`. Throws plumbline::error when the plan cannot be
/// written or no process can be made.
[[nodiscard]] inline session_end run_session(const launcher& how, const result::baseline& plan,
                                             const std::filesystem::path& target, interrupt_watch& signals,
                                             const std::function<void(const session_event&)>& tell) {
    const detail::session_files files(target);
    json::save(files.plan, plan);
    session_end end;
    {
        child_process child(how.program, detail::session_arguments(how, files), signals.mask_before(), how.setting);
        detail::session_follower(child, signals, how.silence, tell).follow(end);
    }
    try {
        if (std::filesystem::exists(files.result)) end.measured = json::load(files.result);
    } catch (const error& e) {
        end.failed = true;
        if (end.reason.empty()) end.reason = e.what();
    }
    if (end.measured.sessions.size() != 1) {
        end.measured = {};
        if (!end.interrupted && !end.failed) {
            end.failed = true;
            end.reason = "the session left no result; is " + how.program + " a bench program of this version?";
        }
    }
    if (end.failed && !end.measured.sessions.empty()) {
        end.measured.sessions.front().failed = true;
        end.measured.sessions.front().reason = end.reason;
    }
    return end;
}

/// What a session under way has measured so far, for FILE.partial; an empty baseline when there is nothing yet.
[[nodiscard]] inline result::baseline peek_session(const std::filesystem::path& target) {
    const std::filesystem::path file = target.string() + ".tmp.session";
    try {
        if (std::filesystem::exists(file)) return json::load(file);
    } catch (const error&) {
        // Not readable yet is the same as nothing yet: the session's end will tell.
    }
    return {};
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
