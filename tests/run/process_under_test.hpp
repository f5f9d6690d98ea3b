// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_RUN_PROCESS_UNDER_TEST_HPP
#define PLUMBLINE_TESTS_RUN_PROCESS_UNDER_TEST_HPP

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

/// How a program under test ended.
struct ended {
    int code = -1;   ///< exit code, or 128 + the signal that ended it
    std::string out; ///< standard output
    std::string err; ///< standard error
};

/// A folder of its own for one test case, removed at its end.
class test_folder {
public:
    test_folder() {
        std::string name = (std::filesystem::temp_directory_path() / "plumbline-test-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
        path_ = name;
    }
    test_folder(const test_folder&) = delete;
    test_folder& operator=(const test_folder&) = delete;
    ~test_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    [[nodiscard]] std::string text() const { return path_.string(); }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

[[nodiscard]] inline std::string contents(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

[[nodiscard]] inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

[[nodiscard]] inline std::size_t lines_of(const std::string& text) {
    std::size_t lines = 0;
    for (char c : text) lines += c == '\n' ? 1 : 0;
    return lines;
}

/// A program under test while it runs.
class running {
public:
    running(const std::string& program, std::vector<std::string> arguments,
            const std::map<std::string, std::string>& variables, const std::string& working_folder = {}) {
        arguments.insert(arguments.begin(), program);
        std::vector<char*> argv;
        for (std::string& each : arguments) argv.push_back(each.data());
        argv.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ < 0) throw std::runtime_error("fork failed");
        if (pid_ > 0) return;
        for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
        if (!working_folder.empty() && ::chdir(working_folder.c_str()) != 0) ::_exit(126);
        for (int fd : {STDOUT_FILENO, STDERR_FILENO}) {
            const std::string& file = fd == STDOUT_FILENO ? out_ : err_;
            ::dup2(::open((folder_ / file).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), fd);
        }
        ::execv(program.c_str(), argv.data());
        ::_exit(127);
    }
    running(const running&) = delete;
    running& operator=(const running&) = delete;
    ~running() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }

    void signal(int number) const { ::kill(pid_, number); }
    [[nodiscard]] std::string err() const { return contents(folder_ / err_); }

    /// Waits until standard error holds the text; false when it has not within a minute.
    [[nodiscard]] bool says(const std::string& text) const {
        for (int i = 0; i < 6000 && !contains(err(), text); ++i) ::poll(nullptr, 0, 10);
        return contains(err(), text);
    }

    ended wait() {
        int status = 0;
        ::waitpid(std::exchange(pid_, -1), &status, 0);
        const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        return {code, contents(folder_ / out_), err()};
    }

private:
    test_folder folder_;
    std::string out_ = "out";
    std::string err_ = "err";
    pid_t pid_ = -1;
};

/// Runs a program to its end.
inline ended run_program(const std::string& program, std::vector<std::string> arguments,
                         const std::map<std::string, std::string>& variables = {},
                         const std::string& working_folder = {}) {
    return running(program, std::move(arguments), variables, working_folder).wait();
}

#endif
