// SPDX-License-Identifier: Apache-2.0
// --confirm from outside: settings that a fingerprint records, over a backend that reacts to them.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>

#include <sched.h>

#include "fake_program.hpp"
#include "plumbline/run/process.hpp"

namespace {

/// The line of a report that begins with a text; "" when there is none.
std::string line_with(const std::string& report, const std::string& begin) {
    std::istringstream in(report);
    for (std::string line; std::getline(in, line);) {
        if (line.rfind(begin, 0) == 0) return line;
    }
    return {};
}

} // namespace

TEST_CASE("of two changed variables the guilty one is confirmed and the innocent one is cleared") {
    fake_place at;
    REQUIRE(at.bench({"--baseline", at.suite({"fake/work/1", "fake/work/2", "fake/work/3", "fake/work/4"})}).code == 0);
    at.variables["HDF5_USE_FILE_LOCKING"] = "TRUE";
    at.variables["LD_BIND_NOW"] = "1";
    const ended asked = at.bench({"--compare"});
    CAPTURE(asked.out);
    CHECK(asked.code == 1);
    CHECK(contains(asked.out, "env.HDF5_USE_FILE_LOCKING not set -> TRUE (associated)"));
    CHECK(contains(asked.out, "env.LD_BIND_NOW not set -> 1 (associated)"));
    CHECK(contains(asked.out, "to prove a cause: bench --compare=BASE --confirm"));
    const ended r = at.bench({"--compare", "--confirm"});
    CAPTURE(r.out);
    CAPTURE(r.err);
    CHECK(r.code == 1);
    CHECK(contains(r.err, "--confirm: 2 causes set back and forth, 4 benchmarks, 9 sessions: about "));
    CHECK(line_with(r.out, "cause") ==
          "cause         env.HDF5_USE_FILE_LOCKING not set -> TRUE (confirmed), link 4, covers 2");
    CHECK(contains(r.out, "2 of 2 recovered with the old setting and were lost again with the new; 2 unaffected"));
    // On a busy machine nothing can be cleared; then it gives way to what is proven.
    const std::string innocent = line_with(r.out, "not blamed");
    const bool cleared = contains(innocent, "env.LD_BIND_NOW not set -> 1: set back: nothing recovered (0 of 2)");
    CHECK((cleared || contains(innocent, "env.LD_BIND_NOW not set -> 1: it fits, but env.HDF5_USE_FILE_LOCKING is")));
    CHECK_FALSE(contains(r.out, "to prove a cause"));
    CHECK(at.files(".tmp").empty());
    const ended in_json = at.bench({"--compare", "--confirm", "--format=json"});
    CHECK(contains(in_json.out, "\"confirmed\""));
    CHECK(contains(in_json.out, "\"proven\""));
    CHECK((contains(in_json.out, "\"cleared\"") || contains(in_json.out, "which proves nothing: work waited")));
    CHECK(contains(in_json.out, "\"causes\": [\"env.HDF5_USE_FILE_LOCKING\"]"));
}

TEST_CASE("what a baseline had and is not set now is set for the experiment") {
    fake_place at;
    at.variables["HDF5_USE_FILE_LOCKING"] = "FALSE";
    REQUIRE(at.bench({"--baseline", "--suite=quick"}).code == 0);
    at.variables["HDF5_USE_FILE_LOCKING"] = "TRUE";
    const ended r = at.bench({"--compare", "--confirm"});
    CAPTURE(r.out);
    CHECK(line_with(r.out, "cause") ==
          "cause         env.HDF5_USE_FILE_LOCKING FALSE -> TRUE (confirmed), link 4, covers 1");
}

TEST_CASE("the CPU affinity is given back to the session that proves it") {
    cpu_set_t before;
    REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
    if (CPU_COUNT(&before) < 2) {
        MESSAGE("skipped: this process has one processor");
        return;
    }
    fake_place at;
    std::ofstream(at.folder / "known.json") << R"({"knowledge": [{"component": "CPU affinity", "effect": "fewer",
        "attributes": ["cpu.allowed"], "touches": ["fake/cpus/*"]}]})";
    REQUIRE(at.bench({"--baseline", at.suite({"fake/cpus/1", "fake/work/2", "fake/work/4"})}).code == 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
        if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
    }
    REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
    const ended r = at.bench({"--compare", "--confirm", "--knowledge=" + (at.folder / "known.json")});
    REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
    CAPTURE(r.out);
    CAPTURE(r.err);
    CHECK(r.code == 1);
    const std::string cause = line_with(r.out, "cause");
    CHECK(contains(cause, "CPU affinity: cpu.allowed "));
    CHECK(contains(cause, "(confirmed)"));
}

TEST_CASE("what cannot be set back says so; --confirm without a cause runs nothing more") {
    fake_place at;
    REQUIRE(at.bench({"--baseline", "--suite=quick"}).code == 0);
    at.variables["FAKE_FACTOR"] = "2"; // which no fingerprint records
    const ended r = at.bench({"--compare", "--confirm"});
    CAPTURE(r.out);
    CHECK(r.code == 1);
    CHECK(contains(r.out, "nothing recorded changed: suspect the node; run it on a sibling"));
    CHECK_FALSE(contains(r.err, "set back and forth"));
    CHECK_FALSE(contains(line_with(r.out, "cause"), "confirmed"));
    CHECK(at.bench({"--confirm"}).code == 2);
}

TEST_CASE("a list of processors is read as the kernel writes it") {
    namespace run = plumbline::run;
    const cpu_set_t set = run::detail::parse_processors("0-2,8");
    CHECK(CPU_COUNT(&set) == 4);
    CHECK(CPU_ISSET(8, &set));
    CHECK_FALSE(CPU_ISSET(3, &set));
    for (const char* wrong : {"", "a", "1-", "1,,2", "1 2", "99999", "-1"}) {
        CHECK_THROWS_AS((void)run::detail::parse_processors(wrong), plumbline::usage_error);
    }
}
