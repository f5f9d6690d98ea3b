// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_CHILD_HPP
#define PLUMBLINE_ENVIRONMENT_CHILD_HPP

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// What became of a child process.
struct child_outcome {
    bool started = false;
    bool timed_out = false; ///< it was killed, with everything it had started
    int status = -1;        ///< exit code; 128 + signal where a signal ended it
    std::string output;     ///< what it wrote to standard output, cut at the limit
};

namespace detail {

/// Reads a pipe until it is closed, `deadline` has passed or `limit` is reached; true when it was closed.
[[nodiscard]] inline bool drain(int pipe, std::chrono::steady_clock::time_point deadline, std::size_t limit,
                                std::string& into) {
    char buffer[16384];
    while (into.size() < limit) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
        if (left.count() <= 0) return false;
        pollfd waiting{pipe, POLLIN, 0};
        const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1000)));
        if (ready < 0 && errno != EINTR) return false;
        if (ready <= 0) continue;
        const ssize_t got = ::read(pipe, buffer, sizeof buffer);
        if (got == 0) return true;
        if (got < 0 && errno != EINTR && errno != EAGAIN) return false;
        if (got > 0) into.append(buffer, std::min(static_cast<std::size_t>(got), limit - into.size()));
    }
    return false;
}

/// Waits for a child until the deadline; kills its whole group then. Gives the exit code.
[[nodiscard]] inline int reap(pid_t child, std::chrono::steady_clock::time_point deadline, bool& timed_out) {
    int status = 0;
    for (;;) {
        const pid_t ended = ::waitpid(child, &status, WNOHANG);
        if (ended == child) break;
        if (ended < 0 && errno != EINTR) return -1;
        if (timed_out || std::chrono::steady_clock::now() >= deadline) {
            timed_out = true;
            // The group, so that what the child had started dies with it.
            (void)::kill(-child, SIGKILL);
            while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
            }
            break;
        }
        (void)::poll(nullptr, 0, 5);
    }
    (void)::kill(-child, SIGKILL); // grandchildren that outlived it; none is the usual case
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace detail

/// Runs `arguments` (the first is looked up in PATH of this process) with the given environment ("NAME=value") in a
/// process group of its own, with standard input and error on /dev/null. It can neither hang nor crash the caller: at
/// the time limit the group is killed, and output beyond `limit` bytes ends it too. Never throws for a failing child.
[[nodiscard]] inline child_outcome run_child(const std::vector<std::string>& arguments,
                                             const std::vector<std::string>& environment,
                                             std::chrono::milliseconds time_limit, std::size_t limit = 1u << 20) {
    child_outcome outcome;
    int ends[2];
    if (arguments.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return outcome;
    std::vector<char*> argv, envp;
    for (const std::string& text : arguments) argv.push_back(const_cast<char*>(text.c_str()));
    for (const std::string& text : environment) envp.push_back(const_cast<char*>(text.c_str()));
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // A mask or handler of the caller (a benchmark program catches SIGINT) is not the child's.
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    const auto deadline = std::chrono::steady_clock::now() + time_limit;
    pid_t child = -1;
    outcome.started = ::posix_spawnp(&child, argv[0], &files, &attributes, argv.data(), envp.data()) == 0;
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
    ::close(ends[1]);
    if (outcome.started) {
        const bool closed = detail::drain(ends[0], deadline, limit, outcome.output);
        outcome.timed_out = !closed;
        outcome.status = detail::reap(child, deadline, outcome.timed_out);
    }
    ::close(ends[0]);
    return outcome;
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
