// SPDX-License-Identifier: Apache-2.0
// bench-compare: compares stored baselines. Needs no GPU and no CUDA.

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <future>
#include <iostream>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "plumbline/compare/accept.hpp"
#include "plumbline/compare/compare.hpp"
#include "plumbline/compare/explain.hpp"
#include "plumbline/compare/merge.hpp"
#include "plumbline/compare/siblings.hpp"
#include "plumbline/core/utc.hpp"
#include "plumbline/core/utf8.hpp"
#include "plumbline/environment/diff.hpp"
#include "plumbline/json/knowledge.hpp"
#include "plumbline/json/policy.hpp"
#include "plumbline/json/store.hpp"
#include "plumbline/report/comparison.hpp"
#include "plumbline/report/environment.hpp"
#include "plumbline/report/siblings.hpp"
#include "plumbline/report/terminal.hpp"
#include "plumbline/run/completion.hpp"

namespace {

using namespace plumbline;
namespace fs = std::filesystem;

/// The command line.
struct arguments {
    std::vector<std::string> files; ///< BASE NEW, or NEW alone with --siblings
    std::vector<std::string> more_base;
    std::vector<std::string> more_new;
    std::string format = "text";
    std::string output;
    std::string policy;
    std::string knowledge;
    bool strict = false;
    bool environment_only = false;
    bool allow_hardware_diff = false;
    bool brief = false;
    bool print_policy = false;
    std::string completion;
    std::string siblings;
    std::string accept;
    std::string into;
    std::string reason;
    std::string who;
    std::vector<std::string> only;
};

constexpr const char* description =
    "Compares two baselines: which benchmarks regressed, by how much, and what changed between them.\n"
    "Needs no GPU. Baselines are written by bench --baseline and bench --save.";

constexpr const char* footer = R"(Examples:
  bench-compare h200.json tonight.json
  bench-compare h200.json tonight.json --format=markdown --output=comment.md
  bench-compare monday.json --base=tuesday.json friday.json     pools the two bases as sessions of one device
  bench-compare --siblings baselines/ node17.json
  bench-compare --accept tonight.json --into h200.json --reason="driver 580, see OPS-7"

Exit codes:
  0  nothing regressed; everything required was measured and valid
  1  at least one regression (with --siblings: NEW stands apart and is slower)
  2  usage or input error
  3  nothing is comparable: other hardware, other workloads
  4  a benchmark is missing, failed, incomparable, invalid or suspicious, or nothing matched
  5  inconclusive, only with --strict
When several apply: 2 > 3 > 1 > 4 > 5 > 0.)";

void declare(CLI::App& app, arguments& into) {
    app.formatter(std::make_shared<run::help_format>());
    app.get_help_ptr()->description("This text");
    app.set_version_flag("--version", PLUMBLINE_VERSION, "The version");
    app.add_option("FILE", into.files, "BASE and NEW, or only NEW with --siblings");
    app.add_option("--base", into.more_base, "One more file of the base's device, pooled with BASE; repeatable")
        ->allow_extra_args(false)
        ->option_text("=FILE");
    app.add_option("--new", into.more_new, "One more file of the new one's device, pooled with NEW; repeatable")
        ->allow_extra_args(false)
        ->option_text("=FILE");
    app.add_option("--format", into.format, "Form of the report (default text)")
        ->option_text("=text|markdown|json|junit|github");
    app.add_option("--output", into.output, "Write the report to this file instead of standard output")
        ->option_text("=FILE");
    app.add_option("--policy", into.policy, "Margins, classes, rules and accepted changes: JSON with comments")
        ->option_text("=FILE");
    app.add_option("--knowledge", into.knowledge,
                   "What settings of your own can slow down: JSON with comments, as in tools/recipes/knowledge.json")
        ->option_text("=FILE");
    app.add_flag("--print-policy", into.print_policy, "Print the policy with its defaults, as a start for your own");
    app.add_flag("--strict", into.strict, "Inconclusive results give exit code 5");
    app.add_flag("--environment-only", into.environment_only, "Show what differs in the environment and nothing else");
    app.add_flag("--allow-hardware-diff", into.allow_hardware_diff,
                 "Other hardware: ratios without verdicts instead of a refusal");
    app.add_flag("--brief", into.brief, "Leave out what is equivalent (it is still counted)");
    app.add_option("--siblings", into.siblings, "Rank NEW among the baselines of this folder; they are never pooled")
        ->option_text("=DIR");
    app.add_option("--accept", into.accept, "Move results of this file into the baseline named by --into")
        ->option_text("=FILE");
    app.add_option("--into", into.into, "The baseline that --accept changes")->option_text("=FILE");
    app.add_option("--reason", into.reason, "Why --accept is right; kept in the baseline's history")
        ->option_text("=TEXT");
    app.add_option("--who", into.who, "Who accepts; default: the user's name")->option_text("=NAME");
    app.add_option("--only", into.only, "Accept only this benchmark; repeatable")
        ->allow_extra_args(false)
        ->option_text("=ID");
    app.add_option("--completion", into.completion, "Completion script: source <(bench-compare --completion=bash)")
        ->option_text("=bash|zsh");
    app.footer(footer);
}

[[nodiscard]] std::string user_name() {
    for (const char* variable : {"SUDO_USER", "USER", "LOGNAME"}) {
        const char* name = std::getenv(variable);
        if (name != nullptr && *name != '\0') return name;
    }
    return "uid " + std::to_string(::getuid());
}

/// Options that belong to another mode are mistakes, not decoration.
void require_no_options(const CLI::App& app, const char* mode, std::initializer_list<const char*> foreign) {
    for (const char* each : foreign) {
        if (app.count(each) > 0)
            throw usage_error(std::string(each) + " has no meaning with " + mode + "; leave it out");
    }
}

[[nodiscard]] compare::policy policy_of(const arguments& given) {
    compare::policy rules = given.policy.empty() ? compare::policy{} : json::load_policy(given.policy);
    rules.strict = rules.strict || given.strict;
    rules.allow_hardware_diff = rules.allow_hardware_diff || given.allow_hardware_diff;
    return rules;
}

/// Writes a report to --output or to standard output. A full disk or a closed pipe is an error there too.
template <class Writer>
void deliver(const arguments& given, Writer&& write) {
    report::options how;
    how.all = !given.brief;
    report::suit(how, given.output.empty() ? STDOUT_FILENO : -1);
    std::ostringstream text;
    write(text, how);
    if (!given.output.empty()) {
        json::write_atomically(given.output, text.str());
        return;
    }
    std::cout << text.str() << std::flush;
    if (!std::cout) throw file_error("standard output", "cannot be written; name a file with --output");
}

/// Loads files, the second and later ones beside the first: reading is most of the work for large suites.
[[nodiscard]] std::vector<result::baseline> load_all(const std::vector<std::string>& files) {
    std::vector<std::future<result::baseline>> loading;
    for (const std::string& file : files) {
        loading.push_back(std::async(std::launch::async, [file] { return json::load(file); }));
    }
    std::vector<result::baseline> loaded;
    for (auto& each : loading) loaded.push_back(each.get());
    return loaded;
}

/// One side of the comparison: its files and what they hold together.
struct side {
    std::vector<std::string> files;
    result::baseline pool;

    [[nodiscard]] std::string described() const {
        std::string names;
        for (const std::string& each : files) names += (names.empty() ? "" : " + ") + each;
        return report::describe(pool, names);
    }
};

[[nodiscard]] std::pair<side, side> load_sides(const arguments& given, const compare::policy& rules) {
    if (given.files.size() != 2) {
        throw usage_error("two files are needed, BASE and NEW, not " + std::to_string(given.files.size()) +
                          " (more of one side: --base=FILE, --new=FILE); see --help");
    }
    side base{{given.files[0]}, {}}, candidate{{given.files[1]}, {}};
    base.files.insert(base.files.end(), given.more_base.begin(), given.more_base.end());
    candidate.files.insert(candidate.files.end(), given.more_new.begin(), given.more_new.end());
    std::vector<std::string> files = base.files;
    files.insert(files.end(), candidate.files.begin(), candidate.files.end());
    std::vector<result::baseline> loaded = load_all(files);
    const auto middle = loaded.begin() + static_cast<std::ptrdiff_t>(base.files.size());
    const auto pooled = [&rules](auto begin, auto end) {
        if (end - begin == 1) return std::move(*begin);
        return compare::merge({std::make_move_iterator(begin), std::make_move_iterator(end)}, rules);
    };
    base.pool = pooled(loaded.begin(), middle);
    candidate.pool = pooled(middle, loaded.end());
    return {std::move(base), std::move(candidate)};
}

exit_code run_comparison(const arguments& given) {
    const report::format as = report::find_format(given.format);
    const compare::policy rules = policy_of(given);
    const auto [base, candidate] = load_sides(given, rules);
    const auto known = json::knowledge_with(given.knowledge);
    compare::comparison found = compare::compare(base.pool, candidate.pool, rules);
    found.why = compare::explain(found, base.pool, candidate.pool, rules, known);
    deliver(given, [&, &old = base, &fresh = candidate](std::ostream& out, report::options how) {
        how.base = old.described();
        how.candidate = fresh.described();
        report::write_comparison(out, as, found, rules, old.files, fresh.files, how);
    });
    return found.exit;
}

/// Text or JSON, where the other formats have nothing to say.
[[nodiscard]] bool wants_json(const arguments& given, const char* mode) {
    if (given.format == "json") return true;
    if (given.format == "text") return false;
    throw usage_error(std::string(mode) + " knows the formats text and json, not \"" + given.format + '"');
}

exit_code run_environment(const CLI::App& app, const arguments& given) {
    require_no_options(app, "--environment-only", {"--strict", "--allow-hardware-diff", "--brief"});
    const bool as_json = wants_json(given, "--environment-only");
    const auto [base, candidate] = load_sides(given, policy_of(given));
    const auto found = environment::diff(base.pool.environment, candidate.pool.environment);
    deliver(given, [&, &old = base, &fresh = candidate](std::ostream& out, report::options how) {
        how.base = old.described();
        how.candidate = fresh.described();
        if (as_json)
            out << json::dump(found);
        else
            report::write_environment(out, found, how);
    });
    const bool other_hardware = std::any_of(found.begin(), found.end(), [](const environment::difference& each) {
        return each.changed() && each.kind == result::attribute_class::identity;
    });
    return other_hardware ? exit_code::incomparable : exit_code::ok;
}

/// The baselines of a folder but `subject` itself. What cannot be read is named and does not stop the ranking.
[[nodiscard]] std::vector<std::pair<std::string, result::baseline>>
load_siblings(const fs::path& folder, const fs::path& subject, std::vector<std::pair<std::string, std::string>>& bad) {
    std::error_code code;
    std::vector<fs::path> files;
    for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
        std::error_code ignored;
        if (it->path().extension() == ".json" && !fs::equivalent(it->path(), subject, ignored)) {
            files.push_back(it->path());
        }
    }
    if (code) throw file_error(folder.string(), "cannot read the folder: " + code.message());
    std::sort(files.begin(), files.end());
    std::vector<std::pair<std::string, result::baseline>> loaded;
    for (const fs::path& file : files) {
        try {
            loaded.emplace_back(file.filename().string(), json::load(file));
        } catch (const error& problem) {
            bad.emplace_back(file.filename().string(), problem.what());
        }
    }
    return loaded;
}

exit_code run_siblings(const CLI::App& app, const arguments& given) {
    require_no_options(app, "--siblings",
                       {"--base", "--new", "--strict", "--environment-only", "--allow-hardware-diff", "--brief"});
    const bool as_json = wants_json(given, "--siblings");
    if (given.files.size() != 1) throw usage_error("--siblings DIR ranks one file: bench-compare --siblings DIR NEW");
    const compare::policy rules = policy_of(given);
    const fs::path subject = given.files[0];
    result::baseline judged = json::load(subject);
    std::vector<std::pair<std::string, std::string>> bad;
    const auto others = load_siblings(given.siblings, subject, bad);
    compare::ranking found = compare::rank_siblings(others, {subject.filename().string(), std::move(judged)}, rules);
    found.left_out.insert(found.left_out.end(), bad.begin(), bad.end());
    deliver(given, [&](std::ostream& out, const report::options& how) {
        if (as_json)
            out << json::dump(found);
        else
            report::write_siblings(out, found, how);
    });
    if (found.machines.size() < 2) return exit_code::incomparable;
    const bool slow = std::any_of(found.machines.begin(), found.machines.end(), [](const compare::sibling& each) {
        return each.subject && each.odd && each.ratio > 1;
    });
    return slow ? exit_code::regressed : exit_code::ok;
}

exit_code run_accept(const CLI::App& app, const arguments& given) {
    require_no_options(app, "--accept",
                       {"FILE", "--base", "--new", "--strict", "--environment-only", "--siblings", "--brief",
                        "--format", "--output", "--allow-hardware-diff"});
    if (given.into.empty()) throw usage_error("--accept needs --into=BASE, the baseline that is to be changed");
    if (given.reason.empty()) throw usage_error("--accept needs --reason=TEXT: it is kept in the baseline's history");
    json::check_writable(given.into);
    const compare::policy rules = policy_of(given);
    const std::vector<result::baseline> loaded = load_all({given.into, given.accept});
    const std::string who = given.who.empty() ? user_name() : given.who;
    const result::baseline changed = compare::accept(
        loaded[0], loaded[1], given.only,
        {utc_text(std::time(nullptr)), "accepted", valid_utf8(who), valid_utf8(given.reason), {}}, rules);
    json::save(given.into, changed);
    std::cout << given.into << ": accepted " << report::counted(changed.history.back().ids.size(), "benchmark")
              << " of " << given.accept << " (" << report::printable(who) << ": " << report::printable(given.reason)
              << ")\n";
    return exit_code::ok;
}

exit_code dispatch(const CLI::App& app, const arguments& given) {
    if (!given.completion.empty()) {
        const std::string text = run::completion(app, "bench-compare", given.completion);
        deliver(given, [&text](std::ostream& out, const report::options&) { out << text; });
        return exit_code::ok;
    }
    if (given.print_policy) {
        const std::string text = json::dump(policy_of(given));
        deliver(given, [&text](std::ostream& out, const report::options&) { out << text; });
        return exit_code::ok;
    }
    if (!given.output.empty()) json::check_writable(given.output);
    if (!given.accept.empty()) return run_accept(app, given);
    for (const char* option : {"--into", "--reason", "--who", "--only"}) {
        if (app.count(option) > 0) throw usage_error(std::string(option) + " belongs to --accept NEW; see --help");
    }
    if (!given.siblings.empty()) return run_siblings(app, given);
    if (given.environment_only) return run_environment(app, given);
    return run_comparison(given);
}

int fail(const std::string& message, exit_code code) {
    std::cerr << "bench-compare: " << report::printable(message) << '\n';
    return static_cast<int>(code);
}

} // namespace

int main(int argc, char** argv) {
    // A closed pipe and a file at its size limit are then an error message and exit code 2, not a silent death.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    try {
        CLI::App app(description, "bench-compare");
        arguments given;
        declare(app, given);
        try {
            app.parse(argc, argv);
        } catch (const CLI::Success& asked) {
            return app.exit(asked, std::cout, std::cerr); // --help and --version
        } catch (const CLI::ParseError& problem) {
            return fail(std::string(problem.what()) + "; see bench-compare --help", exit_code::usage);
        }
        return static_cast<int>(dispatch(app, given));
    } catch (const error& problem) {
        return fail(problem.what(), problem.code());
    } catch (const std::bad_alloc&) {
        return fail("out of memory; compare fewer or smaller files", exit_code::usage);
    } catch (const std::exception& problem) {
        return fail(std::string("unexpected: ") + problem.what(), exit_code::usage);
    }
}
