// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_PROCESS_HPP
#define PLUMBLINE_RUN_PROCESS_HPP

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plumbline/core/error.hpp"
#include "plumbline/core/file_descriptor.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// While it lives, SIGINT and SIGTERM do not end the process but are kept for taken(). One at a time, in the thread
/// that starts the children. Without it both signals do what they always do.
class interrupt_watch {
public:
    interrupt_watch() {
        sigset_t watched;
        sigemptyset(&watched);
        sigaddset(&watched, SIGINT);
        sigaddset(&watched, SIGTERM);
        if (sigprocmask(SIG_BLOCK, &watched, &before_) != 0) throw error("cannot block SIGINT and SIGTERM");
        fd_ = file_descriptor(::signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC));
        if (fd_.get() < 0) {
            sigprocmask(SIG_SETMASK, &before_, nullptr);
            throw error(std::string("cannot watch for signals: ") + std::strerror(errno));
        }
    }
    interrupt_watch(const interrupt_watch&) = delete;
    interrupt_watch& operator=(const interrupt_watch&) = delete;
    ~interrupt_watch() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

    /// Readable when a signal is waiting.
    [[nodiscard]] int fd() const noexcept { return fd_.get(); }

    /// The signal mask a child must start with.
    [[nodiscard]] const sigset_t& mask_before() const noexcept { return before_; }

    /// The first signal that came, if any; it stays taken.
    [[nodiscard]] std::optional<int> taken() {
        signalfd_siginfo info{};
        while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
            if (!first_) first_ = static_cast<int>(info.ssi_signo);
        }
        return first_;
    }

private:
    sigset_t before_{};
    file_descriptor fd_;
    std::optional<int> first_;
};

/// What a child process gets another way than its parent has it.
struct child_setting {
    std::map<std::string, std::optional<std::string>> variables; ///< environment variables; empty: not set at all
    std::optional<std::string> processors;                       ///< CPU affinity as the kernel writes it: "0-3,8"

    [[nodiscard]] bool empty() const noexcept { return variables.empty() && !processors; }
};

namespace detail {

/// A list of processors as the kernel writes it, "0-3,8"; usage_error for anything else, or beyond CPU_SETSIZE.
[[nodiscard]] inline cpu_set_t parse_processors(const std::string& list) {
    cpu_set_t set;
    CPU_ZERO(&set);
    const char* at = list.c_str();
    const auto number = [&]() -> unsigned long {
        char* end = nullptr;
        const unsigned long value = std::strtoul(at, &end, 10);
        const bool digits = *at >= '0' && *at <= '9';
        if (!digits || value >= CPU_SETSIZE) throw usage_error("'" + list + "' is no list of processors such as 0-3,8");
        at = end;
        return value;
    };
    for (;;) {
        const unsigned long first = number();
        unsigned long last = first;
        if (*at == '-') {
            ++at;
            last = number();
        }
        for (unsigned long cpu = first; cpu <= last; ++cpu) CPU_SET(cpu, &set);
        if (*at == '\0') return set;
        if (*at++ != ',') throw usage_error("'" + list + "' is no list of processors such as 0-3,8");
    }
}

/// The environment block of this process with a setting's variables in their place.
[[nodiscard]] inline std::vector<std::string> environment_block(const child_setting& how) {
    std::vector<std::string> block;
    for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
        const std::string entry = *at;
        if (how.variables.count(entry.substr(0, entry.find('='))) == 0) block.push_back(entry);
    }
    for (const auto& [name, value] : how.variables) {
        if (value) block.push_back(name + '=' + *value);
    }
    return block;
}

} // namespace detail

/// How a process ended, in words: "exit code 3", "signal 11 (Segmentation fault)".
[[nodiscard]] inline std::string describe_wait_status(int status) {
    if (WIFSIGNALED(status)) {
        const char* name = ::strsignal(WTERMSIG(status));
        return "signal " + std::to_string(WTERMSIG(status)) + (name != nullptr ? " (" + std::string(name) + ")" : "");
    }
    return "exit code " + std::to_string(WEXITSTATUS(status));
}

/// A child process that tells its parent line by line, through a pipe, what it is doing. Its standard output goes to
/// standard error, so that the parent's machine output stays alone. It dies with its parent (PR_SET_PDEATHSIG), and
/// its destructor kills and reaps it.
class child_process {
public:
    /// Starts `program` with `arguments` (the first is its name). "{fd}" in an argument becomes the number of the
    /// descriptor to write lines to. Throws plumbline::error when no process can be made; a program that cannot be
    /// executed, or a setting that cannot be given to it, says so as a line "error ...".
    child_process(const std::string& program, std::vector<std::string> arguments, const sigset_t& mask,
                  const child_setting& how = {}) {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_system("cannot make a pipe");
        lines_ = file_descriptor(ends[0]);
        file_descriptor write_end(ends[1]);
        ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
        for (std::string& argument : arguments) {
            const std::size_t at = argument.find("{fd}");
            if (at != std::string::npos) argument.replace(at, 4, std::to_string(ends[1]));
        }
        // Everything that allocates is done before the fork: only async-signal-safe calls follow it.
        std::vector<char*> argv;
        for (std::string& argument : arguments) argv.push_back(argument.data());
        argv.push_back(nullptr);
        std::vector<std::string> block = detail::environment_block(how);
        std::vector<char*> variables;
        for (std::string& entry : block) variables.push_back(entry.data());
        variables.push_back(nullptr);
        start_arguments start{program.c_str(), argv.data(), variables.data(), ends[1], ::getpid(), &mask, {}, {}, {}};
        if (how.processors) start.processors = detail::parse_processors(*how.processors);
        start.refused = "error 6 this process may not use the processors " + how.processors.value_or("") + '\n';
        start.failed = "error 6 cannot start " + program + ": check that it exists and is executable\n";
        pid_ = ::fork();
        if (pid_ < 0) throw_system("cannot start a session process");
        if (pid_ == 0) start_child(start);
    }
    child_process(const child_process&) = delete;
    child_process& operator=(const child_process&) = delete;
    ~child_process() {
        if (pid_ > 0 && !status_) {
            ::kill(pid_, SIGKILL);
            wait(true);
        }
    }

    [[nodiscard]] int fd() const noexcept { return lines_.get(); }
    [[nodiscard]] pid_t pid() const noexcept { return pid_; }

    /// The complete lines that have come since the last call; `ended` is set at end of file.
    [[nodiscard]] std::vector<std::string> take_lines(bool& ended) {
        std::array<char, 4096> block{};
        for (;;) {
            const ssize_t got = ::read(lines_.get(), block.data(), block.size());
            if (got > 0) {
                pending_.append(block.data(), static_cast<std::size_t>(got));
                continue;
            }
            if (got == 0) ended = true;
            if (got < 0 && errno == EINTR) continue;
            break;
        }
        std::vector<std::string> lines;
        for (std::size_t end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n')) {
            lines.push_back(pending_.substr(0, end));
            pending_.erase(0, end + 1);
        }
        return lines;
    }

    /// The wait status once it has ended; `block` waits for that.
    std::optional<int> wait(bool block) noexcept {
        int status = 0;
        while (!status_) {
            const pid_t got = ::waitpid(pid_, &status, block ? 0 : WNOHANG);
            if (got == pid_) status_ = status;
            if (got == pid_ || got == 0 || errno != EINTR) break;
        }
        return status_;
    }

    /// Asks it to end, kills it if it has not within `grace`, and waits for the end.
    void stop(std::chrono::milliseconds grace) noexcept {
        if (status_) return;
        ::kill(pid_, SIGTERM);
        const auto until = std::chrono::steady_clock::now() + grace;
        while (!wait(false) && std::chrono::steady_clock::now() < until) ::poll(nullptr, 0, 10);
        if (!status_) {
            ::kill(pid_, SIGKILL);
            wait(true);
        }
    }

private:
    [[noreturn]] static void throw_system(const char* what) {
        throw error(std::string(what) + ": " + std::strerror(errno), exit_code::precondition);
    }

    /// All that the child needs, made before the fork.
    struct start_arguments {
        const char* program;
        char* const* argv;
        char* const* variables;
        int line_fd;
        pid_t parent;
        const sigset_t* mask;
        std::optional<cpu_set_t> processors;
        std::string refused; ///< said when the processors cannot be had
        std::string failed;  ///< said when the program cannot be executed
    };

    [[noreturn]] static void start_child(const start_arguments& how) noexcept {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != how.parent) ::_exit(127); // the parent died before the line above
        ::dup2(STDERR_FILENO, STDOUT_FILENO);
        ::fcntl(how.line_fd, F_SETFD, 0); // this one descriptor stays open in the new program
        ::sigprocmask(SIG_SETMASK, how.mask, nullptr);
        const bool refused = how.processors && ::sched_setaffinity(0, sizeof *how.processors, &*how.processors) != 0;
        if (!refused) ::execve(how.program, how.argv, how.variables);
        const std::string& problem = refused ? how.refused : how.failed;
        [[maybe_unused]] const ssize_t ignored = ::write(how.line_fd, problem.data(), problem.size());
        ::_exit(127);
    }

    pid_t pid_ = -1;
    file_descriptor lines_;
    std::string pending_;
    std::optional<int> status_;
};

/// Writes one line for the parent; a parent that no longer listens is not the child's problem.
inline void tell_parent(int fd, std::string line) noexcept {
    if (fd < 0) return;
    line += '\n';
    std::size_t done = 0;
    while (done < line.size()) {
        const ssize_t wrote = ::write(fd, line.data() + done, line.size() - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return;
        done += static_cast<std::size_t>(wrote);
    }
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
