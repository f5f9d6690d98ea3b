// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_CONTEXT_HPP
#define PLUMBLINE_RUN_CONTEXT_HPP

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plumbline/core/file_descriptor.hpp"
#include "plumbline/environment/collect.hpp"
#include "plumbline/json/file.hpp"
#include "plumbline/run/backend_choice.hpp"
#include "plumbline/run/driver.hpp"
#include "plumbline/run/options.hpp"
#include "plumbline/run/paths.hpp"
#include "plumbline/run/process.hpp"
#include "plumbline/run/progress.hpp"
#include "plumbline/run/session.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// What a program brings along beside its backends.
struct program_settings {
    program_settings(std::ostream& report, std::ostream& people) : output(report), remarks(people) {}

    std::ostream& output;  ///< the report: std::cout
    std::ostream& remarks; ///< progress, remarks and errors for people: std::cerr
    std::string name = "bench";
    std::map<std::string, std::string>
        suites; ///< text of the built-in suites by name; must hold "check" for --check=full

    /// What the program was built with: PLUMBLINE_BUILD_FACTS of environment/binary.hpp, said in its main file.
    scalar_map build;

    /// The machine that backends are chosen on and whose variables are read. Empty: this machine.
    std::function<environment::host()> machine;
};

/// A device that is to be measured, as the parent sees it without opening it.
struct target_device {
    int number = 0;
    environment::host machine;
    result::device device;
};

/// What was measured on one device of several, and the file it is kept in.
struct finished_device {
    std::string name; ///< "device 2 (FILE)"
    result::baseline measured;
};

/// What every command works with.
struct context {
    const program_settings& settings;
    const options& how;
    const driver& on;
    progress& remarks;    ///< for people, on standard error
    std::ostream& output; ///< the report, on standard output
    interrupt_watch& signals;
    std::map<std::string, std::string> variables;     ///< the environment block
    std::vector<finished_device>* finished = nullptr; ///< --device=all: gets what each device did
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

    [[nodiscard]] std::filesystem::path folder() const { return baseline_folder(variables); }
};

/// The machine as the backend's readers see it.
[[nodiscard]] inline environment::host machine_of(const driver& on, int device) {
    return on.machine ? on.machine(device) : environment::this_machine(on.name);
}

[[nodiscard]] inline target_device find_device(const driver& on, int number) {
    target_device found{number, machine_of(on, number), {}};
    found.device = on.identify(found.machine, number);
    found.device.backend = on.name;
    return found;
}

/// The devices that --device names.
[[nodiscard]] inline std::vector<target_device> find_devices(const context& in) {
    std::vector<int> numbers;
    if (in.how.device) {
        numbers.push_back(*in.how.device);
    } else {
        numbers = in.on.devices(machine_of(in.on, 0));
        if (numbers.empty())
            throw environment_error("device", "--device=all: the " + in.on.name +
                                                  " backend sees none; --check says what is missing");
    }
    std::vector<target_device> found;
    for (int number : numbers) found.push_back(find_device(in.on, number));
    return found;
}

/// How long a session may be silent: PLUMBLINE_WATCHDOG_SECONDS, else 120 s and never less than 20 budgets, because
/// a benchmark prepares and verifies beside measuring.
[[nodiscard]] inline std::chrono::seconds silence_limit(const std::map<std::string, std::string>& variables,
                                                        double budget_s) {
    const auto at = variables.find("PLUMBLINE_WATCHDOG_SECONDS");
    if (at != variables.end()) {
        const long asked = std::strtol(at->second.c_str(), nullptr, 10);
        if (asked > 0) return std::chrono::seconds(asked);
        throw usage_error("PLUMBLINE_WATCHDOG_SECONDS='" + at->second +
                          "' is not a number of seconds above 0; write for instance 300");
    }
    return std::chrono::seconds(std::max(120L, static_cast<long>(20 * budget_s)));
}

[[nodiscard]] inline launcher launcher_for(const context& in, int device, double budget_s) {
    launcher how;
    how.name = in.settings.name;
    how.backend = in.on.name;
    how.device = device;
    how.budget_s = budget_s;
    how.data = in.how.data;
    how.silence = silence_limit(in.variables, budget_s);
    return how;
}

/// Writes what the program was asked for: to --output, else to `standard`.
inline void deliver(const options& how, std::ostream& standard, const std::string& text) {
    if (how.output.empty()) {
        standard << text << std::flush;
        if (!standard) throw file_error("standard output", "cannot be written; name a file with --output");
    } else {
        json::write_atomically(how.output, text);
    }
}

/// The same in a run, whose progress line makes room for it.
inline void write_report(const context& in, const std::string& text) {
    in.remarks.clear();
    deliver(in.how, in.output, text);
}

/// Keeps other runs from writing the same file while this one does. The lock is a file FILE.tmp.lock; one that a
/// killed run has left is free again.
class file_lock {
public:
    explicit file_lock(const std::filesystem::path& target) : path_(target.string() + ".tmp.lock") {
        fd_ = file_descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
        if (fd_.get() < 0)
            throw file_error(path_, std::string("cannot be made: ") + std::strerror(errno) +
                                        "; choose a file in a folder that can be written");
        struct stat ours {
        }, named{};
        const bool locked = ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0;
        // Between open and flock the run before this one may have removed the file: then the lock is worth nothing.
        const bool same =
            ::fstat(fd_.get(), &ours) == 0 && ::stat(path_.c_str(), &named) == 0 && ours.st_ino == named.st_ino;
        if (!locked || !same) {
            throw error(target.string() + " is being written by another run; wait for it, or choose another file",
                        exit_code::precondition);
        }
    }
    file_lock(const file_lock&) = delete;
    file_lock& operator=(const file_lock&) = delete;
    ~file_lock() { ::unlink(path_.c_str()); }

private:
    std::string path_;
    file_descriptor fd_;
};

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
