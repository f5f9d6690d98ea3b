// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include <doctest/doctest.h>

#include "golden.hpp"
#include "plumbline/report/environment.hpp"
#include "plumbline/report/results.hpp"
#include "sample_comparison.hpp"

using namespace plumbline;

namespace {

result::result result_of(const std::string& id, double flop, double bytes, const std::vector<double>& values) {
    result::result one;
    one.what.id = id;
    one.what.params["dtype"] = std::string("bf16");
    one.what.flop = flop;
    one.what.bytes = bytes;
    one.backend = "cuda";
    one.verified = true;
    for (std::size_t i = 0; i < values.size(); ++i) {
        result::session_result session;
        session.session = i;
        session.samples = {values[i] * 0.99, values[i], values[i] * 1.02};
        session.ran.implementation = "lt/id66/t19/s13/k1/c2";
        one.sessions.push_back(session);
    }
    return one;
}

result::baseline table() {
    result::baseline all;
    all.device.backend = "cuda";
    all.device.model = "NVIDIA H200";
    all.device.ceilings = {{"gemm_bf16_flop_per_s", 805e12}, {"copy_bytes_per_s", 4.02e12}};
    all.sessions.resize(5);
    const double n = 4096;
    all.results.push_back(result_of("gemm/bf16/tn/m4096n4096k4096", 2 * n * n * n, 6 * n * n,
                                    {172'700, 172'800, 172'650, 172'720, 172'690}));
    all.results.push_back(result_of("layernorm/fwd/bf16/r16384h4096/native", 8.0 * 16384 * n, 4.0 * 16384 * n,
                                    {68'000, 68'100, 68'050, 67'990, 68'020}));
    all.results[1].sessions[2].flags = {result::flag::throttled};
    all.results[1].sessions[3].ran.implementation = "native/other";
    result::result images = result_of("dataloader/jpeg/w8p2/pinned", 0, 0, {8600, 8650});
    images.what.metric = "throughput";
    images.what.unit = "items/s";
    images.verified = false;
    all.results.push_back(images);
    result::result failed = result_of("gemm/int8/tn/m4096n4096k4096", 1, 1, {});
    failed.status = result::result_status::failed;
    failed.reason = "wrong result at element 17: 3 instead of 4";
    all.results.push_back(failed);
    result::result skipped = failed;
    skipped.what.id = "gemm/fp8_e4m3/tn/m8192n8192k8192";
    skipped.status = result::result_status::skipped;
    skipped.reason = "needs compute capability 8.9";
    all.results.push_back(skipped);
    all.selected.left_out = {"probe/soak"};
    return all;
}

std::string written(const result::baseline& what, std::size_t width) {
    report::options how;
    how.width = width;
    std::ostringstream out;
    report::write_results(out, what, how);
    return out.str();
}

} // namespace

TEST_CASE("the table of a run") {
    tests::check_golden("results.txt", written(table(), 120));
    tests::check_golden("results_narrow.txt", written(table(), 80));
    result::baseline died = table();
    died.sessions[4].failed = true;
    died.sessions[4].started = "2026-11-30T20:15:00Z";
    died.sessions[4].reason = "killed by signal 9";
    died.results.clear();
    tests::check_golden("results_none.txt", written(died, 120));
}

TEST_CASE("a row has the median of the sessions' medians, the rate by formula and the share of the limit") {
    const result::baseline all = table();
    const report::result_row gemm = report::row_of(all.results[0], all.device);
    CHECK(gemm.value == "172.7 us");
    CHECK(gemm.rate == "795.8 TFLOP/s");
    CHECK(gemm.limit == "98.9 %");
    CHECK(gemm.spread == "0.03 %");
    CHECK(gemm.remarks.empty());
    const report::result_row norm = report::row_of(all.results[1], all.device);
    CHECK(norm.rate == "3.946 TB/s");
    CHECK(norm.remarks == "implementation varies, clock held down in 1 of 5");
    const report::result_row images = report::row_of(all.results[2], all.device);
    CHECK(images.value == "8625 items/s");
    CHECK(images.rate.empty());
    CHECK(images.limit.empty());
    CHECK(images.remarks == "unverified");
    CHECK(report::row_of(all.results[3], all.device).remarks == "FAILED: wrong result at element 17: 3 instead of 4");
}

TEST_CASE("alarms stand below their result, each once, and are counted") {
    result::baseline all = table();
    all.results.resize(2);
    all.results[0].what.params["dtype"] = std::string("tf32");
    for (std::size_t i : {1u, 3u}) all.results[0].sessions[i].ran.parts["tensor_cores"] = false;
    const report::result_row row = report::row_of(all.results[0], all.device);
    REQUIRE(row.alarms.size() == 1);
    CHECK(row.alarms[0] == "TF32 was asked for and not used: see NVIDIA_TF32_OVERRIDE (in 2 of 5 sessions)");
    CHECK(written(all, 120).find("\n    ALARM: TF32 was asked for") != std::string::npos);
    CHECK(written(all, 120).find("2 results, 1 alarm, 1 not selected\n") != std::string::npos);
    CHECK(written(table(), 120).find("ALARM") == std::string::npos);
}

TEST_CASE("a run of one session has no spread, and a result without samples says so") {
    const result::device on;
    CHECK(report::row_of(result_of("a", 0, 0, {5}), on).spread.empty());
    CHECK(report::row_of(result_of("a", 0, 0, {}), on).remarks == "no samples");
}

TEST_CASE("the table names the backend that ran, not the one that was asked for") {
    result::baseline all = table();
    for (auto& each : all.results) each.backend = "cpu";
    CHECK(written(all, 120).rfind("backend cpu", 0) == 0);
}

TEST_CASE("the table fits the terminal") {
    for (const std::size_t width : {80U, 120U}) {
        std::istringstream lines(written(table(), width));
        for (std::string line; std::getline(lines, line);) {
            CAPTURE(line);
            CHECK(report::columns(line) <= width);
        }
    }
}

namespace {

/// Two DataLoader benchmarks of three sessions, one of which recommends something else.
result::baseline loading() {
    result::baseline all;
    all.device.backend = "cpu";
    all.sessions.resize(3);
    for (const char* id : {"dataloader/jpeg/w1p2", "dataloader/jpeg/wbestp2/step100ms"}) {
        result::result one = result_of(id, 0, 0, {500, 510, 505});
        one.what.family = "dataloader";
        one.what.metric = "throughput";
        one.what.unit = "items/s";
        for (std::size_t i = 0; i < 3; ++i) {
            const double off = i == 0 ? 0.9 : i == 1 ? 1.1 : 1; // the median is the last one's
            scalar_map& state = one.sessions[i].state;
            for (const auto& [name, value] : std::map<std::string, double>{{"images_per_s", 505},
                                                                           {"read_mb_per_s", 32.25},
                                                                           {"cpu_us_per_image", 1950},
                                                                           {"read_us_per_image", 31},
                                                                           {"decode_us_per_image", 1250},
                                                                           {"transform_us_per_image", 640},
                                                                           {"copy_us_per_image", 0},
                                                                           {"waiting_share", 0.5},
                                                                           {"waiting_for_decode_share", 0.3},
                                                                           {"waiting_for_transform_share", 0.2},
                                                                           {"epoch_start_ms", 0.12},
                                                                           {"first_batch_ms", 260}}) {
                state[name] = value * off;
            }
            state["workers"] = std::int64_t{2};
            state["cached_share_before"] = 1.0;
            state["limit_affinity"] = std::string("the affinity mask allows 4 of the machine's 16 CPUs");
        }
        all.results.push_back(one);
    }
    all.results[0].sessions[1].state["failures"] = std::string("3 failed: 3 truncated; first a.jpg: cut");
    all.results[0].sessions[1].state["cached_share_before"] = 0.5;
    all.results[0].sessions[2].state["cached_share_before"] = 0.5;
    all.results[0].what.params["cold"] = false;
    for (std::size_t i = 0; i < 3; ++i) {
        scalar_map& state = all.results[1].sessions[i].state;
        state["recommended_workers"] = std::int64_t{i == 1 ? 4 : 2};
        state["recommended_prefetch"] = std::int64_t{2};
        state["recommended_pin_memory"] = false;
        state["recommended_because"] = std::string("2 workers give 990 images/s, more gain less than 5 %");
        state["curve"] = std::string("1:500 2:990 4:1000");
    }
    return all;
}

} // namespace

TEST_CASE("what the DataLoader found stands below the table: rates, stages, waits, limits, and the knee on its curve") {
    tests::check_golden("loading.txt", written(loading(), 120));
    tests::check_golden("loading_narrow.txt", written(loading(), 80));
    for (const std::size_t width : {80U, 100U, 120U}) {
        std::istringstream lines(written(loading(), width));
        for (std::string line; std::getline(lines, line);) {
            CAPTURE(line);
            CHECK(report::columns(line) <= width);
        }
    }
    const report::loading_row row = report::loading_row_of(loading().results[0]);
    CHECK(row.cells[0] == "jpeg/w1p2");
    CHECK(row.cells[2] == "505");
    CHECK(row.cells[6] == "1.25");
    CHECK(row.cells[8] == "-"); // nothing was copied
    CHECK(row.cells[9] == "50 % decode");
    REQUIRE(row.remarks.size() == 2);
    CHECK(row.remarks[0] == "samples: 3 failed: 3 truncated; first a.jpg: cut");
    CHECK(row.remarks[1] == "only 50.0 % of the files were in the page cache when it began");
}

TEST_CASE("a training step that consumes the batches is named, beside its time and in its recommendation") {
    result::baseline all = loading();
    for (auto& session : all.results[1].sessions) {
        session.state["trains"] = std::string("training_step/bottleneck/bf16/n128c256h56k1000");
        session.state["consumer_ms"] = 12.34;
    }
    const report::loading_row row = report::loading_row_of(all.results[1]);
    REQUIRE(row.remarks.size() == 1);
    CHECK(row.remarks[0] == "trains training_step/bottleneck/bf16/n128c256h56k1000: 12.3 ms a step beside waiting");
    CHECK(written(all, 120).find("\nrecommended for training_step/bottleneck/bf16/n128c256h56k1000: num_workers=2,") !=
          std::string::npos);
}

TEST_CASE("a result of the DataLoader without its readings, or with a curve that is none, is no trouble") {
    result::baseline all = loading();
    for (auto& session : all.results[1].sessions) session.state["curve"] = std::string("1:x nonsense");
    CHECK(written(all, 120).find("knee") == std::string::npos);
    CHECK(written(all, 120).find("recommended: num_workers=2") != std::string::npos);
    for (auto& each : all.results)
        for (auto& session : each.sessions) session.state.clear();
    CHECK(written(all, 120).find("DataLoader") == std::string::npos);
    CHECK(report::detail::parse_curve("1:500 2:990").size() == 2);
    for (const char* text : {"", "1", "1:", ":5", "a:5", "1:500 2"}) CHECK(report::detail::parse_curve(text).empty());
}

TEST_CASE("the difference of two environments") {
    std::ostringstream out;
    report::write_environment(out, tests::sample_comparison().environment, tests::sample_options());
    tests::check_golden("environment.txt", out.str());
    std::ostringstream none;
    report::write_environment(none, {});
    CHECK(none.str() == "no attribute of hardware or configuration differs\n");
}
