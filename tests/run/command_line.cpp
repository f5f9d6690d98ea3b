// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "plumbline/run/command_line.hpp"

namespace run = plumbline::run;

namespace {

run::options parse(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "bench");
    std::vector<const char*> argv;
    for (const std::string& each : arguments) argv.push_back(each.c_str());
    return run::parse_command_line(static_cast<int>(argv.size()), argv.data(), "bench");
}

std::string refusal(const std::vector<std::string>& arguments) {
    try {
        (void)parse(arguments);
    } catch (const plumbline::usage_error& e) {
        return e.what();
    }
    return "";
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("without flags a run of the suite is asked for") {
    const run::options o = parse({});
    CHECK(o.what == run::action::measure);
    CHECK(o.suite.empty());
    CHECK(o.backend == "auto");
    CHECK(o.device == 0);
    CHECK_FALSE(o.sessions.has_value());
    CHECK_FALSE(o.time_budget_s.has_value());
    CHECK(o.format == run::output_format::text);
}

TEST_CASE("actions take their file with and without a value") {
    CHECK(parse({"--baseline"}).what == run::action::baseline);
    CHECK(parse({"--baseline"}).file.empty());
    CHECK(parse({"--baseline=x.json"}).file == "x.json");
    CHECK(parse({"--baseline", "--quiet"}).file.empty());
    CHECK(parse({"--compare"}).what == run::action::compare);
    CHECK(parse({"--compare=y.json"}).file == "y.json");
    CHECK(parse({"--control=other"}).what == run::action::control);
    CHECK(parse({"--control=other"}).file == "other");
    CHECK(parse({"--fingerprint"}).what == run::action::fingerprint);
    CHECK(parse({"--self-test"}).what == run::action::self_test);
    CHECK(parse({"--self-test"}).planted == std::vector<double>{0.01, 0.02, 0.05});
    CHECK(parse({"--self-test", "--planted=0.5,1"}).planted == std::vector<double>{0.005, 0.01});
    CHECK(parse({"--list"}).what == run::action::list);
    CHECK(parse({"--append"}).what == run::action::baseline);
    CHECK(parse({"--replace", "--reason=new driver"}).what == run::action::baseline);
    CHECK(parse({"--check"}).full_check);
    CHECK(parse({"--check=full"}).full_check);
    CHECK_FALSE(parse({"--check=quick"}).full_check);
}

TEST_CASE("choices are read") {
    const run::options o = parse({"--suite=quick", "--filter=gemm/(fp32|bf16)", "--backend=cpu", "--device=3",
                                  "--sessions=7", "--time-budget=12.5", "--save=s.json", "--output=o.txt", "--label",
                                  "image=sha256:1", "--label=ticket=A=B", "--strict", "--resume", "--force"});
    CHECK(o.suite == "quick");
    CHECK(o.filter == "gemm/(fp32|bf16)");
    CHECK(o.backend == "cpu");
    CHECK(o.device == 3);
    CHECK(o.sessions == 7u);
    CHECK(o.time_budget_s == 12.5);
    CHECK(o.save == "s.json");
    CHECK(o.output == "o.txt");
    CHECK(plumbline::to_string(o.labels.at("image")) == "sha256:1");
    CHECK(plumbline::to_string(o.labels.at("ticket")) == "A=B");
    CHECK(o.strict);
    CHECK(o.resume);
    CHECK(o.force);
    CHECK_FALSE(parse({"--device=all"}).device.has_value());
}

TEST_CASE("Google Benchmark's flags are understood") {
    CHECK(parse({"--benchmark_filter=gemm"}).filter == "gemm");
    CHECK(parse({"--benchmark_list_tests"}).what == run::action::list);
    CHECK(parse({"--benchmark_list_tests=true"}).what == run::action::list);
    CHECK(parse({"--benchmark_list_tests=false"}).what == run::action::measure);
    CHECK(parse({"--benchmark_out=g.json"}).google_output == "g.json");
    CHECK(parse({"--benchmark_format=json"}).format == run::output_format::google);
    CHECK(parse({"--benchmark_format=console"}).format == run::output_format::text);
    CHECK(has(refusal({"--benchmark_format=csv"}), "use console or json"));
    CHECK(has(refusal({"--benchmark_out_format=csv"}), "use json"));
    CHECK(has(refusal({"--benchmark_repetitions=3"}), "unknown flag '--benchmark_repetitions'"));
}

TEST_CASE("an unknown flag is an error that names the nearest one") {
    CHECK(has(refusal({"--sesions=3"}), "unknown flag '--sesions'; did you mean '--sessions'?"));
    CHECK(has(refusal({"--basline"}), "did you mean '--baseline'?"));
    CHECK(has(refusal({"--zzzzzzzzzzzzzz"}), "unknown flag '--zzzzzzzzzzzzzz' (bench --help lists all)"));
    CHECK(has(refusal({"stray"}), "unexpected argument 'stray'"));
    CHECK_FALSE(has(refusal({"--session-pln=x"}), "--session-plan")); // hidden flags are not offered
}

TEST_CASE("values that cannot be are refused with the remedy") {
    CHECK(has(refusal({"--sessions=0"}), "from 1 to 1000"));
    CHECK(has(refusal({"--sessions=1001"}), "from 1 to 1000"));
    CHECK(has(refusal({"--sessions=x"}), "--help"));
    CHECK(has(refusal({"--time-budget=0"}), "more than 0"));
    CHECK(has(refusal({"--time-budget=nan"}), "more than 0"));
    CHECK(has(refusal({"--device=-1"}), "is not a device"));
    CHECK(has(refusal({"--device=x"}), "is not a device"));
    CHECK(has(refusal({"--device=12345"}), "is not a device"));
    CHECK(has(refusal({"--filter=("}), "is not a regular expression"));
    CHECK(has(refusal({"--filter=-("}), "is not a regular expression"));
    CHECK(has(refusal({"--label", "x"}), "is not KEY=VALUE"));
    for (const char* bad :
         {"--planted=x", "--planted=0", "--planted=-1", "--planted=101", "--planted=1,,2", "--planted=nan"}) {
        CHECK(has(refusal({"--self-test", bad}), "is not a slowdown in percent"));
    }
    CHECK(has(refusal({"--label==x"}), "is not KEY=VALUE"));
    CHECK(has(refusal({"--check=some"}), "--check=quick or --check=full"));
    CHECK(has(refusal({"--format=yaml"}), "unknown --format=yaml"));
    CHECK(has(refusal({"--format=junit"}), "bench-compare"));
    CHECK(refusal({"--compare", "--format=junit"}).empty());
}

TEST_CASE("contradictions are refused") {
    CHECK(has(refusal({"--baseline", "--compare"}), "cannot be combined"));
    CHECK(has(refusal({"--list", "--check"}), "cannot be combined"));
    CHECK(has(refusal({"--append", "--replace", "--reason=x"}), "cannot be combined"));
    CHECK(has(refusal({"--baseline", "--replace"}), "--reason=TEXT"));
    CHECK(has(refusal({"--baseline", "--reason=x"}), "belongs to --replace"));
    CHECK(has(refusal({"--compare", "--suite=quick"}), "use --filter"));
    CHECK(has(refusal({"--append", "--suite=quick"}), "--suite has no meaning"));
    CHECK(has(refusal({"--policy=p.json"}), "belongs to --compare"));
    CHECK(has(refusal({"--planted=1"}), "belongs to --self-test"));
    CHECK(has(refusal({"--compare", "--benchmark_out=x"}), "--benchmark_out"));
    CHECK(has(refusal({"--confirm"}), "--confirm belongs to --compare"));
    CHECK(parse({"--compare", "--confirm"}).confirm);
    CHECK(parse({"--predict=x.json"}).what == run::action::predict);
    CHECK(parse({"--predict=x.json"}).file == "x.json");
    CHECK_FALSE(refusal({"--predict"}).empty());
}

TEST_CASE("help and version are texts, not errors") {
    CHECK(parse({"--help"}).what == run::action::help);
    for (const char* part : {"--baseline", "--time-budget", "Exit codes", "PLUMBLINE_BASELINE_DIR"}) {
        CHECK(has(parse({"--help"}).help, part));
    }
    CHECK_FALSE(has(parse({"--help"}).help, "--session-plan"));
    CHECK(has(parse({"--version"}).help, PLUMBLINE_VERSION));
}

TEST_CASE("hidden options make a session child") {
    const run::options o = parse({"--session-plan=p", "--session-result=r", "--session-progress-fd=7",
                                  "--session-budget=0.25", "--session-planted=0", "--backend=cpu", "--device=2"});
    CHECK(o.what == run::action::session);
    CHECK(o.child.plan == "p");
    CHECK(o.child.result == "r");
    CHECK(o.child.progress_fd == 7);
    CHECK(o.child.budget_s == 0.25);
    CHECK(o.child.planted == 0.0);
    CHECK_FALSE(o.child.finish_s.has_value());
    CHECK(o.device == 2);
}
