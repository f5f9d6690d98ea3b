// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_PROGRAM_HPP
#define PLUMBLINE_RUN_PROGRAM_HPP

#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "plumbline/run/backend_choice.hpp"
#include "plumbline/run/check_command.hpp"
#include "plumbline/run/child.hpp"
#include "plumbline/run/command_line.hpp"
#include "plumbline/run/compare_command.hpp"
#include "plumbline/run/context.hpp"
#include "plumbline/run/device_siblings.hpp"
#include "plumbline/run/measure_command.hpp"
#include "plumbline/run/predict_command.hpp"
#include "plumbline/run/self_test.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

namespace detail {

[[nodiscard]] inline exit_code run_command(const context& in, const target_device& device) {
    switch (in.how.what) {
    case action::compare:
        return compare_command(in, device);
    case action::control:
        return control_command(in, device);
    case action::check:
        return check_command(in, device);
    case action::fingerprint:
        return fingerprint_command(in, device);
    case action::self_test:
        return self_test_command(in, device);
    default:
        return measure_command(in, device);
    }
}

/// All devices that were asked for, one after the other.
[[nodiscard]] inline exit_code run_devices(context in) {
    const std::vector<target_device> devices = find_devices(in);
    const bool one_file =
        !in.how.file.empty() || !in.how.save.empty() || !in.how.output.empty() || !in.how.google_output.empty();
    if (devices.size() > 1 && one_file && in.how.what != action::control) {
        throw usage_error("--device=all measures " + std::to_string(devices.size()) +
                          " devices, each into a file of "
                          "its own: name no file, or give --device=N");
    }
    std::vector<finished_device> finished;
    if (devices.size() > 1) in.finished = &finished;
    exit_code code = exit_code::ok;
    for (const target_device& device : devices) {
        if (devices.size() > 1) {
            in.remarks.note("device " + std::to_string(device.number) + ": " + device.device.model);
        }
        try {
            code = worse(code, run_command(in, device));
        } catch (const error& e) {
            if (devices.size() == 1) throw;
            in.remarks.warn(e.what()); // one broken device must not hide what the others do
            code = worse(code, e.code());
        }
        if (code == exit_code::interrupted || code == exit_code::terminated) return code;
    }
    tell_siblings(in.remarks, std::move(finished));
    return code;
}

[[nodiscard]] inline exit_code run_session_child(const std::vector<driver>& drivers, const options& how) {
    const driver* on = find_driver(drivers, how.backend);
    if (on == nullptr) {
        tell_parent(how.child.progress_fd,
                    "error 6 this program has no backend '" + how.backend + "' (it has: " + names_of(drivers) + ")");
        return exit_code::precondition;
    }
    environment::host machine = machine_of(*on, how.device.value_or(0));
    machine.data = how.data.string();
    return run_child(*on, how, std::move(machine));
}

[[nodiscard]] inline progress::style progress_style(const options& how) {
    if (how.quiet) return progress::style::silent;
    return ::isatty(STDERR_FILENO) == 1 ? progress::style::terminal : progress::style::lines;
}

[[nodiscard]] inline exit_code run_checked(const program_settings& settings, const std::vector<driver>& drivers,
                                           const options& how) {
    const environment::host here = settings.machine ? settings.machine() : environment::this_machine("cpu");
    const bool colour = report::wants_colour(::isatty(STDERR_FILENO) == 1);
    progress remarks(settings.remarks, progress_style(how), colour);
    const backend_choice choice = choose_backend(drivers, how.backend, here);
    if (!choice.remark.empty() && how.what != action::list) remarks.note(choice.remark);
    interrupt_watch signals;
    const context in{settings, how, *choice.chosen, remarks, settings.output, signals, here.variables};
    if (how.what != action::list) return run_devices(in);
    std::string text;
    for (const std::string& id : choose_benchmarks(in, "standard").ids) text += id + "\n";
    write_report(in, text);
    return exit_code::ok;
}

/// The program behind the templates: every error ends here, as one line on standard error and an exit code.
[[nodiscard]] inline int run_program(int argc, const char* const* argv, const program_settings& settings,
                                     const std::vector<driver>& drivers) noexcept {
    // A closed pipe and a file at its size limit are then errors with a message; what was measured is not lost to them.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    try {
        const options how = parse_command_line(argc, argv, settings.name);
        if (how.what == action::help) {
            settings.output << how.help << std::flush;
            return 0;
        }
        if (how.what == action::session) return static_cast<int>(run_session_child(drivers, how));
        if (how.what == action::predict) return static_cast<int>(predict_command(settings, drivers, how));
        return static_cast<int>(run_checked(settings, drivers, how));
    } catch (const error& e) {
        settings.remarks << settings.name << ": error: " << e.what() << std::endl;
        return static_cast<int>(e.code());
    } catch (const std::exception& e) {
        settings.remarks << settings.name << ": error: " << e.what() << std::endl;
        return static_cast<int>(exit_code::incomplete);
    }
}

} // namespace detail

/// The whole of a bench program: `int main(int argc, char** argv) { return run::program(argc, argv,
/// {std::cout, std::cerr}, entry::cuda(), entry::cpu()); }`. Each entry is a backend_entry<B>; the order matters only
/// for messages. The same program, started with hidden options by itself, is the session child. Never throws; returns
/// an exit_code.
template <class... Backends>
[[nodiscard]] int program(int argc, char** argv, const program_settings& settings, backend_entry<Backends>... entries) {
    std::optional<int> served;
    ((served = served || !entries.serve ? served : entries.serve(argc, argv)), ...);
    if (served) return *served;
    std::vector<driver> drivers;
    (drivers.push_back(erase(std::move(entries))), ...);
    for (driver& each : drivers) {
        each.machine = [inner = each.machine, name = each.name, build = settings.build](int device) {
            environment::host machine = inner ? inner(device) : environment::this_machine(name);
            machine.build = build;
            return machine;
        };
    }
    return detail::run_program(argc, argv, settings, drivers);
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
