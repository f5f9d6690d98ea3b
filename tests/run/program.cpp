// SPDX-License-Identifier: Apache-2.0
// The program from outside: what it writes, what it refuses, and its exit codes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "fake_program.hpp"
#include "plumbline/json/store.hpp"

namespace json = plumbline::json;
namespace result = plumbline::result;

TEST_CASE("a plain run prints a table and keeps its JSON in runs/") {
    const fake_place at;
    const ended r = at.bench({"--suite=quick"});
    CHECK(r.code == 0);
    CHECK(contains(r.out, "fake/work/1"));
    CHECK(contains(r.err, "no NVIDIA hardware here"));
    const std::vector<std::string> kept = at.files(".json");
    REQUIRE(kept.size() == 1);
    CHECK(contains(kept[0], "/runs/fake-device-01234567-"));
    const result::baseline made = json::load(kept[0]);
    CHECK(made.sessions.size() == 3);
    CHECK(made.results.size() == 2);
    CHECK(made.selected.suite == "quick");
    CHECK(made.history.empty());
    CHECK(at.files("partial").empty());
    CHECK(at.files(".tmp.").empty());
}

TEST_CASE("--baseline writes one file per device, by its name, and the schema accepts it") {
    const fake_place at;
    const ended r = at.bench({"--baseline", "--label", "image=sha256:12", "--label", "ticket=7"});
    CHECK(r.code == 0);
    const result::baseline made = json::load(at.baseline());
    CHECK(made.sessions.size() == 5);
    REQUIRE(made.results.size() == 4);
    for (const result::result& each : made.results) {
        CHECK(each.backend == "cpu");
        const bool skipped = each.what.id == "fake/unsupported/1";
        CHECK(each.status == (skipped ? result::result_status::skipped : result::result_status::ok));
        CHECK(each.verified == !skipped);
        if (!skipped) CHECK(each.sessions.size() == 5);
    }
    CHECK(made.results[0].what.id == "fake/work/1"); // the suite's order, not a shuffled one
    CHECK(plumbline::to_string(made.labels.at("image")) == "sha256:12");
    REQUIRE(made.history.size() == 1);
    CHECK(made.history[0].what == "created");
    CHECK_FALSE(made.checks.empty());
    CHECK_FALSE(made.environment.attributes.empty());
    std::set<std::vector<std::string>> orders;
    for (const result::session& each : made.sessions) orders.insert(each.order);
    CHECK(orders.size() > 1);
    if (std::system("/usr/bin/python3 -c 'import jsonschema' 2>/dev/null") != 0 ||
        !std::filesystem::exists(BASELINE_SCHEMA)) {
        MESSAGE("the schema was not tried: python3-jsonschema is not installed");
        return;
    }
    const std::string check = "/usr/bin/python3 -c 'import json, sys, jsonschema; "
                              "jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))' " +
                              at.baseline() + " " BASELINE_SCHEMA;
    CHECK(std::system(check.c_str()) == 0);
}

TEST_CASE("an existing baseline is not overwritten: exit 2 at once, with the three choices") {
    const fake_place at;
    REQUIRE(at.bench({"--baseline", "--suite=quick", "--sessions=1"}).code == 0);
    const std::string before = contents(at.baseline());
    const ended r = at.bench({"--baseline", "--suite=quick"});
    CHECK(r.code == 2);
    for (const char* choice : {"--append", "--compare", "--replace"}) CHECK(contains(r.err, choice));
    CHECK(contents(at.baseline()) == before);
    CHECK_FALSE(contains(r.err, "session 1"));
}

TEST_CASE("--append adds sessions, --replace keeps the old file beside the new one") {
    const fake_place at;
    CHECK(at.bench({"--append"}).code == 2); // nothing to append to
    REQUIRE(at.bench({"--baseline", "--suite=quick", "--sessions=2"}).code == 0);
    REQUIRE(at.bench({"--append", "--sessions=3"}).code == 0);
    result::baseline made = json::load(at.baseline());
    CHECK(made.sessions.size() == 5);
    CHECK(made.selected.suite == "quick");
    for (const result::result& each : made.results) CHECK(each.sessions.size() == 5);
    REQUIRE(made.history.size() == 2);
    CHECK(made.history[1].what == "appended");

    const std::string before = contents(at.baseline());
    CHECK(at.bench({"--baseline", "--replace"}).code == 2); // needs a reason
    REQUIRE(at.bench({"--baseline", "--replace", "--reason=new driver", "--suite=quick", "--sessions=1"}).code == 0);
    made = json::load(at.baseline());
    CHECK(made.sessions.size() == 1);
    REQUIRE(made.history.size() == 3);
    CHECK(made.history[2].what == "replaced");
    CHECK(made.history[2].reason == "new driver");
    const std::vector<std::string> kept = at.files(".replaced-");
    REQUIRE(kept.size() == 1);
    CHECK(contents(kept[0]) == before);
}

TEST_CASE("a broken baseline can be replaced, and is kept as it was") {
    const fake_place at;
    const std::string file = at.folder / "b.json";
    std::ofstream(file) << "{ broken";
    CHECK(at.bench({"--compare=" + file}).code == 2);
    CHECK(at.bench({"--append", "--baseline=" + file}).code == 2);
    CHECK(
        at.bench({"--baseline=" + file, "--replace", "--reason=it was broken", "--suite=quick", "--sessions=1"}).code ==
        0);
    CHECK(json::load(file).results.size() == 2);
    bool found = false;
    for (const auto& each : std::filesystem::directory_iterator(at.folder.path())) {
        if (contains(each.path().string(), "b.replaced-")) found = contents(each.path()) == "{ broken";
    }
    CHECK(found);
}

TEST_CASE("--save names the file of a run; a baseline there is not overwritten, another run is") {
    const fake_place at;
    const std::string file = at.folder / "run.json";
    CHECK(at.bench({"--suite=quick", "--sessions=1", "--save=" + file}).code == 0);
    CHECK(json::load(file).sessions.size() == 1);
    CHECK(at.bench({"--suite=quick", "--sessions=2", "--save=" + file}).code == 0);
    CHECK(json::load(file).sessions.size() == 2);
    CHECK(at.files(".json").empty());
    REQUIRE(at.bench({"--suite=quick", "--sessions=1", "--baseline=" + (at.folder / "b.json")}).code == 0);
    const ended r = at.bench({"--suite=quick", "--sessions=1", "--save=" + (at.folder / "b.json")});
    CHECK(r.code == 2);
    CHECK(contains(r.err, "is a baseline"));
    // With --baseline both files are written.
    CHECK(at.bench({"--suite=quick", "--sessions=1", "--baseline=" + (at.folder / "c.json"), "--save=" + file}).code ==
          0);
    CHECK(contents(file) == contents(at.folder / "c.json"));
}

TEST_CASE("--list prints ids alone, one a line, and follows the filter") {
    const fake_place at;
    const ended all = at.bench({"--list"});
    CHECK(all.code == 0);
    CHECK(lines_of(all.out) == 4);
    CHECK(all.err.empty());
    CHECK(at.bench({"--list", "--suite=quick"}).out == "fake/work/1\nfake/work/2\n");
    CHECK(at.bench({"--list", "--filter=work/[23]"}).out == "fake/work/2\nfake/work/3\n");
    CHECK(at.bench({"--list", "--filter=-work"}).out == "fake/unsupported/1\n");
    CHECK(at.bench({"--benchmark_list_tests", "--benchmark_filter=work/2"}).out == "fake/work/2\n");
    CHECK(at.bench({"--list", at.suite({"fake/work/9"})}).out == "fake/work/9\n");
}

TEST_CASE("the filter is stored as the declared subset") {
    const fake_place at;
    const std::string file = at.folder / "run.json";
    REQUIRE(at.bench({"--filter=work/[12]", "--sessions=1", "--save=" + file}).code == 0);
    const result::baseline made = json::load(file);
    CHECK(made.results.size() == 2);
    CHECK(made.selected.filter == "work/[12]");
    CHECK(made.selected.left_out == std::vector<std::string>{"fake/work/3", "fake/unsupported/1"});
}

TEST_CASE("usage errors: exit 2, one line, nothing measured") {
    const fake_place at;
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
        {{"--sesions=3"}, "did you mean '--sessions'?"},
        {{"--filter=("}, "is not a regular expression"},
        {{"--suite=quik"}, "did you mean 'quick'?"},
        {{"--backend=metal"}, "no backend is called 'metal'"},
        {{"--compare"}, "make one with --baseline"},
        {{"--compare=nowhere.json"}, "there is no baseline nowhere.json"},
        {{"--resume"}, "no unfinished run"},
        {{"--baseline", "--resume"}, "no unfinished run"},
        {{at.suite({"fake/nonsense"})}, "is not fake/WHAT/NUMBER"},
        {{"--control=nowhere"}, "there is no such file"},
        {{"--device=all", "--save=x.json"}, "name no file"},
    };
    for (const auto& [arguments, part] : cases) {
        const ended r = at.bench(arguments);
        CAPTURE(arguments[0]);
        CAPTURE(r.err);
        CHECK(r.code == 2);
        CHECK(r.out.empty());
        CHECK(contains(r.err, part));
        const std::string errors = r.err.substr(r.err.find("bench: error: "));
        CHECK(lines_of(errors) == 1);
        CHECK_FALSE(contains(r.err, "session 1"));
    }
    CHECK(at.files(".json").empty());
}

TEST_CASE("outputs that cannot be written are found before anything is measured") {
    const fake_place at;
    std::ofstream(at.folder / "file") << "x";
    for (const char* flag : {"--save=", "--output=", "--baseline=", "--benchmark_out="}) {
        const ended r = at.bench({"--suite=quick", flag + (at.folder / "file/below.json")});
        CAPTURE(r.err);
        CHECK(r.code == 2);
        CHECK_FALSE(contains(r.err, "session 1"));
    }
}

TEST_CASE("nothing matched, nothing runnable and failed benchmarks: exit 4") {
    const fake_place at;
    CHECK(at.bench({"--filter=zzz"}).code == 4);
    CHECK(at.bench({"--list", "--filter=zzz"}).code == 4);
    CHECK(at.bench({at.suite({"fake/unsupported/1"}), "--sessions=1"}).code == 4);
    const std::string file = at.folder / "run.json";
    // A family of another backend is skipped with the reason.
    CHECK(at.bench({at.suite({"fake/work/1", "conv/x"}), "--sessions=2", "--save=" + file}).code == 0);
    result::baseline made = json::load(file);
    REQUIRE(made.results.size() == 2);
    CHECK(made.results[1].status == result::result_status::skipped);
    CHECK(contains(made.results[1].reason, "no family 'conv'"));
    // A benchmark that throws and one with a wrong result fail with the reason; the others are measured.
    CHECK(
        at.bench({at.suite({"fake/throw/1", "fake/wrong/1", "fake/work/1"}), "--sessions=2", "--save=" + file}).code ==
        4);
    made = json::load(file);
    REQUIRE(made.results.size() == 3);
    CHECK(made.results[0].status == result::result_status::failed);
    CHECK(contains(made.results[0].reason, "this benchmark throws"));
    CHECK(made.results[1].status == result::result_status::failed);
    CHECK(contains(made.results[1].reason, "the output is wrong"));
    CHECK(made.results[2].status == result::result_status::ok);
    CHECK(made.results[2].sessions.size() == 2);
}

TEST_CASE("auto never falls from cuda to cpu") {
    fake_place at;
    // NVIDIA hardware on the PCI bus, and a program without CUDA.
    const std::filesystem::path pci = at.folder / "root/sys/bus/pci/devices/0000:1b:00.0";
    std::filesystem::create_directories(pci);
    std::ofstream(pci / "vendor") << "0x10de\n";
    std::ofstream(pci / "class") << "0x030200\n";
    const ended without = at.bench({"--suite=quick"});
    CHECK(without.code == 6);
    CHECK(contains(without.err, "built without CUDA"));
    CHECK(contains(without.err, "--backend=cpu"));
    CHECK(at.bench({"--suite=quick", "--backend=cpu", "--sessions=1"}).code == 0);
    // With CUDA it is used.
    at.variables["FAKE_CUDA"] = "1";
    CHECK(at.bench({"--list"}).out == "fake/work/7\n");
    // A CUDA that does not start is an error too, and leaves no file.
    at.variables["FAKE_START"] = "fail";
    const ended broken = at.bench({"--baseline=" + (at.folder / "x.json")});
    CHECK(broken.code == 6);
    CHECK(contains(broken.err, "plug it in"));
    CHECK_FALSE(std::filesystem::exists(at.folder / "x.json"));
}

TEST_CASE("--backend=cuda without hardware: exit 6 with the diagnosis, no file") {
    const fake_place at;
    const ended r = at.bench({"--backend=cuda", "--baseline=" + (at.folder / "x.json")});
    CHECK(r.code == 6);
    CHECK(contains(r.err, "there is no NVIDIA GPU here"));
    CHECK_FALSE(std::filesystem::exists(at.folder / "x.json"));
    CHECK_FALSE(std::filesystem::exists(at.folder / "x.json.partial"));
}

TEST_CASE("--fingerprint is JSON alone on standard output, the same twice") {
    const fake_place at;
    const ended first = at.bench({"--fingerprint"});
    CHECK(first.code == 0);
    CHECK(contains(first.out, "\"comparability\""));
    const result::fingerprint a = json::parse_fingerprint(first.out, "first");
    const result::fingerprint b = json::parse_fingerprint(at.bench({"--fingerprint", "--quiet"}).out, "second");
    CHECK(a.comparability_hash() == b.comparability_hash());
    CHECK(a.provenance_hash() == b.provenance_hash());
}

TEST_CASE("--check prints outcomes and counts; --format=json is JSON alone; a backend that does not start fails") {
    fake_place at;
    const ended text = at.bench({"--check=quick"});
    CHECK(text.code == 0);
    CHECK(contains(text.out, "ok  backend.starts"));
    CHECK(contains(text.out, " failed, "));
    const ended document = at.bench({"--check=full", "--format=json"});
    CHECK(document.out.substr(0, 1) == "{");
    CHECK(contains(document.out, "\"backend.starts\""));
    at.variables["FAKE_START"] = "fail";
    const ended broken = at.bench({"--check=quick"});
    CHECK(broken.code == 6);
    CHECK(contains(broken.out, "plug it in"));
}

TEST_CASE("reports: --output, JSON, Google's JSON") {
    const fake_place at;
    const std::string file = at.folder / "report.txt";
    const ended text = at.bench({"--suite=quick", "--sessions=1", "--output=" + file});
    CHECK(text.out.empty());
    CHECK(contains(contents(file), "fake/work/1"));
    const ended document = at.bench({"--suite=quick", "--sessions=1", "--format=json"});
    CHECK(json::parse_baseline(document.out, "stdout").results.size() == 2);
    const ended google = at.bench(
        {"--suite=quick", "--sessions=2", "--benchmark_format=json", "--benchmark_out=" + (at.folder / "google.json")});
    CHECK(google.code == 0);
    CHECK(google.out == contents(at.folder / "google.json"));
    std::string squeezed = google.out;
    squeezed.erase(std::remove(squeezed.begin(), squeezed.end(), ' '), squeezed.end());
    for (const std::string part : {"\"context\":", "\"benchmarks\":", "\"name\":\"fake/work/1\"",
                                   "\"repetition_index\":1", "\"fake/work/2_median\"", "\"time_unit\":\"ns\""}) {
        CAPTURE(part);
        CHECK(contains(squeezed, part));
    }
}

TEST_CASE("--quiet leaves standard error empty; --version and --help are no runs") {
    const fake_place at;
    const ended r = at.bench({"--suite=quick", "--sessions=1", "--quiet"});
    CHECK(r.code == 0);
    CHECK(r.err.empty());
    CHECK(at.bench({"--version"}).code == 0);
    CHECK(contains(at.bench({"--help"}).out, "Exit codes"));
}

TEST_CASE("--device=all measures each device into its own file") {
    const fake_place at;
    const ended r = at.bench({"--baseline", "--device=all", "--suite=quick", "--sessions=1"});
    CHECK(r.code == 0);
    CHECK(json::load(at.baseline()).results.size() == 2);
    CHECK(json::load(at.folder / "baselines/fake-device-11234567.json").results.size() == 2);
    CHECK(contains(r.err, "nobody can say which of two"));
}

TEST_CASE("--device=all names the odd one among several devices, in a baseline and in a comparison") {
    fake_place at;
    at.variables["FAKE_DEVICES"] = "4";
    const ended even = at.bench({"--baseline", "--device=all", "--suite=quick", "--sessions=1"});
    CHECK(even.code == 0);
    CHECK(contains(even.err, "4 devices, none stands apart from the others"));
    at.variables["FAKE_SLOW_DEVICE"] = "2";
    const ended odd = at.bench({"--compare", "--device=all", "--sessions=5"});
    CAPTURE(odd.err);
    CHECK(odd.code == 1); // against its own baseline too
    CHECK(contains(odd.err, "the odd one of 4 devices, device 2 (fake-device-21234567-"));
    CHECK(contains(odd.err, "cost +25.0 % against its 3 siblings over 2 results; most: fake/work/"));
    CHECK(odd.err.find("the odd one") == odd.err.rfind("the odd one"));
}

TEST_CASE("a program that starts itself for one step is that step alone") {
    const fake_place at;
    CHECK(at.bench({"--fake-step"}).code == 42);
}

TEST_CASE("bytes that are no UTF-8 in variables, labels and reasons cost no run") {
    fake_place at;
    at.variables["LD_LIBRARY_PATH"] = "/opt/caf\xe9";
    at.variables["USER"] = "ren\xe9";
    const std::vector<std::string> call{"--baseline", "--suite=quick", "--sessions=1", "--label", "k\xe9y=v\xe9"};
    REQUIRE(at.bench(call).code == 0);
    std::vector<std::string> again = call;
    again.insert(again.end(), {"--replace", "--reason=caf\xe9"});
    CHECK(at.bench(again).code == 0);
    const result::baseline made = json::load(at.baseline());
    CHECK(plumbline::to_string(made.labels.at("k\\xE9y")) == "v\\xE9");
    REQUIRE(made.history.size() == 2);
    CHECK(made.history[1].reason == "caf\\xE9");
    CHECK(made.history[1].who == "ren\\xE9");
}

TEST_CASE("a run removes what runs leave behind, and nothing else") {
    const fake_place at;
    const std::string file = at.folder / "x.json";
    const std::vector<std::string> mine{".partial.my-notes", ".partial~", ".tmp.plan.old", ".tmp.session-2"};
    const std::vector<std::string> theirs{".partial", ".partial.tmp.1.2", ".tmp.plan", ".tmp.session"};
    for (const std::string& each : mine) std::ofstream(file + each) << "mine";
    for (const std::string& each : theirs) std::ofstream(file + each) << "left";
    REQUIRE(at.bench({"--baseline=" + file, "--suite=quick", "--sessions=1"}).code == 0);
    for (const std::string& each : mine) CHECK(contents(file + each) == "mine");
    for (const std::string& each : theirs) CHECK_FALSE(std::filesystem::exists(file + each));
}

TEST_CASE("a folder is no baseline") {
    const fake_place at;
    const ended r = at.bench({"--baseline=" + at.folder.text(), "--suite=quick"});
    CHECK(r.code == 2);
    CHECK(contains(r.err, "is a folder"));
}

TEST_CASE("without a folder for temporary files a check says what to set") {
    fake_place at;
    for (const char* folder : {"/no/such/folder", "/proc"}) {
        at.variables["TMPDIR"] = folder;
        const ended r = at.bench({"--fingerprint"});
        CHECK(r.code == 2);
        CHECK(contains(r.err, "set TMPDIR"));
    }
}
