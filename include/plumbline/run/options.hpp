// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_OPTIONS_HPP
#define PLUMBLINE_RUN_OPTIONS_HPP

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/core/scalar.hpp"
#include "plumbline/workload/modes.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// What a call of the program is for.
enum class action {
    measure,     ///< run the suite, print the table
    baseline,    ///< the same after a preflight, and write (or extend) the baseline
    compare,     ///< run a baseline's benchmarks and compare
    control,     ///< measure this program and another stack's in alternation, and compare
    check,       ///< the environment check alone
    fingerprint, ///< the fingerprint as JSON
    self_test,   ///< A/A and planted slowdowns
    predict,     ///< what the libraries here would run for a baseline, without its device
    list,        ///< benchmark ids, one a line
    help,        ///< text() is all there is to do
    session,     ///< hidden: this process is the child that runs one session
};

/// The form of what a program writes at its end.
enum class output_format { text, json, markdown, junit, github, google };

/// Hidden options: how a parent starts a session (run/child.hpp).
struct child_options {
    std::filesystem::path plan;     ///< one-session baseline: the order to run in, and results to compare with
    std::filesystem::path result;   ///< one-session baseline that the child writes after each benchmark
    int progress_fd = -1;           ///< where the child says what it is doing, one line each; -1: nowhere
    double budget_s = 1;            ///< seconds a benchmark may take
    std::optional<double> finish_s; ///< no benchmark is begun later than this many seconds after the start
    std::string inspect;            ///< "quick" or "full": readings for checks at the end of the session
    std::optional<double> planted;  ///< share of a sample that is added as a spin, 0 included (--self-test)
};

/// The command line, checked for everything that can be known without looking at the machine.
struct options {
    action what = action::measure;
    std::filesystem::path
        file; ///< of --baseline=, --compare=, --control= or --predict=; empty: found by the naming rule
    std::vector<double> planted{0.01, 0.02, 0.05}; ///< slowdowns that --self-test plants, as shares
    bool full_check = false;                       ///< --check=full
    std::string suite;  ///< "quick", "standard", "full" or a file; empty: the default of the action
    std::string filter; ///< regular expression; a leading '-' selects what does not match
    std::string backend = "auto";
    std::filesystem::path data;          ///< --data=: the user's images or records, absolute; empty: generated ones
    std::optional<int> device = 0;       ///< empty: all
    std::optional<std::size_t> sessions; ///< empty: the default of the action
    std::optional<double> time_budget_s;
    std::filesystem::path save;
    std::filesystem::path output; ///< empty: standard output
    output_format format = output_format::text;
    std::filesystem::path google_output;         ///< --benchmark_out=
    bool search = false;                         ///< the best plan beside the library's own choice
    std::optional<workload::plan_choice> replay; ///< with a comparison: which recorded plans are timed again
    bool append = false;
    bool replace = false;
    bool strict = false;
    bool quiet = false;
    bool resume = false;
    bool force = false;
    std::string reason;              ///< of --replace
    std::filesystem::path policy;    ///< of a comparison; empty: the defaults
    std::filesystem::path knowledge; ///< what the user knows of settings; empty: what is built in alone
    bool confirm = false;            ///< --compare: set causes back and forth
    scalar_map labels;               ///< --label KEY=VALUE
    std::string help;                ///< text to print with action::help
    child_options child;             ///< with action::session
};

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
