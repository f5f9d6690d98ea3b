// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_GBENCH_MAIN_HPP
#define PLUMBLINE_GBENCH_MAIN_HPP

#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <regex>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "plumbline/compare/merge.hpp"
#include "plumbline/core/error.hpp"
#include "plumbline/gbench/reporter.hpp"
#include "plumbline/gbench/session.hpp"
#include "plumbline/json/store.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace gbench {

/// What plumbline's own flags of a Google Benchmark program say.
struct main_options {
    std::filesystem::path out; ///< --plumbline_out=FILE, else $PLUMBLINE_OUT; empty: no file
    bool append = false;       ///< --plumbline_append: adds this process as one more session to an existing file
    bool list = false;         ///< --benchmark_list_tests was given
};

namespace detail {

inline constexpr const char* help_text =
    "          [--plumbline_out=<file>]   baseline file to write: all samples and the environment ($PLUMBLINE_OUT)\n"
    "          [--plumbline_append]       add this process as one more session to an existing file\n";

/// The value of "--NAME=value", "true" for a bare "--NAME", nothing for another argument.
[[nodiscard]] inline std::optional<std::string> flag_value(std::string_view argument, std::string_view name) {
    if (argument.substr(0, 2) != "--") return std::nullopt;
    argument.remove_prefix(2);
    if (argument == name) return "true";
    if (argument.substr(0, name.size()) != name || argument.substr(name.size(), 1) != "=") return std::nullopt;
    return std::string(argument.substr(name.size() + 1));
}

[[nodiscard]] inline bool is_true(const std::string& value) {
    return value == "true" || value == "1" || value == "yes" || value == "on";
}

/// Google Benchmark says a bad expression on standard error, runs nothing and ends with 0; this is exit code 2.
inline void check_filter(std::string_view filter) {
    if (filter.substr(0, 1) == "-") filter.remove_prefix(1); // its sign for "all but these"
    try {
        const std::regex compiled{std::string(filter)};
    } catch (const std::regex_error& e) {
        throw usage_error("--benchmark_filter=" + std::string(filter) + " is not a regular expression: " + e.what());
    }
}

/// Takes plumbline's flags out of the arguments and looks at those of Google Benchmark that matter here.
[[nodiscard]] inline main_options take_options(std::vector<char*>& arguments) {
    main_options found;
    if (const char* out = std::getenv("PLUMBLINE_OUT")) found.out = out;
    std::vector<char*> rest;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        if (const auto out = i > 0 ? flag_value(argument, "plumbline_out") : std::nullopt) {
            if (*out == "true" || out->empty()) throw usage_error("--plumbline_out needs a file: --plumbline_out=FILE");
            found.out = *out;
        } else if (const auto append = i > 0 ? flag_value(argument, "plumbline_append") : std::nullopt) {
            found.append = is_true(*append);
        } else {
            if (const auto list = flag_value(argument, "benchmark_list_tests")) found.list = is_true(*list);
            if (const auto filter = flag_value(argument, "benchmark_filter")) check_filter(*filter);
            rest.push_back(arguments[i]);
        }
    }
    if (found.append && found.out.empty()) {
        throw usage_error("--plumbline_append needs a file: give --plumbline_out=FILE as well");
    }
    arguments = rest;
    return found;
}

/// Finds out before measuring whether the file can be written, and whether it may be.
inline void check_output(const main_options& how) {
    if (how.out.empty()) return;
    if (std::filesystem::exists(how.out) && !how.append) {
        throw usage_error(how.out.string() + " exists. Give --plumbline_append to add a session to it, compare another "
                                             "file with it (bench-compare), or remove it first");
    }
    if (std::filesystem::exists(how.out)) static_cast<void>(json::load(how.out)); // a file that cannot be added to
    json::check_writable(how.out);
}

inline void write(const main_options& how, result::baseline measured) {
    if (how.append && std::filesystem::exists(how.out)) {
        measured = compare::merge({json::load(how.out), measured});
    }
    json::save(how.out, measured);
    std::error_code ignored;
    std::filesystem::remove(json::partial_path(how.out), ignored);
}

/// Runs everything once the flags are known.
template <class B>
[[nodiscard]] exit_code run_all(session<B>& on, const main_options& how) {
    if (!how.out.empty() && !how.list) {
        // A benchmark that hangs or kills the process costs itself and not those before it.
        on.after_each([&on, &how] { json::save(json::partial_path(how.out), on.baseline()); });
    }
    reporter shown(*::benchmark::CreateDefaultDisplayReporter(), on.measured());
    const std::size_t matched = ::benchmark::RunSpecifiedBenchmarks(&shown);
    ::benchmark::Shutdown();
    if (how.list) return exit_code::ok;
    if (matched == 0) {
        std::cerr << "plumbline: no benchmark matched the filter, nothing was measured\n";
        return exit_code::incomplete;
    }
    if (!how.out.empty()) {
        write(how, on.baseline());
        std::cerr << "plumbline: wrote " << how.out.string() << '\n';
    }
    return on.measured().failed() ? exit_code::incomplete : exit_code::ok;
}

} // namespace detail

/// The main function of a Google Benchmark program: runs the registered benchmarks, shows what Google Benchmark shows,
/// and writes the baseline that --plumbline_out or $PLUMBLINE_OUT names.
///
/// Returns what the program must end with: 0; 2 for a bad flag, expression or file; 4 when a benchmark failed or
/// none matched (Google Benchmark's own main ends with 0 for both). Honours NO_COLOR. Writes its messages to standard
/// error. A front door: it prints and catches, which the rest of the library never does.
template <class B>
[[nodiscard]] int main(int argc, char** argv, session<B>& on) {
    try {
        std::vector<char*> arguments(argv, argv + argc);
        const main_options how = detail::take_options(arguments);
        const char* no_color = std::getenv("NO_COLOR");
        std::string plain = "--benchmark_color=false";
        // In front, so that a flag of the user's overrides it.
        if (no_color != nullptr && *no_color != '\0') arguments.insert(arguments.begin() + 1, plain.data());
        int count = static_cast<int>(arguments.size());
        arguments.push_back(nullptr);
        ::benchmark::Initialize(&count, arguments.data(), [] {
            ::benchmark::PrintDefaultHelp();
            std::cout << detail::help_text;
        });
        if (::benchmark::ReportUnrecognizedArguments(count, arguments.data())) {
            return static_cast<int>(exit_code::usage);
        }
        if (!how.list) detail::check_output(how);
        return static_cast<int>(detail::run_all(on, how));
    } catch (const error& e) {
        std::cerr << "plumbline: " << e.what() << '\n';
        return static_cast<int>(e.code());
    } catch (const std::exception& e) {
        std::cerr << "plumbline: " << e.what() << '\n';
        return static_cast<int>(exit_code::incomplete);
    }
}

} // namespace gbench

PLUMBLINE_NAMESPACE_END

#endif
