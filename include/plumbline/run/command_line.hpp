// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_COMMAND_LINE_HPP
#define PLUMBLINE_RUN_COMMAND_LINE_HPP

#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "plumbline/core/error.hpp"
#include "plumbline/core/nearest.hpp"
#include "plumbline/core/utf8.hpp"
#include "plumbline/run/completion.hpp"
#include "plumbline/run/options.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

namespace detail {

/// The command line as text, before it is checked.
struct raw_options {
    std::string baseline, compare, check, control, device = "0", format = "text";
    std::string google_filter, google_list, google_format, google_out_format = "json";
    std::string predict, planted, data, completion, replay;
    bool fingerprint = false, self_test = false, list = false, version = false;
    std::size_t sessions = 0;
    double time_budget_s = 0;
    std::vector<std::string> labels;
};

inline constexpr const char* help_epilogue =
    "Examples:\n"
    "  bench --baseline                          measure this device and keep the result as what it should do\n"
    "  bench --compare                           the same benchmarks again: what changed, and why\n"
    "  bench --suite=quick --filter=gemm/bf16    a part of a suite, as a table\n"
    "  bench --baseline --append                 more sessions for a baseline, of another day or boot\n"
    "  bench --baseline --device=all             every device into a baseline of its own, and the odd one named\n\n"
    "Files: a baseline is <device>-<hash>.json in $PLUMBLINE_BASELINE_DIR, else in baselines/local/;\n"
    "every other run is kept in its folder runs/ unless --save says where: the newest 100 of each device, or\n"
    "as many as PLUMBLINE_KEEP says.\n"
    "Exit codes: 0 all well, 1 regressed, 2 usage or input, 3 not comparable, 4 incomplete or wrong,\n"
    "5 inconclusive (--strict), 6 precondition not met, 130/143 interrupted (--resume goes on).\n"
    "With bench-compare two files are compared anywhere, and --accept takes a wanted change into a baseline.\n"
    "PLUMBLINE_WATCHDOG_SECONDS: how long a session may be silent before it is stopped (default 120).";

inline void add_actions(CLI::App& app, options& asked, raw_options& raw) {
    const auto optional_file = [&](const char* name, std::string& into, const char* text, const char* value) {
        app.add_option(name, into, text)->expected(0, 1)->option_text(value)->group("What to do");
    };
    optional_file("--baseline", raw.baseline, "preflight check, run, write the baseline", "[=FILE]");
    optional_file("--compare", raw.compare,
                  "run a baseline's benchmarks, compare, explain; without FILE: this device's", "[=FILE]");
    optional_file("--check", raw.check, "the environment check alone", "[=quick|full]");
    app.add_option("--control", raw.control,
                   "measure another stack's bench program in alternation with this one and compare")
        ->option_text("=PROGRAM")
        ->group("What to do");
    app.add_flag("--fingerprint", raw.fingerprint, "the fingerprint as JSON")->group("What to do");
    app.add_flag("--self-test", raw.self_test,
                 "which slowdowns are found here: the device against itself, and with slowdowns planted")
        ->group("What to do");
    app.add_option("--planted", raw.planted, "those that --self-test plants, in percent (default 1,2,5)")
        ->option_text("=P[,P...]")
        ->group("What to do");
    app.add_flag("--list", raw.list, "benchmark ids, one a line")->group("What to do");
    app.add_option("--completion", raw.completion, "completion script: source <(bench --completion=bash)")
        ->option_text("=bash|zsh")
        ->group("What to do");
    app.add_flag("--version", raw.version, "the version")->group("What to do");
    app.add_flag("--confirm", asked.confirm,
                 "with --compare: set what changed back and forth, where that can be done, to prove a cause")
        ->group("What to do");
    app.add_option(
           "--predict", raw.predict,
           "before an upgrade: which of a baseline's convolutions the cuDNN here would run otherwise; needs no GPU")
        ->option_text("=FILE")
        ->group("What to do");
}

inline void add_choices(CLI::App& app, options& into, raw_options& raw) {
    app.add_option("--suite", into.suite, "quick (a minute), standard (five), full (twenty), or a JSON file of ids")
        ->option_text("=quick|standard|full|FILE");
    app.add_option("--filter", into.filter, "only ids that match; -REGEX: only those that do not")
        ->option_text("=REGEX");
    app.add_option("--backend", into.backend, "auto: cuda where there is NVIDIA hardware, else cpu")
        ->option_text("=auto|cuda|cpu");
    app.add_option("--data", raw.data, "folder of images, or .npy or CIFAR-10 records, for the DataLoader")
        ->option_text("=DIR|FILE");
    app.add_option("--device", raw.device, "device number (default 0), or all: one after the other")
        ->option_text("=N|all");
    app.add_option("--sessions", raw.sessions,
                   "how many processes measure, one after the other (default 5; plain runs 3)")
        ->option_text("=K");
    app.add_option("--time-budget", raw.time_budget_s, "seconds the whole run may take")->option_text("=SECONDS");
    app.add_option("--label", raw.labels, "what the process cannot see (image digest, ticket); may be repeated")
        ->expected(1)
        ->take_all()
        ->option_text("=KEY=VALUE");
    app.add_flag("--search", into.search,
                 "also time the best of 16 plans of every benchmark whose library has plans, and what trusting its own "
                 "choice costs");
    app.add_option("--replay", raw.replay,
                   "with --compare: also time the baseline's own plans again (best: those its search found)")
        ->expected(0, 1)
        ->option_text("[=best]");
    app.add_flag("--append", into.append, "add sessions to an existing baseline");
    app.add_flag("--replace", into.replace, "replace an existing baseline; the old one is kept beside it");
    app.add_option("--reason", into.reason, "why it is replaced")->option_text("=TEXT");
    app.add_flag("--resume", into.resume, "go on with an interrupted run");
    app.add_flag("--force", into.force, "go on although a check failed (recorded in the file)");
}

inline void add_outputs(CLI::App& app, options& into, raw_options& raw) {
    app.add_option("--save", into.save, "keep this run's JSON here")->option_text("=FILE")->group("Output");
    app.add_option("--output", into.output, "write the report here instead of to standard output")
        ->option_text("=FILE")
        ->group("Output");
    app.add_option("--format", raw.format, "of the report (default text); the last three for comparisons alone")
        ->option_text("=text|json|markdown|junit|github")
        ->group("Output");
    app.add_option("--policy", into.policy,
                   "margins and accepted changes of a comparison (JSON; bench-compare --print-policy)")
        ->option_text("=FILE")
        ->group("Output");
    app.add_option("--knowledge", into.knowledge,
                   "what settings of your own can slow down (JSON; tools/recipes/knowledge.json)")
        ->option_text("=FILE")
        ->group("Output");
    app.add_flag("--strict", into.strict, "inconclusive counts (exit 5)")->group("Output");
    app.add_flag("--quiet", into.quiet, "no progress, no remarks")->group("Output");
    const char* google = "Google Benchmark's flags";
    app.add_option("--benchmark_filter", raw.google_filter, "as --filter")->option_text("=REGEX")->group(google);
    app.add_option("--benchmark_list_tests", raw.google_list, "as --list")
        ->expected(0, 1)
        ->option_text("[=true|false]")
        ->group(google);
    app.add_option("--benchmark_out", into.google_output, "write Google's JSON here too")
        ->option_text("=FILE")
        ->group(google);
    app.add_option("--benchmark_out_format", raw.google_out_format, "json")->option_text("=json")->group(google);
    app.add_option("--benchmark_format", raw.google_format, "console or json (Google's)")
        ->option_text("=console|json")
        ->group(google);
    app.add_option("--session-plan", into.child.plan)->group("");
    app.add_option("--session-result", into.child.result)->group("");
    app.add_option("--session-progress-fd", into.child.progress_fd)->group("");
    app.add_option("--session-budget", into.child.budget_s)->group("");
    app.add_option("--session-finish", into.child.finish_s)->group("");
    app.add_option("--session-inspect", into.child.inspect)->group("");
    app.add_option("--session-planted", into.child.planted)->group("");
}

/// Throws usage_error for what the parser left over, with the flag that was probably meant.
inline void refuse_unknown(const CLI::App& app, const std::string& program) {
    const std::vector<std::string> left = app.remaining();
    if (left.empty()) return;
    const std::string given = left.front().substr(0, left.front().find('='));
    if (given.rfind('-', 0) != 0) {
        throw usage_error("unexpected argument '" + given + "': " + program +
                          " takes flags only (--suite=, --filter=, "
                          "--baseline=FILE, ...); see " +
                          program + " --help");
    }
    std::vector<std::string> known;
    for (const CLI::Option* each : app.get_options()) {
        if (!each->get_group().empty()) known.push_back(each->get_name());
    }
    const std::string meant = nearest(given, known);
    throw usage_error("unknown flag '" + given + "'" + (meant.empty() ? "" : "; did you mean '" + meant + "'?") + " (" +
                      program + " --help lists all)");
}

/// The shares of --planted=P[,P...]; usage_error unless each is a number of percent above 0, at most 100.
inline std::vector<double> planted_of(const std::string& text) {
    std::vector<double> shares;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        double percent = 0;
        const char* const end = part.data() + part.size();
        const auto [stop, failure] = std::from_chars(part.data(), end, percent);
        if (failure != std::errc{} || stop != end || !(percent > 0 && percent <= 100)) {
            throw usage_error("--planted=" + text + ": '" + part +
                              "' is not a slowdown in percent, above 0 and at "
                              "most 100; write for instance --planted=0.5,1");
        }
        shares.push_back(percent / 100);
    }
    if (shares.empty()) throw usage_error("--planted needs a slowdown in percent, for instance --planted=0.5,1");
    return shares;
}

/// Which action was asked for; usage_error when there is more than one.
inline action chosen_action(const CLI::App& app, const options& into, const raw_options& raw) {
    const auto given = [&](const char* name) { return app.get_option(name)->count() > 0; };
    std::vector<std::pair<std::string, action>> asked;
    if (given("--baseline") || into.append || into.replace) asked.emplace_back("--baseline", action::baseline);
    if (given("--compare")) asked.emplace_back("--compare", action::compare);
    if (given("--control")) asked.emplace_back("--control", action::control);
    if (given("--check")) asked.emplace_back("--check", action::check);
    if (given("--predict")) asked.emplace_back("--predict", action::predict);
    if (raw.fingerprint) asked.emplace_back("--fingerprint", action::fingerprint);
    if (raw.self_test) asked.emplace_back("--self-test", action::self_test);
    const bool google_list = given("--benchmark_list_tests") && raw.google_list != "false" && raw.google_list != "0";
    if (raw.list || google_list) asked.emplace_back("--list", action::list);
    if (asked.size() > 1) {
        throw usage_error(asked[0].first + " and " + asked[1].first + " cannot be combined; choose one of them");
    }
    return asked.empty() ? action::measure : asked[0].second;
}

inline output_format chosen_format(const raw_options& raw, action what) {
    static constexpr std::pair<const char*, output_format> names[]{
        {"text", output_format::text},   {"json", output_format::json},     {"markdown", output_format::markdown},
        {"junit", output_format::junit}, {"github", output_format::github},
    };
    if (raw.google_format == "json") return output_format::google;
    if (!raw.google_format.empty() && raw.google_format != "console") {
        throw usage_error("--benchmark_format=" + raw.google_format + " is not written here; use console or json");
    }
    for (const auto& [name, format] : names) {
        if (raw.format != name) continue;
        const bool plain = format == output_format::text || format == output_format::json;
        if (!plain && what != action::compare && what != action::control) {
            throw usage_error("--format=" + raw.format +
                              " is the form of a comparison; use text or json here, or "
                              "compare two files with bench-compare");
        }
        return format;
    }
    throw usage_error("unknown --format=" + raw.format + "; use text, json, markdown, junit or github");
}

inline void check_filter(const std::string& filter) {
    try {
        (void)std::regex(filter);
    } catch (const std::regex_error& e) {
        throw usage_error("--filter='" + filter + "' is not a regular expression (" + e.what() +
                          "); write one such as 'gemm/(fp32|bf16)'");
    }
}

inline scalar_map parsed_labels(const std::vector<std::string>& texts) {
    scalar_map labels;
    for (const std::string& text : texts) {
        const std::size_t equals = text.find('=');
        if (equals == 0 || equals == std::string::npos) {
            throw usage_error("--label '" + text + "' is not KEY=VALUE; write for instance --label image=sha256:1234");
        }
        labels[valid_utf8(text.substr(0, equals))] = valid_utf8(text.substr(equals + 1));
    }
    return labels;
}

inline std::optional<int> parsed_device(const std::string& text) {
    if (text == "all") return std::nullopt;
    const bool digits = !text.empty() && text.size() <= 4 && text.find_first_not_of("0123456789") == std::string::npos;
    if (!digits) throw usage_error("--device=" + text + " is not a device; give a number from 0 on, or all");
    return std::stoi(text);
}

/// Absolute, since sessions may be started by another program in another folder.
inline std::filesystem::path parsed_data(const std::string& text) {
    if (text.empty()) throw usage_error("--data= names nothing; give a folder of images or a file of records");
    return std::filesystem::absolute(text).lexically_normal();
}

/// Checks the options against each other.
inline void check_together(const CLI::App& app, const options& o, const raw_options& raw) {
    const auto given = [&](const char* name) { return app.get_option(name)->count() > 0; };
    if (o.confirm && o.what != action::compare) throw usage_error("--confirm belongs to --compare; add --compare=FILE");
    if (!o.knowledge.empty() && o.what != action::compare && o.what != action::control) {
        throw usage_error("--knowledge belongs to --compare and --control; leave it out here");
    }
    if (o.append && o.replace) throw usage_error("--append and --replace cannot be combined; choose one of them");
    if (o.replace && o.reason.empty()) {
        throw usage_error("--replace needs --reason=TEXT, which is kept in the new baseline's history");
    }
    if (!o.reason.empty() && !o.replace) throw usage_error("--reason belongs to --replace; add it or leave both out");
    if (given("--sessions") && (raw.sessions == 0 || raw.sessions > 1000)) {
        throw usage_error("--sessions must be from 1 to 1000; write for instance --sessions=5");
    }
    if (given("--time-budget") && !(std::isfinite(raw.time_budget_s) && raw.time_budget_s > 0)) {
        throw usage_error("--time-budget must be more than 0 seconds; write for instance --time-budget=60");
    }
    if (o.what == action::compare && !o.suite.empty()) {
        throw usage_error("--compare runs the baseline's own benchmarks, so --suite has no meaning; use --filter");
    }
    if (o.append && !o.suite.empty()) {
        throw usage_error("--append runs the baseline's own benchmarks, so --suite has no meaning; leave it out");
    }
    if (given("--planted") && o.what != action::self_test) {
        throw usage_error("--planted belongs to --self-test; add it or leave --planted out");
    }
    if (o.search && (o.append || (o.what != action::measure && o.what != action::baseline && o.what != action::list))) {
        throw usage_error("--search belongs to a run and to a new --baseline; a comparison runs what its baseline has");
    }
    if (given("--replay") && o.what != action::compare) {
        throw usage_error("--replay belongs to --compare; add it or leave --replay out");
    }
    if (!raw.replay.empty() && raw.replay != "best") {
        throw usage_error("--replay=" + raw.replay + " is not known; use --replay, or --replay=best");
    }
    if (!o.policy.empty() && o.what != action::compare && o.what != action::control) {
        throw usage_error("--policy belongs to --compare and --control; leave it out here");
    }
    if (raw.google_out_format != "json") {
        throw usage_error("--benchmark_out_format=" + raw.google_out_format + " is not written here; use json");
    }
    if (!raw.check.empty() && raw.check != "quick" && raw.check != "full") {
        throw usage_error("--check=" + raw.check + " is not known; use --check=quick or --check=full");
    }
    if (!o.google_output.empty() && o.what != action::measure && o.what != action::baseline) {
        throw usage_error("--benchmark_out goes with a run or with --baseline");
    }
}

} // namespace detail

/// Reads the command line. Throws usage_error, with the remedy, for an unknown flag (naming the nearest known one),
/// a value that cannot be, and options that contradict each other; looks at no file and at no device.
[[nodiscard]] inline options parse_command_line(int argc, const char* const* argv, const std::string& program) {
    options into;
    detail::raw_options raw;
    CLI::App app("Measures what this machine's GPU (or CPU) delivers, and compares it with what it delivered before.",
                 program);
    app.allow_extras();
    app.formatter(std::make_shared<help_format>());
    app.get_help_ptr()->description("this text")->group("What to do");
    app.option_defaults()->group("How");
    app.footer(detail::help_epilogue);
    detail::add_actions(app, into, raw);
    detail::add_choices(app, into, raw);
    detail::add_outputs(app, into, raw);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        into.what = action::help;
        into.help = app.help();
        return into;
    } catch (const CLI::ParseError& e) {
        throw usage_error(std::string(e.what()) + " (" + program + " --help explains every flag)");
    }
    detail::refuse_unknown(app, program);
    if (!raw.completion.empty()) {
        into.what = action::help;
        into.help = completion(app, program, raw.completion);
        return into;
    }
    if (raw.version) {
        into.what = action::help;
        into.help = program + " " PLUMBLINE_VERSION "\n";
        return into;
    }
    if (!into.child.plan.empty()) {
        into.what = action::session;
    } else {
        into.what = detail::chosen_action(app, into, raw);
        if (!raw.google_filter.empty()) into.filter = raw.google_filter;
        into.format = detail::chosen_format(raw, into.what);
        detail::check_together(app, into, raw);
    }
    into.full_check = raw.check != "quick";
    into.file = into.what == action::control   ? raw.control
                : into.what == action::compare ? raw.compare
                : into.what == action::predict ? raw.predict
                                               : raw.baseline;
    if (!into.filter.empty()) detail::check_filter(into.filter.substr(into.filter[0] == '-' ? 1 : 0));
    into.device = detail::parsed_device(raw.device);
    if (app.get_option("--data")->count() > 0) into.data = detail::parsed_data(raw.data);
    if (app.get_option("--replay")->count() > 0) {
        into.replay = raw.replay == "best" ? workload::plan_choice::best : workload::plan_choice::heuristic;
    }
    if (raw.sessions != 0) into.sessions = raw.sessions;
    if (raw.time_budget_s != 0) into.time_budget_s = raw.time_budget_s;
    if (!raw.planted.empty()) into.planted = detail::planted_of(raw.planted);
    into.labels = detail::parsed_labels(raw.labels);
    into.reason = valid_utf8(into.reason);
    return into;
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
