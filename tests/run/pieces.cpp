// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "plumbline/run/forecast.hpp"
#include "plumbline/run/merge.hpp"
#include "plumbline/run/paths.hpp"
#include "plumbline/run/progress.hpp"
#include "plumbline/run/schedule.hpp"
#include "plumbline/run/select.hpp"
#include "process_under_test.hpp"

namespace run = plumbline::run;
namespace result = plumbline::result;

namespace {

/// A one-session baseline of one benchmark.
result::baseline one_session(const std::string& id, double value) {
    result::baseline b;
    b.created = "2026-11-30T20:00:00Z";
    b.sessions.push_back({});
    result::result r;
    r.what.id = id;
    r.backend = "cpu";
    r.verified = true;
    r.sessions.push_back({});
    r.sessions[0].samples = {value};
    b.results.push_back(r);
    return b;
}

} // namespace

TEST_CASE("the filter searches, and a leading minus negates") {
    const std::vector<std::string> ids{"gemm/fp32/a", "gemm/bf16/a", "probe/launch"};
    run::chosen made = run::select(ids, "standard", "fp32|probe");
    CHECK(made.ids == std::vector<std::string>{"gemm/fp32/a", "probe/launch"});
    CHECK(made.selected.left_out == std::vector<std::string>{"gemm/bf16/a"});
    CHECK(made.selected.filter == "fp32|probe");
    CHECK(run::select(ids, "standard", "-gemm").ids == std::vector<std::string>{"probe/launch"});
    CHECK(run::select(ids, "standard", "").ids == ids);
    CHECK_THROWS_AS((void)run::select(ids, "standard", "("), plumbline::usage_error);
    try {
        (void)run::select(ids, "standard", "conv");
        FAIL("nothing matched");
    } catch (const plumbline::error& e) {
        CHECK(e.code() == plumbline::exit_code::incomplete);
    }
    CHECK_THROWS_AS((void)run::select({}, "standard", ""), plumbline::error);
}

TEST_CASE("a suite is found by name, then as a file, else the nearest name is offered") {
    const std::map<std::string, std::string> built_in{{"quick", R"({"name": "quick", "cpu": ["a/1"]})"}};
    CHECK(run::find_suite("quick", built_in).of("cpu") == std::vector<std::string>{"a/1"});
    const test_folder folder;
    std::ofstream(folder / "mine.json") << R"({"name": "mine", "cpu": ["b/1", "b/2"]})";
    CHECK(run::find_suite(folder / "mine.json", built_in).of("cpu").size() == 2);
    try {
        (void)run::find_suite("quik", built_in);
        FAIL("no such suite");
    } catch (const plumbline::usage_error& e) {
        CHECK(contains(e.what(), "did you mean 'quick'?"));
    }
}

TEST_CASE("the shuffled order depends on the seed alone and favours none") {
    const std::vector<std::string> ids{"a", "b", "c"};
    CHECK(run::shuffled(ids, 5) == run::shuffled(ids, 5));
    CHECK(run::shuffled({}, 1).empty());
    std::map<std::string, int> counts;
    for (std::uint64_t seed = 0; seed < 6000; ++seed) {
        std::string order;
        for (const std::string& id : run::shuffled(ids, seed)) order += id;
        ++counts[order];
    }
    CHECK(counts.size() == 6);
    // 1000 expected of each; five standard deviations are 144.
    for (const auto& entry : counts) CHECK(std::abs(entry.second - 1000) < 144);
}

TEST_CASE("each benchmark gets its sessions; one that kills twice is given up") {
    run::schedule todo({"a", "b", "c"}, 3, {{"a", 1}, {"c", 5}});
    CHECK(todo.next() == std::vector<std::string>{"a", "b"});
    CHECK(todo.sessions_left() == 3);
    CHECK(todo.runs_left() == 5);
    todo.answered("a", false);
    todo.answered("b", false);
    CHECK(todo.sessions_left() == 2);
    todo.answered("a", false);
    CHECK(todo.next() == std::vector<std::string>{"b"});
    CHECK_FALSE(todo.died("b"));
    CHECK(todo.next() == std::vector<std::string>{"b"});
    CHECK(todo.died("b"));
    CHECK(todo.next().empty());
    CHECK_FALSE(todo.died("unknown"));

    run::schedule skips({"a"}, 4, {});
    skips.answered("a", true);
    CHECK(skips.next().empty());
}

TEST_CASE("sessions are merged by id and metric, their indices move") {
    result::baseline all = one_session("a", 1);
    run::merge(all, one_session("a", 2));
    run::merge(all, one_session("b", 3));
    REQUIRE(all.sessions.size() == 3);
    REQUIRE(all.results.size() == 2);
    REQUIRE(all.results[0].sessions.size() == 2);
    CHECK(all.results[0].sessions[1].session == 1);
    CHECK(all.results[0].sessions[1].samples == std::vector<double>{2});
    CHECK(all.results[1].sessions[0].session == 2);
    CHECK(all.results[0].verified);
    CHECK(run::sessions_by_id(all) == std::map<std::string, std::size_t>{{"a", 2}, {"b", 1}});
    run::order_results(all, {"b", "a"});
    CHECK(all.results[0].what.id == "b");
}

TEST_CASE("a device that was named before it was opened gets the properties that its sessions read") {
    result::baseline all;
    all.device.backend = "fake";
    all.device.uuid = "named";
    result::baseline part = one_session("a", 1);
    part.device = {"fake", "model", "named", {{"datasheet.bf16_flop_per_s", 1e15}}, {}};
    run::merge(all, part);
    CHECK(all.device.uuid == "named");
    CHECK(all.device.properties == part.device.properties);
}

TEST_CASE("failed once is failed, and an unverified session takes the mark away") {
    result::baseline all = one_session("a", 1);
    result::baseline wrong = one_session("a", 2);
    wrong.results[0].status = result::result_status::failed;
    wrong.results[0].reason = "the output is wrong";
    wrong.results[0].verified = false;
    run::merge(all, wrong);
    run::merge(all, one_session("a", 3));
    CHECK(all.results[0].status == result::result_status::failed);
    CHECK(all.results[0].reason == "in session 2: the output is wrong");
    CHECK_FALSE(all.results[0].verified);
    CHECK(all.results[0].sessions.size() == 3);

    result::baseline skipped = one_session("a", 1);
    skipped.results[0].status = result::result_status::skipped;
    skipped.results[0].sessions.clear();
    CHECK(run::sessions_by_id(skipped).at("a") == 1); // an answer
    skipped.results[0].reason = result::not_measured;
    CHECK(run::sessions_by_id(skipped).at("a") == 0); // none: --append and --resume ask again
    run::merge(skipped, one_session("a", 2));
    CHECK(skipped.results[0].status == result::result_status::ok);
}

TEST_CASE("environments are compared by what is known on both sides") {
    result::fingerprint a, b;
    const auto put = [](result::fingerprint& in, const char* name, result::reading read) {
        in.attributes[name] = {result::attribute_class::config, 1, "test", std::move(read)};
    };
    put(a, "driver", result::reading::of(std::string("1")));
    put(b, "driver", result::reading::of(std::string("1")));
    put(a, "only.a", result::reading::of(true));
    put(a, "unknown", result::reading::absent("no file"));
    put(b, "unknown", result::reading::of(true));
    CHECK(run::first_difference(a, b, result::attribute_class::config).empty());
    put(b, "driver", result::reading::of(std::string("2")));
    CHECK(run::first_difference(a, b, result::attribute_class::config) == "driver: 1 -> 2");
    CHECK(run::first_difference(a, b, result::attribute_class::identity).empty());
}

TEST_CASE("files are named by model and hashed UUID") {
    result::device d;
    d.model = "NVIDIA H200 (HBM3e)";
    d.uuid = "abcdef0123456789";
    CHECK(run::baseline_path("dir", d) == "dir/nvidia-h200-hbm3e-abcdef01.json");
    CHECK(run::baseline_path("dir", {}) == "dir/unknown-unknown.json");
    CHECK(run::baseline_folder({}) == "baselines/local");
    CHECK(run::baseline_folder({{"PLUMBLINE_BASELINE_DIR", "/x"}}) == "/x");

    const test_folder folder;
    const std::filesystem::path first = run::run_path(folder.path(), d, 0);
    CHECK(first.filename() == "nvidia-h200-hbm3e-abcdef01-19700101T000000Z.json");
    std::filesystem::create_directories(first.parent_path());
    CHECK(run::unfinished_run(folder.path(), d).empty());
    std::ofstream(first.string() + ".partial") << "x";
    CHECK(run::unfinished_run(folder.path(), d) == first);
    CHECK(run::run_path(folder.path(), d, 0) != first);
    std::ofstream(first) << "x";
    const std::filesystem::path later = run::run_path(folder.path(), d, 3600);
    std::ofstream(later) << "x";
    CHECK(run::finished_runs(folder.path(), d, 1) == std::vector<std::filesystem::path>{later});
    CHECK(run::finished_runs(folder.path(), d, 9).size() == 2);

    const std::filesystem::path kept = run::replaced_path(folder.path() / "base.json", 0);
    CHECK(kept.filename() == "base.replaced-19700101T000000Z.json");
    std::ofstream(kept) << "x";
    CHECK(run::replaced_path(folder.path() / "base.json", 0).filename() == "base.replaced-19700101T000000Z-2.json");
}

TEST_CASE("runs/ keeps the newest runs of a device, each whole, and what is not named by its time") {
    const test_folder folder;
    result::device d;
    d.model = "NVIDIA H200";
    d.uuid = "017764c2d1c7d0fc";
    std::filesystem::create_directories(folder.path() / "runs");
    const auto touch = [&](const std::string& name) { std::ofstream(folder.path() / "runs" / name) << "x"; };
    const std::string stem = "nvidia-h200-017764c2-";
    for (const char* name :
         {"20261128T031700Z.json", "20261128T031700Z.control.json", "20261129T031700Z.json.partial",
          "20261130T031700Z-2.json", "20261130T031700Z.json", "20261201T031700Z.json", "good.json"}) {
        touch(stem + name);
    }
    touch("nvidia-h200-99999999-20261128T031700Z.json");
    const auto left = [&] {
        std::set<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "runs")) {
            names.insert(entry.path().filename().string());
        }
        return names;
    };
    run::remove_old_runs(folder.path(), d, 5);
    CHECK(left().size() == 8);
    run::remove_old_runs(folder.path(), d, 2);
    CHECK(left() == std::set<std::string>{"nvidia-h200-99999999-20261128T031700Z.json",
                                          stem + "20261130T031700Z-2.json", stem + "20261201T031700Z.json",
                                          stem + "good.json"});
    CHECK(run::runs_to_keep({}) == 100);
    CHECK(run::runs_to_keep({{"PLUMBLINE_KEEP", "7"}}) == 7);
    for (const char* wrong : {"0", "-1", "some", "7 ", "99999999999999999999999"}) {
        CHECK_THROWS_AS((void)run::runs_to_keep({{"PLUMBLINE_KEEP", wrong}}), plumbline::usage_error);
    }
}

TEST_CASE("progress: few plain lines, one overwritten line on a terminal, nothing when quiet") {
    std::ostringstream plain, terminal, silent;
    {
        run::progress lines(plain, run::progress::style::lines, false);
        for (std::size_t i = 0; i < 5; ++i) lines.begin("id", 1, 2, i, 10, 5);
        lines.begin("id", 2, 2, 5, 10, 5);
        lines.warn("careful");
        run::progress overwritten(terminal, run::progress::style::terminal, true);
        overwritten.begin(std::string(200, 'x'), 1, 2, 0, 10, 65);
        run::progress quiet(silent, run::progress::style::silent, false);
        quiet.note("hello");
        quiet.begin("id", 1, 1, 0, 1, 1);
        quiet.warn("shown all the same");
    }
    CHECK(plain.str() ==
          "session 1/2  1 of 10  5.0 s left  id\nsession 2/2  6 of 10  5.0 s left  id\nwarning: careful\n");
    CHECK(contains(terminal.str(), "session 1/2  1 of 10  65 s left"));
    CHECK(terminal.str().size() < 100);
    CHECK(silent.str() == "warning: shown all the same\n");
    CHECK(run::duration_text(0.04) == "0.0 s");
    CHECK(run::duration_text(185) == "3 min 05 s");
}

TEST_CASE("times are predicted from what was measured") {
    const auto find = [](const std::string& id) {
        if (id == "unknown/1") throw plumbline::unsupported_error("no such family");
        plumbline::workload::description d;
        d.id = id;
        return d;
    };
    run::forecast times(0.5, find);
    CHECK_FALSE(times.learnt());
    CHECK(times.seconds_of("a") > 0);
    CHECK(times.seconds_of("unknown/1") == 0);
    result::baseline seen = one_session("a", 1);
    seen.results[0].sessions[0].state["total_seconds"] = 2.0;
    seen.sessions[0].seconds = 2.5;
    times.learn(seen);
    CHECK(times.learnt());
    CHECK(times.start_s() == doctest::Approx(0.5));
    CHECK(times.predict({"a"}, 4) == doctest::Approx(10));
    seen.sessions[0].failed = true;
    seen.sessions[0].seconds = 100;
    times.learn(seen); // a session that failed says nothing about starting one
    CHECK(times.start_s() == doctest::Approx(0.5));
    times.started_in(0.7); // seen from outside, with the start and the end of the process
    CHECK(times.predict({"a"}, 4) == doctest::Approx(10.8));
    times.started_in(-0.1);
    CHECK(times.start_s() == 0);
}
