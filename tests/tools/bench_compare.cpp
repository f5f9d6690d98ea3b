// SPDX-License-Identifier: Apache-2.0
// bench-compare as people run it: a process with files, output and an exit code.
#include <cerrno>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "../json/sample.hpp"
#include "plumbline/json/store.hpp"

using namespace plumbline;
namespace fs = std::filesystem;

namespace {

struct outcome {
    int code = -1;
    std::string out;
    std::string err;
};

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// Runs the program with its output in files: pipes could fill up.
outcome run(const tests::scratch_folder& folder, std::initializer_list<std::string> arguments) {
    const std::string out = (folder / ".stdout").string(), err = (folder / ".stderr").string();
    std::vector<std::string> words{BENCH_COMPARE};
    words.insert(words.end(), arguments);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
        ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
        if (::chdir(folder.path().c_str()) == 0) ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), json::read_file(out),
            json::read_file(err)};
}

/// A baseline of five sessions; `scale` multiplies the first benchmark's times, `spread` is between sessions.
result::baseline baseline_of(double scale, double spread = 0.0005, const std::string& started = "2026-11-30T20") {
    result::baseline all = tests::sample_baseline();
    all.history.clear();
    all.noise.clear();
    all.selected = {};
    all.results.clear();
    all.sessions.clear();
    for (int i = 0; i < 5; ++i) {
        result::session one;
        one.started = started + ":0" + std::to_string(i) + ":00Z";
        one.seed = static_cast<std::uint64_t>(i);
        one.when = {"b00t", started.substr(0, 10), "0123abcd"};
        all.sessions.push_back(one);
    }
    for (const auto& [id, factor] :
         {std::pair("gemm/bf16/tn/m4096n4096k4096", scale), std::pair("gemm/bf16/tn/m64", 1.0)}) {
        std::vector<double> values;
        for (int i = 0; i < 5; ++i) values.push_back(172'700 * factor * (1 + spread * (i - 2)));
        result::result one = tests::gemm_result(id, values);
        for (auto& session : one.sessions) {
            session.flags.clear();
            session.clean.clear();
        }
        all.results.push_back(one);
    }
    return all;
}

void put(const fs::path& file, const std::string& text) {
    std::ofstream(file) << text;
}

} // namespace

TEST_CASE("exit code 0: nothing changed, and standard output has the report alone") {
    const tests::scratch_folder folder;
    json::save(folder / "base.json", baseline_of(1));
    json::save(folder / "new.json", baseline_of(1.0001, 0.0004, "2026-12-01T20"));
    const outcome same = run(folder, {"base.json", "new.json"});
    CHECK_MESSAGE(same.code == 0, same.out << same.err);
    CHECK(contains(same.out, "2 equivalent; exit 0"));
    CHECK(contains(same.out, "base.json: NVIDIA H200, cuda, 2026-11-30, 5 sessions in 1 epoch"));
    CHECK(same.out.find('\x1b') == std::string::npos);
    CHECK(same.err.empty());
}

TEST_CASE("exit code 1: a regression, in every format") {
    const tests::scratch_folder folder;
    json::save(folder / "base.json", baseline_of(1));
    json::save(folder / "new.json", baseline_of(1.05, 0.0005, "2026-12-01T20"));
    const outcome text = run(folder, {"base.json", "new.json"});
    CHECK(text.code == 1);
    CHECK(text.out.find("REGRESSED     gemm/bf16/tn/m4096n4096k4096") != std::string::npos);
    CHECK(contains(text.out, "1 regressed, 1 equivalent; exit 1"));
    CHECK(contains(text.out, "nothing recorded changed: suspect the node"));

    const outcome as_json = run(folder, {"base.json", "new.json", "--format=json"});
    CHECK(as_json.code == 1);
    const auto document = nlohmann::json::parse(as_json.out); // standard output is the document and nothing else
    CHECK(document["schema"]["name"] == "plumbline/comparison");
    CHECK(document["exit_code"] == 1);
    CHECK(document["counts"]["regressed"] == 1);
    CHECK(document["findings"][0]["verdict"] == "regressed");
    CHECK(document["findings"][0]["effect"]["hl"].get<double>() == doctest::Approx(std::log(1.05)).epsilon(1e-3));
    CHECK(document["policy"]["classes"]["kernel"]["margin"] == 0.015);
    CHECK(document["candidate"][0] == "new.json");

    CHECK(contains(run(folder, {"base.json", "new.json", "--format=markdown"}).out, "| **regressed** |"));
    CHECK(contains(run(folder, {"base.json", "new.json", "--format=junit"}).out, "failures=\"1\""));
    CHECK(contains(run(folder, {"base.json", "new.json", "--format=github"}).out, "::error title="));

    const outcome to_file = run(folder, {"base.json", "new.json", "--format=json", "--output=report.json"});
    CHECK(to_file.code == 1);
    CHECK(to_file.out.empty());
    CHECK(json::read_file(folder / "report.json") == as_json.out);
}

TEST_CASE("exit code 2: every mistake is one line that names the remedy") {
    const tests::scratch_folder folder;
    json::save(folder / "base.json", baseline_of(1));
    json::save(folder / "new.json", baseline_of(1, 0.0005, "2026-12-01T20"));
    put(folder / "broken.json", "{\"schema\": ");
    put(folder / "other.json", R"({"schema": {"name": "plumbline/baseline", "version": 9}})");
    put(folder / "policy.json", R"({"classes": {"kernel": {"margn": 0.1}}})");
    const auto mistake = [&](std::initializer_list<std::string> arguments, const std::string& message) {
        const outcome end = run(folder, arguments);
        CAPTURE(message);
        CHECK_MESSAGE(end.code == 2, end.out << end.err);
        CHECK(end.out.empty());
        CHECK_MESSAGE(contains(end.err, message), end.err);
        CHECK(end.err.rfind("bench-compare: ", 0) == 0);
        CHECK(std::count(end.err.begin(), end.err.end(), '\n') == 1);
    };
    mistake({}, "two files are needed, BASE and NEW, not 0");
    mistake({"base.json"}, "not 1");
    mistake({"base.json", "new.json", "third.json"}, "not 3 (more of one side: --base=FILE, --new=FILE)");
    mistake({"base.json", "none.json"}, "none.json: cannot open: No such file or directory; check the path");
    mistake({"base.json", "."}, ".: is a folder; name a file");
    mistake({"base.json", "broken.json"}, "broken.json: at /schema: is not JSON");
    mistake({"base.json", "other.json"}, "other.json: at /schema/version: is schema version 9, known is 1");
    mistake({"base.json", "new.json", "--frmat=json"}, "--frmat=json");
    mistake({"base.json", "new.json", "--format=yaml"}, "no such format: \"yaml\"; choose one of text, markdown");
    mistake({"base.json", "new.json", "--format"}, "--format");
    mistake({"base.json", "new.json", "--output=/proc/x/report"}, "cannot create the folder");
    mistake({"base.json", "new.json", "--output=."}, "is a folder; name a file in it");
    mistake({"base.json", "new.json", "--policy=policy.json"}, "did you mean \"margin\"?");
    mistake({"base.json", "new.json", "--policy=none"}, "none: cannot open");
    mistake({"base.json", "base.json", "--base=base.json"}, "is in both baselines: give each file once");
    mistake({"base.json", "new.json", "--environment-only", "--format=junit"}, "text and json");
    mistake({"base.json", "new.json", "--environment-only", "--strict"}, "--strict has no meaning with");
    mistake({"--siblings=.", "base.json", "new.json"}, "ranks one file");
    mistake({"--siblings=nowhere", "base.json"}, "cannot read the folder");
    mistake({"--accept=new.json", "--reason=x"}, "--accept needs --into=BASE");
    mistake({"--accept=new.json", "--into=base.json"}, "--accept needs --reason=TEXT");
    mistake({"--accept=new.json", "--into=base.json", "--reason=x", "--only=nope"}, "no result 'nope'");
    mistake({"base.json", "new.json", "--reason=x"}, "--reason belongs to --accept");
    // A name that tries to paint the terminal is disarmed in messages too.
    mistake({"base.json", "a\x1b[2J\nb"}, "a?[2J?b: cannot open");
}

TEST_CASE("exit code 3: other hardware, unless a ratio is all that is asked for") {
    const tests::scratch_folder folder;
    json::save(folder / "base.json", baseline_of(1));
    result::baseline other = baseline_of(1, 0.0005, "2026-12-01T20");
    other.environment.attributes["gpu.sm_count"].read = result::reading::of(std::int64_t{114});
    json::save(folder / "new.json", other);
    const outcome end = run(folder, {"base.json", "new.json"});
    CHECK_MESSAGE(end.code == 3, end.out);
    CHECK(contains(end.out, "INCOMPARABLE"));
    CHECK(contains(end.out, "gpu.sm_count"));
    const outcome allowed = run(folder, {"base.json", "new.json", "--allow-hardware-diff"});
    CHECK(contains(allowed.out, "2 cross hardware"));
    CHECK(allowed.code != 3);
    const outcome environment = run(folder, {"base.json", "new.json", "--environment-only"});
    CHECK(environment.code == 3);
    CHECK(contains(environment.out, "hardware     1  gpu.sm_count  132 -> 114"));
}

TEST_CASE("exit code 4: a benchmark is missing or failed") {
    const tests::scratch_folder folder;
    json::save(folder / "base.json", baseline_of(1));
    result::baseline less = baseline_of(1, 0.0005, "2026-12-01T20");
    less.results.pop_back();
    json::save(folder / "less.json", less);
    const outcome missing = run(folder, {"base.json", "less.json"});
    CHECK(missing.code == 4);
    CHECK(contains(missing.out, "MISSING       gemm/bf16/tn/m64"));
    result::baseline failed = baseline_of(1, 0.0005, "2026-12-01T20");
    failed.results[1].status = result::result_status::failed;
    failed.results[1].reason = "wrong result";
    json::save(folder / "failed.json", failed);
    const outcome invalid = run(folder, {"base.json", "failed.json"});
    CHECK(invalid.code == 4);
    CHECK(contains(invalid.out, "INVALID"));
    CHECK(contains(invalid.out, "wrong result"));
    // The policy can say that this one need not be there.
    put(folder / "policy.json", R"({"rules": [{"match": "gemm/bf16/tn/m64", "required": false}]} // rarely run)");
    CHECK(run(folder, {"base.json", "less.json", "--policy=policy.json"}).code == 0);
}

TEST_CASE("exit code 5: inconclusive, only with --strict") {
    const tests::scratch_folder folder;
    json::save(folder / "base.json", baseline_of(1, 0.02));
    json::save(folder / "new.json", baseline_of(1.01, 0.02, "2026-12-01T20"));
    const outcome lenient = run(folder, {"base.json", "new.json"});
    CHECK(lenient.code == 0);
    CHECK(contains(lenient.out, "inconclusive"));
    CHECK(contains(lenient.out, "smallest change it could have seen"));
    CHECK(run(folder, {"base.json", "new.json", "--strict"}).code == 5);
}

TEST_CASE("several files of one device pool as one side") {
    const tests::scratch_folder folder;
    json::save(folder / "monday.json", baseline_of(1));
    json::save(folder / "tuesday.json", baseline_of(1, 0.0004, "2026-12-01T20"));
    json::save(folder / "friday.json", baseline_of(1, 0.0004, "2026-12-04T20"));
    const outcome end = run(folder, {"monday.json", "--base=tuesday.json", "friday.json"});
    CHECK_MESSAGE(end.code == 0, end.out << end.err);
    CHECK(contains(end.out, "monday.json + tuesday.json: NVIDIA H200, cuda, 2026-11-30, 10 sessions in 2 epochs"));
}

TEST_CASE("the difference of environments alone") {
    const tests::scratch_folder folder;
    json::save(folder / "base.json", baseline_of(1));
    result::baseline upgraded = baseline_of(1.5, 0.0005, "2026-12-01T20");
    upgraded.environment.attributes["cudnn.version"].read = result::reading::of(std::string("9.20.0"));
    json::save(folder / "new.json", upgraded);
    const outcome end = run(folder, {"base.json", "new.json", "--environment-only"});
    CHECK(end.code == 0);
    CHECK(contains(end.out, "changed      2  cudnn.version  9.19.0 -> 9.20.0"));
    CHECK_FALSE(contains(end.out, "gemm"));
    const outcome as_json = run(folder, {"base.json", "new.json", "--environment-only", "--format=json"});
    CHECK(nlohmann::json::parse(as_json.out)["environment"][0]["to"]["value"] == "9.20.0");
}

TEST_CASE("siblings: the odd machine is named and, when it is the slow one asked about, red") {
    const tests::scratch_folder folder;
    fs::create_directory(folder / "fleet");
    for (int i = 0; i < 4; ++i) {
        result::baseline one = baseline_of(i == 3 ? 1.2 : 1 + 0.0005 * i);
        for (auto& session : one.results[1].sessions) {
            for (double& value : session.samples) value *= i == 3 ? 1.2 : 1;
        }
        json::save(folder / ("fleet/node" + std::to_string(i) + ".json"), one);
    }
    put(folder / "fleet/broken.json", "{");
    const outcome odd = run(folder, {"--siblings=fleet", "fleet/node3.json"});
    CHECK_MESSAGE(odd.code == 1, odd.out << odd.err);
    CHECK(contains(odd.out, "* node3.json"));
    CHECK(contains(odd.out, "ODD"));
    CHECK(contains(odd.out, "left out  broken.json"));
    CHECK(run(folder, {"--siblings=fleet", "fleet/node0.json"}).code == 0);
    const outcome as_json = run(folder, {"--siblings=fleet", "fleet/node3.json", "--format=json"});
    CHECK(nlohmann::json::parse(as_json.out)["machines"].size() == 4);
    fs::create_directory(folder / "empty");
    CHECK(run(folder, {"--siblings=empty", "fleet/node0.json"}).code == 3);
}

TEST_CASE("accepting moves results into the baseline and records who, when and why") {
    const tests::scratch_folder folder;
    json::save(folder / "base.json", baseline_of(1));
    json::save(folder / "new.json", baseline_of(1.05, 0.0005, "2026-12-01T20"));
    REQUIRE(run(folder, {"base.json", "new.json"}).code == 1);
    const outcome accepted =
        run(folder, {"--accept=new.json", "--into=base.json", "--reason=driver 580, OPS-7", "--who=ops"});
    CHECK_MESSAGE(accepted.code == 0, accepted.err);
    CHECK(contains(accepted.out, "base.json: accepted 2 benchmarks of new.json (ops: driver 580, OPS-7)"));
    const result::baseline changed = json::load(folder / "base.json");
    REQUIRE(changed.history.size() == 1);
    CHECK(changed.history[0].what == "accepted");
    CHECK(changed.history[0].who == "ops");
    CHECK(changed.history[0].reason == "driver 580, OPS-7");
    CHECK(changed.history[0].ids.size() == 2);
    CHECK(run(folder, {"base.json", "new.json"}).code == 0);

    // One improvement alone is refused, and the file is left as it was.
    json::save(folder / "fast.json", baseline_of(0.9, 0.0005, "2026-12-02T20"));
    const std::string before = json::read_file(folder / "base.json");
    const outcome refused =
        run(folder, {"--accept=fast.json", "--into=base.json", "--reason=x", "--only=gemm/bf16/tn/m4096n4096k4096"});
    CHECK(refused.code == 2);
    CHECK(contains(refused.err, "improvements alone are not accepted"));
    CHECK(json::read_file(folder / "base.json") == before);
}

TEST_CASE("help and version say what they should on standard output") {
    const tests::scratch_folder folder;
    const outcome help = run(folder, {"--help"});
    CHECK(help.code == 0);
    for (const char* word : {"--format", "--policy", "--strict", "--environment-only", "--allow-hardware-diff",
                             "--siblings", "--accept", "--into", "--reason", "Exit codes", "Examples"}) {
        CHECK(contains(help.out, word));
    }
    CHECK(help.err.empty());
    const outcome version = run(folder, {"--version"});
    CHECK(version.code == 0);
    CHECK(version.out == PLUMBLINE_VERSION "\n");
}

TEST_CASE("the policy is printed with its defaults, and reads back") {
    const tests::scratch_folder folder;
    put(folder / "mine.json", R"({"classes": {"kernel": {"margin": 0.02}}})");
    const outcome printed = run(folder, {"--print-policy", "--policy=mine.json", "--strict"});
    CHECK(printed.code == 0);
    put(folder / "whole.json", printed.out);
    CHECK(run(folder, {"--print-policy", "--policy=whole.json"}).out == printed.out);
    const auto document = nlohmann::json::parse(printed.out);
    CHECK(document["classes"]["kernel"]["margin"] == 0.02);
    CHECK(document["strict"] == true);
}

TEST_CASE("a report that cannot be written is an error, not a success") {
    const tests::scratch_folder folder;
    json::save(folder / "base.json", baseline_of(1));
    json::save(folder / "new.json", baseline_of(1, 0.0005, "2026-12-01T20"));
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    ::close(ends[0]); // nobody will read
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::dup2(ends[1], STDOUT_FILENO);
        ::dup2(::open((folder / "err").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
        const std::string base = (folder / "base.json").string(), fresh = (folder / "new.json").string();
        ::execl(BENCH_COMPARE, BENCH_COMPARE, base.c_str(), fresh.c_str(), static_cast<char*>(nullptr));
        ::_exit(127);
    }
    ::close(ends[1]);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 2);
    CHECK(contains(json::read_file(folder / "err"), "standard output: cannot be written"));
}
