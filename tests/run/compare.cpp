// SPDX-License-Identifier: Apache-2.0
// --compare, --control and --self-test from outside.
#include <doctest/doctest.h>

#include <string>

#include "fake_program.hpp"
#include "plumbline/json/store.hpp"

namespace json = plumbline::json;
namespace result = plumbline::result;

TEST_CASE("--compare runs the baseline's benchmarks: quiet when nothing changed, exit 1 when slower") {
    fake_place at;
    REQUIRE(at.bench({"--baseline", "--suite=quick"}).code == 0);
    const ended same = at.bench({"--compare"});
    CAPTURE(same.out);
    CHECK(same.code == 0);
    CHECK(contains(same.out, "2 equivalent"));
    at.variables["FAKE_FACTOR"] = "1.5";
    const ended slower = at.bench({"--compare=" + at.baseline()});
    CAPTURE(slower.out);
    CHECK(slower.code == 1);
    CHECK(contains(slower.out, "fake/work/1"));
    CHECK(at.files(".json").size() == 3); // the baseline and the two runs
    // A subset: what is left out does not count.
    at.variables["FAKE_FACTOR"] = "1";
    CHECK(at.bench({"--compare", "--filter=work/2"}).code == 0);
}

TEST_CASE("runs/ keeps as many runs as PLUMBLINE_KEEP says; a wrong number is said before anything is measured") {
    fake_place at;
    REQUIRE(at.bench({"--baseline", "--suite=quick"}).code == 0);
    at.variables["PLUMBLINE_KEEP"] = "2";
    for (int night = 0; night < 3; ++night) CHECK(at.bench({"--compare", "--sessions=2"}).code == 0);
    CHECK(at.bench({"--suite=quick", "--sessions=1"}).code == 0);
    CHECK(at.files("Z").size() == 2);
    CHECK(at.files("fake-device").size() == 3); // and the baseline
    at.variables["PLUMBLINE_KEEP"] = "some";
    const ended wrong = at.bench({"--compare"});
    CHECK(wrong.code == 2);
    CHECK(contains(wrong.err, "PLUMBLINE_KEEP=some is not a number from 1 on"));
    CHECK_FALSE(contains(wrong.err, "session 1"));
}

TEST_CASE("--compare writes every format to --output") {
    fake_place at;
    REQUIRE(at.bench({"--baseline", "--filter=work/1"}).code == 0);
    for (const auto& [format, part] : std::map<std::string, std::string>{
             {"text", "equivalent"}, {"json", "\"findings\""}, {"markdown", "|"}, {"junit", "<testsuite"}}) {
        const std::string file = at.folder / format;
        const ended r = at.bench({"--compare", "--format=" + format, "--output=" + file, "--sessions=2"});
        CAPTURE(format);
        CHECK(r.out.empty());
        CHECK(contains(contents(file), part));
    }
}

TEST_CASE("a baseline of another backend is refused before measuring, exit 3") {
    fake_place at;
    REQUIRE(at.bench({"--baseline", "--suite=quick", "--sessions=1"}).code == 0);
    result::baseline other = json::load(at.baseline());
    other.device.backend = "cuda";
    json::save(at.folder / "cuda.json", other);
    const ended r = at.bench({"--compare=" + (at.folder / "cuda.json")});
    CHECK(r.code == 3);
    CHECK(contains(r.err, "--backend=cuda"));
    CHECK_FALSE(contains(r.err, "session 1"));
}

TEST_CASE("a policy can widen the margin; a broken one is refused before measuring") {
    fake_place at;
    REQUIRE(at.bench({"--baseline", "--suite=quick"}).code == 0);
    at.variables["FAKE_FACTOR"] = "1.3";
    std::ofstream(at.folder / "policy.json") << R"({"rules": [{"match": "*", "margin": 0.9}]})";
    CHECK(at.bench({"--compare", "--policy=" + (at.folder / "policy.json")}).code == 0);
    CHECK(at.bench({"--compare"}).code == 1);
    std::ofstream(at.folder / "broken.json") << R"({"marginn": 1})";
    const ended r = at.bench({"--compare", "--policy=" + (at.folder / "broken.json")});
    CHECK(r.code == 2);
    CHECK_FALSE(contains(r.err, "session 1"));
}

TEST_CASE("--control alternates two programs and compares them in pairs") {
    const fake_place at;
    const std::string other = at.folder / "other.sh";
    std::ofstream(other) << "#!/bin/sh\nexport FAKE_FACTOR=${OTHER_FACTOR:-1}\nexec " FAKE_BENCH " \"$@\"\n";
    std::filesystem::permissions(other, std::filesystem::perms::owner_all);
    const std::string file = at.folder / "run.json";
    const ended same = at.bench({"--control=" + other, "--suite=quick", "--save=" + file});
    CAPTURE(same.err);
    CHECK(same.code == 0);
    const result::baseline candidate = json::load(file);
    const result::baseline control = json::load(at.folder / "run.control.json");
    REQUIRE(candidate.sessions.size() == 5);
    REQUIRE(control.sessions.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
        CHECK(candidate.sessions[i].control == "round " + std::to_string(i + 1));
        CHECK(control.sessions[i].control == candidate.sessions[i].control);
        CHECK(control.sessions[i].order == candidate.sessions[i].order);
    }
    // The other stack is twice as fast: this one has regressed against it.
    fake_place slow;
    slow.variables["OTHER_FACTOR"] = "0.5";
    const ended regressed = slow.bench({"--control=" + other, "--suite=quick"});
    CAPTURE(regressed.out);
    CHECK(regressed.code == 1);
    CHECK(at.bench({"--control=" + file}).code == 2); // a stored file is no program
    std::ofstream(at.folder / "none.sh") << "#!/bin/sh\nexit 0\n";
    std::filesystem::permissions(at.folder / "none.sh", std::filesystem::perms::owner_all);
    const ended nothing = at.bench({"--control=" + (at.folder / "none.sh"), "--suite=quick"});
    CHECK(nothing.code == 6);
    CHECK(contains(nothing.err, "bench program of this version"));
}

TEST_CASE("--self-test finds what it plants and tells nothing apart that is equal") {
    const fake_place at;
    const std::string file = at.folder / "self.json";
    REQUIRE(at.bench({"--baseline", "--suite=quick", "--sessions=1"}).code == 0);
    const ended r = at.bench({"--self-test", "--save=" + file});
    CAPTURE(r.out);
    CAPTURE(r.err);
    CHECK(r.code == 0);
    CHECK(contains(r.out, "equal halves: 2 of 2 equivalent, 0 told apart wrongly"));
    CHECK(contains(r.out, "planted 1.0 %: seen in 2 of 2"));
    CHECK(contains(r.out, "planted 5.0 %: seen in 2 of 2"));
    CHECK(json::load(file).sessions.size() == 10);
    // Noise needs ten sessions of one benchmark: five of each half are ten.
    const result::baseline stored = json::load(at.baseline());
    CHECK(stored.noise.count("fake/work/1") == 1);
    CHECK(stored.results[0].sessions.size() == 1);
    CHECK(at.files("side").empty());
    CHECK(at.bench({"--self-test", "--sessions=2", "--format=json"}).out.substr(0, 8) == "{\"same\":");
}
