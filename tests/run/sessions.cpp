// SPDX-License-Identifier: Apache-2.0
// Children that die and hang, interrupts, --resume, kill -9, time budgets.
#include <doctest/doctest.h>

#include <chrono>
#include <random>
#include <string>

#include "fake_program.hpp"
#include "plumbline/json/store.hpp"

namespace json = plumbline::json;
namespace result = plumbline::result;

namespace {

const result::result& result_of(const result::baseline& in, const std::string& id) {
    for (const result::result& each : in.results) {
        if (each.what.id == id) return each;
    }
    FAIL("no result " << id);
    return in.results.front();
}

std::size_t failed_sessions(const result::baseline& in) {
    std::size_t failed = 0;
    for (const result::session& each : in.sessions) failed += each.failed ? 1 : 0;
    return failed;
}

double seconds_of(const std::function<void()>& what) {
    const auto begin = std::chrono::steady_clock::now();
    what();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Six benchmarks of 150 ms each: a test that waits for the second session has most of a second to act in it, which a
/// machine that compiles beside the tests needs.
std::vector<std::string> slow_ids() {
    return {"fake/slow/150", "fake/slow/151", "fake/slow/152", "fake/slow/153", "fake/slow/154", "fake/slow/155"};
}

} // namespace

TEST_CASE("a child that dies is a failed session with its reason, the others count") {
    const fake_place at;
    const std::string file = at.folder / "run.json";
    const ended r =
        at.bench({at.suite({"fake/work/1", "fake/die/1", "fake/work/2"}), "--sessions=3", "--save=" + file});
    CHECK(r.code == 4);
    CHECK(contains(r.err, "signal 11"));
    const result::baseline made = json::load(file);
    CHECK(failed_sessions(made) == 2);
    for (const result::session& each : made.sessions) {
        if (each.failed) CHECK(contains(each.reason, "fake/die/1"));
    }
    CHECK(result_of(made, "fake/die/1").status == result::result_status::failed);
    CHECK(contains(result_of(made, "fake/die/1").reason, "signal 11"));
    for (const char* id : {"fake/work/1", "fake/work/2"}) {
        CHECK(result_of(made, id).status == result::result_status::ok);
        CHECK(result_of(made, id).sessions.size() == 3);
    }
}

TEST_CASE("a child that hangs is stopped and counts as a failed session") {
    fake_place at;
    at.variables["PLUMBLINE_WATCHDOG_SECONDS"] =
        "4"; // a process that only starts must not seem to hang on a busy machine
    const std::string file = at.folder / "run.json";
    const ended r = at.bench({at.suite({"fake/work/1", "fake/hang/1"}), "--sessions=2", "--save=" + file});
    CHECK(r.code == 4);
    CHECK(contains(r.err, "said nothing for 4 s"));
    const result::baseline made = json::load(file);
    CHECK(failed_sessions(made) == 2);
    CHECK(result_of(made, "fake/hang/1").status == result::result_status::failed);
    CHECK(result_of(made, "fake/work/1").sessions.size() == 2);
    at.variables["PLUMBLINE_WATCHDOG_SECONDS"] = "soon";
    CHECK(at.bench({"--suite=quick"}).code == 2);
}

TEST_CASE("outputs are verified once; later sessions compare hashes") {
    fake_place at;
    at.variables["FAKE_VERIFICATIONS"] = at.folder / "verifications";
    const std::string file = at.folder / "run.json";
    REQUIRE(at.bench({"--suite=quick", "--sessions=4", "--save=" + file}).code == 0);
    CHECK(contents(at.folder / "verifications").size() == 2);
    for (const result::result& each : json::load(file).results) CHECK(each.verified);
}

TEST_CASE("interrupted: what was measured is saved, --resume goes on") {
    for (const int signal : {SIGINT, SIGTERM}) {
        fake_place at;
        const std::string file = at.folder / "b.json";
        const std::vector<std::string> call{"--baseline=" + file, at.suite(slow_ids()), "--sessions=2"};
        running bench(FAKE_BENCH, call, at.variables, at.folder.text());
        REQUIRE(bench.says("session 2/2"));
        bench.signal(signal);
        const ended r = bench.wait();
        CHECK(r.code == (signal == SIGINT ? 130 : 143));
        CHECK(contains(r.err, "--resume"));
        CHECK_FALSE(std::filesystem::exists(file));
        const result::baseline partial = json::load(file + ".partial");
        CHECK(partial.results.size() == 6);
        const std::string first_session = partial.sessions[0].started;

        // Another selection is not what was interrupted.
        CHECK(at.bench({"--baseline=" + file, "--suite=quick", "--resume"}).code == 2);
        std::vector<std::string> again = call;
        again.push_back("--resume");
        // Going on where the device does not start loses nothing.
        at.variables["FAKE_START"] = "fail";
        CHECK(run_program(FAKE_BENCH, again, at.variables, at.folder.text()).code == 6);
        CHECK(json::load(file + ".partial").results.size() == 6);
        at.variables.erase("FAKE_START");
        CHECK(at.bench(again).code == 0);
        const result::baseline made = json::load(file);
        CHECK(made.sessions[0].started == first_session);
        CHECK(made.sessions.size() >= 2);
        for (const result::result& each : made.results) CHECK(each.sessions.size() == 2);
        CHECK_FALSE(std::filesystem::exists(file + ".partial"));
    }
}

TEST_CASE("kill -9 of the parent: its children die, FILE.partial and the session's file hold what was finished") {
    fake_place at;
    const std::string file = at.folder / "b.json";
    const std::vector<std::string> call{"--baseline=" + file, at.suite(slow_ids()), "--sessions=2"};
    {
        running bench(FAKE_BENCH, call, at.variables, at.folder.text());
        REQUIRE(bench.says("session 2/2"));
        bench.signal(SIGKILL);
        CHECK(bench.wait().code == 137);
    }
    CHECK_FALSE(std::filesystem::exists(file));
    CHECK(json::load(file + ".partial").results.size() == 6);
    // The child has died with its parent: its file does not change any more.
    ::poll(nullptr, 0, 200);
    const std::string session = contents(file + ".tmp.session");
    ::poll(nullptr, 0, 300);
    CHECK(contents(file + ".tmp.session") == session);
    std::vector<std::string> again = call;
    again.push_back("--resume");
    CHECK(at.bench(again).code == 0);
    for (const result::result& each : json::load(file).results) CHECK(each.sessions.size() == 2);
    for (const auto& each : std::filesystem::directory_iterator(at.folder.path())) {
        CHECK_FALSE(contains(each.path().filename().string(), ".tmp."));
        CHECK_FALSE(contains(each.path().filename().string(), ".partial"));
    }
}

TEST_CASE("kill -9 at ten random moments of --replace leaves the old file or the new one") {
    fake_place at;
    const std::string file = at.folder / "b.json";
    const std::vector<std::string> first{"--baseline=" + file, "--suite=quick", "--sessions=1"};
    double whole = seconds_of([&] { REQUIRE(at.bench(first).code == 0); });
    const std::vector<std::string> replace{"--baseline=" + file, "--suite=quick", "--sessions=1", "--replace",
                                           "--reason=test"};
    std::mt19937 random(7);
    std::uniform_real_distribution<double> moment(0, whole);
    std::string before = contents(file);
    for (int i = 0; i < 10; ++i) {
        running bench(FAKE_BENCH, replace, at.variables, at.folder.text());
        ::poll(nullptr, 0, static_cast<int>(moment(random) * 1000));
        bench.signal(SIGKILL);
        const int code = bench.wait().code;
        const result::baseline now = json::load(file); // whole, whatever happened
        CHECK(now.results.size() == 2);
        if (code == 137) CHECK((contents(file) == before || now.history.back().what == "replaced"));
        before = contents(file);
    }
    CHECK(at.bench(replace).code == 0);
    for (const auto& each : std::filesystem::directory_iterator(at.folder.path())) {
        CHECK_FALSE(contains(each.path().filename().string(), ".tmp."));
        CHECK_FALSE(contains(each.path().filename().string(), ".partial"));
    }
}

TEST_CASE("two runs do not write one file") {
    fake_place at;
    const std::string file = at.folder / "b.json";
    const std::vector<std::string> call{"--baseline=" + file, at.suite(slow_ids()), "--sessions=3"};
    running first(FAKE_BENCH, call, at.variables, at.folder.text());
    REQUIRE(first.says("session 1/3"));
    const ended second = at.bench(call);
    CHECK(second.code == 6);
    CHECK(contains(second.err, "being written by another run"));
    CHECK(first.wait().code == 0);
    CHECK(json::load(file).results.size() == 6);
}

TEST_CASE("a time budget is kept; what it left out is a skipped result with its description, and the run incomplete") {
    fake_place at;
    const std::string file = at.folder / "run.json";
    std::vector<std::string> ids;
    for (int i = 0; i < 12; ++i) ids.push_back("fake/slow/" + std::to_string(1000 + i));
    ended r;
    const double seconds = seconds_of([&] {
        r = at.bench({at.suite(ids), "--sessions=3", "--time-budget=1.5", "--save=" + file});
    });
    CHECK(r.code == 4);
    CHECK(seconds < 25); // all of it would take 36
    const result::baseline made = json::load(file);
    CHECK(made.results.size() == 12);
    std::size_t measured = 0, left = 0;
    for (const result::result& each : made.results) {
        if (each.status == result::result_status::ok) ++measured;
        if (!result::lacked_time(each)) continue;
        ++left;
        CHECK(each.what.family == "fake");
        CHECK(plumbline::to_string(each.what.params.at("what")) == "slow"); // what workload.hash is made of
    }
    CHECK(measured >= 1);
    CHECK(left >= 1);
    CHECK(measured + left == 12);
    CHECK(contains(plumbline::to_string(made.checks.at(result::sessions_check)),
                   "of 12 benchmarks have fewer than the 3 sessions"));
    CHECK(contains(r.out, "warn: the time budget was spent"));
}

TEST_CASE("a time budget that leaves sessions out, but no benchmark, ends well and says so in report and file") {
    fake_place at;
    const std::string file = at.folder / "run.json";
    const ended r = at.bench({"--suite=quick", "--sessions=500", "--time-budget=2", "--save=" + file});
    CHECK(r.code == 0);
    const result::baseline made = json::load(file);
    CHECK(made.results.size() == 2);
    CHECK(made.sessions.size() < 500);
    const std::string said = "2 of 2 benchmarks have fewer than the 500 sessions asked for";
    CHECK(contains(plumbline::to_string(made.checks.at(result::sessions_check)), said));
    CHECK(contains(r.out, said));
}

TEST_CASE("an environment that changed since is not appended to, unless forced") {
    fake_place at;
    REQUIRE(at.bench({"--baseline", "--suite=quick", "--sessions=1"}).code == 0);
    result::baseline stored = json::load(at.baseline());
    bool changed = false;
    for (auto& [name, entry] : stored.environment.attributes) {
        if (changed || entry.kind != result::attribute_class::config || !entry.read.known()) continue;
        if (!std::holds_alternative<std::string>(entry.read.value)) continue;
        entry.read.value = std::string("something else");
        changed = true;
    }
    REQUIRE(changed);
    json::save(at.baseline(), stored);
    const ended refused = at.bench({"--append", "--sessions=1"});
    CHECK(refused.code == 6);
    CHECK(contains(refused.err, "something else ->"));
    CHECK(json::load(at.baseline()).sessions.size() == 1);
    CHECK(at.bench({"--append", "--sessions=1", "--force"}).code == 0);
    CHECK(json::load(at.baseline()).sessions.size() == 2);
}
