// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_MACHINE_COLD_START_HPP
#define PLUMBLINE_CUDA_MACHINE_COLD_START_HPP

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plumbline/cuda/backend.hpp"
#include "plumbline/cuda/gemm.hpp"
#include "plumbline/cuda/machine/repeat.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// What a process pays once. It can be measured only in a process that has not touched CUDA yet, so the program
/// starts itself again: its main must begin with
///
///     if (const auto code = plumbline::cuda::machine::serve_cold_start(argc, argv)) return *code;
namespace cuda::machine {

/// Host times of a process's first steps on a device, ns.
struct cold_start {
    double context = 0;      ///< creating the context
    double first_launch = 0; ///< then an empty kernel, until it is done: loading the program's code
    double library = 0;      ///< then a small cublasLt product, set up and run: loading the library's code
};

/// The hidden option that asks a program for a cold start: OPTION=FD,DEVICE.
inline constexpr std::string_view cold_start_option = "--plumbline-cold-start=";

/// Set in the environment of such a process, so that a program that does not serve the option and measures instead
/// cannot start itself without end.
inline constexpr const char* cold_start_variable = "PLUMBLINE_COLD_START";

/// Measures in this process; only the first call that touches CUDA in a process means anything.
[[nodiscard]] inline cold_start measure_cold_start(int device) {
    cold_start taken;
    taken.context = host_time_ns([&] {
        check(cudaSetDevice(device), "cudaSetDevice", "device " + std::to_string(device));
        check(cudaFree(nullptr), "cudaFree"); // up to CUDA 11 the context came with the first real call
    });
    taken.first_launch = host_time_ns([&] {
        kernels::nothing(nullptr);
        check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
    });
    backend on(device); // not timed: what it tries out is no part of a usual start
    workload::gemm::params p;
    p.m = p.n = p.k = 512;
    taken.library = host_time_ns([&] {
        gemm product(on, p, 1);
        product.run(on, 0);
        on.synchronize();
    });
    return taken;
}

namespace detail {

inline void write_all(int fd, std::string_view text) noexcept {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return; // the parent is gone: nobody to tell
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

/// Three numbers, in the C locale whatever the program has set.
inline std::string to_text(const cold_start& taken) {
    return "ok " + to_string(scalar(taken.context)) + ' ' + to_string(scalar(taken.first_launch)) + ' ' +
           to_string(scalar(taken.library)) + '\n';
}

inline std::optional<cold_start> parse_cold_start(std::string_view text) {
    if (text.substr(0, 3) != "ok ") return std::nullopt;
    cold_start taken;
    const char* at = text.data() + 3;
    const char* const end = text.data() + text.size();
    for (double* value : {&taken.context, &taken.first_launch, &taken.library}) {
        while (at != end && *at == ' ') ++at;
        const auto [stop, failure] = std::from_chars(at, end, *value);
        if (failure != std::errc{} || !(*value > 0)) return std::nullopt;
        at = stop;
    }
    return taken;
}

/// All that comes out of `fd` until its end or until `seconds` have passed; nothing in the latter case.
inline std::optional<std::string> read_until_end(int fd, int seconds) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    std::string text;
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(give_up - std::chrono::steady_clock::now()).count();
        pollfd waiting{fd, POLLIN, 0};
        const int ready = left > 0 ? ::poll(&waiting, 1, static_cast<int>(left)) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return std::nullopt;
        char part[512];
        const ssize_t got = ::read(fd, part, sizeof part);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return text;
        text.append(part, static_cast<std::size_t>(got));
        if (text.size() > 65536) return text; // not one of ours
    }
}

/// Starts this program again with the option and returns what it wrote.
inline std::string run_again(int device) {
    if (std::getenv(cold_start_variable) != nullptr) {
        throw unsupported_error("this process is itself a cold start");
    }
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw error(std::string("cold start: pipe: ") + std::strerror(errno));
    const int write_end = ::fcntl(ends[1], F_DUPFD, 3); // without close-on-exec: the child's
    ::close(ends[1]);
    if (write_end < 0) {
        ::close(ends[0]);
        throw error(std::string("cold start: fcntl: ") + std::strerror(errno));
    }
    std::string option = std::string(cold_start_option) + std::to_string(write_end) + ',' + std::to_string(device);
    std::string program = "/proc/self/exe";
    char* arguments[] = {program.data(), option.data(), nullptr};
    std::string mark = std::string(cold_start_variable) + "=1";
    std::vector<char*> variables;
    for (char** each = ::environ; *each != nullptr; ++each) variables.push_back(*each);
    variables.push_back(mark.data());
    variables.push_back(nullptr);
    pid_t child = -1;
    // A program that does not serve the option must not write among this one's output.
    posix_spawn_file_actions_t silent;
    int failed = ::posix_spawn_file_actions_init(&silent);
    for (int stream : {1, 2}) {
        if (failed == 0) failed = ::posix_spawn_file_actions_addopen(&silent, stream, "/dev/null", O_WRONLY, 0);
    }
    if (failed == 0) failed = ::posix_spawn(&child, program.c_str(), &silent, nullptr, arguments, variables.data());
    static_cast<void>(::posix_spawn_file_actions_destroy(&silent));
    ::close(write_end);
    std::optional<std::string> said;
    if (failed == 0) {
        constexpr int seconds = 60;
        said = read_until_end(ends[0], seconds);
        if (!said) ::kill(child, SIGKILL);
        int status = 0;
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    }
    ::close(ends[0]);
    if (failed != 0) throw error(std::string("cold start: cannot start this program again: ") + std::strerror(failed));
    if (!said) throw error("cold start: a fresh process did not reach the device within 60 s and was stopped");
    return *said;
}

/// One cold start in a fresh process.
inline cold_start start_cold(int device) {
    const std::string said = run_again(device);
    if (const auto taken = parse_cold_start(said)) return *taken;
    if (said.substr(0, 6) == "error ") throw error("cold start: " + said.substr(6));
    throw unsupported_error("this program does not measure cold starts: its main must begin with serve_cold_start");
}

} // namespace detail

/// Does what the hidden option asks for and returns the exit code, or nothing when argv does not ask.
[[nodiscard]] inline std::optional<int> serve_cold_start(int argc, char** argv) {
    if (argc != 2) return std::nullopt;
    const std::string_view given = argv[1];
    if (given.substr(0, cold_start_option.size()) != cold_start_option) return std::nullopt;
    const char* const end = given.data() + given.size();
    int fd = -1;
    int device = -1;
    const auto first = std::from_chars(given.data() + cold_start_option.size(), end, fd);
    if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ',') return static_cast<int>(exit_code::usage);
    if (std::from_chars(first.ptr + 1, end, device).ec != std::errc{}) return static_cast<int>(exit_code::usage);
    try {
        detail::write_all(fd, detail::to_text(measure_cold_start(device)));
        return static_cast<int>(exit_code::ok);
    } catch (const std::exception& failure) {
        detail::write_all(fd, std::string("error ") + failure.what() + '\n');
        return static_cast<int>(exit_code::incomplete);
    }
}

/// cold_context: metric "time"; cold_first_launch: metrics "time" (program's code) and "library". Each sample is a
/// fresh process of about a second, so a short budget allows one; several sessions give several.
[[nodiscard]] inline measure::procedure_result cold(backend& on, bool context, const measure::budget& time) {
    std::vector<double> first;
    std::vector<double> second;
    const auto once = [&] {
        const cold_start taken = detail::start_cold(on.device().ordinal);
        if (!context) second.push_back(taken.library);
        return context ? taken.context : taken.first_launch;
    };
    first = repeat(time, 1, once, 10);
    measure::procedure_result found;
    found.metrics.push_back(time_metric("time", std::move(first)));
    if (!context) found.metrics.push_back(time_metric("library", std::move(second)));
    const char* loading = std::getenv("CUDA_MODULE_LOADING");
    found.ran.implementation = std::string("module loading ") + (loading == nullptr ? "default" : loading);
    return found;
}

} // namespace cuda::machine

PLUMBLINE_NAMESPACE_END

#endif
