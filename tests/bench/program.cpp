// SPDX-License-Identifier: Apache-2.0
// The real bench program on the CPU backend, with benchmarks of milliseconds. What the program does in general is
// tested over a fake backend in tests/run.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "plumbline/json/store.hpp"
#include "plumbline/json/suite.hpp"
#include "process_under_test.hpp"

namespace json = plumbline::json;
namespace result = plumbline::result;

namespace {

/// A place without NVIDIA hardware would be needed for --backend=auto: this asks for the CPU.
struct place {
    test_folder folder;
    std::map<std::string, std::string> variables;

    place() {
        variables["PLUMBLINE_BASELINE_DIR"] = folder / "baselines";
        variables["OMP_NUM_THREADS"] = "1"; // threads that wait for each other are slow where others compile
        std::ofstream(folder / "tiny.json") << R"({"name": "tiny", "cpu": [
            "gemm/fp32/tn/m64n64k64/hot", "gemm/fp32/nn/m33n17k65/hot", "gemm/bf16/tn/m64n64k64/hot", "probe/canary_fma"]})";
    }

    ended bench(std::vector<std::string> arguments) const {
        arguments.push_back("--backend=cpu");
        return run_program(BENCH, std::move(arguments), variables, folder.text());
    }
    [[nodiscard]] std::string tiny() const { return "--suite=" + (folder / "tiny.json"); }
};

} // namespace

TEST_CASE("--list prints the ids of the suite that was compiled in") {
    const place at;
    for (const char* name : {"quick", "standard", "full", "check"}) {
        const auto suite = json::load_suite(std::filesystem::path(BENCH_SUITES) / (std::string(name) + ".json"));
        const ended r = at.bench({"--list", std::string("--suite=") + name});
        CHECK(r.code == 0);
        std::string expected;
        for (const std::string& id : suite.of("cpu")) expected += id + "\n";
        CHECK(r.out == expected);
    }
}

TEST_CASE("a baseline of real work: verified, measured, bound to its environment; compared with itself it is equal") {
    const place at;
    const std::string file = at.folder / "b.json";
    const ended r = at.bench({"--baseline=" + file, at.tiny(), "--sessions=2", "--force"});
    CAPTURE(r.err);
    CAPTURE(r.out);
    CHECK(r.code == 0);
    const result::baseline made = json::load(file);
    CHECK(made.device.backend == "cpu");
    CHECK_FALSE(made.device.model.empty());
    CHECK_FALSE(made.device.uuid.empty());
    CHECK(made.environment.find("cpu.model") != nullptr);
    REQUIRE(made.results.size() == 4);
    for (const result::result& each : made.results) {
        CAPTURE(each.what.id);
        CAPTURE(each.reason);
        CHECK(each.backend == "cpu");
        // bf16 is skipped where the processor has none, never failed.
        if (each.what.id.rfind("gemm/bf16", 0) != 0) CHECK(each.status == result::result_status::ok);
        CHECK(each.status != result::result_status::failed);
        if (each.status != result::result_status::ok) continue;
        CHECK(each.sessions.size() == 2);
        CHECK(each.sessions[0].samples.size() >= 1);
        if (each.what.family == "gemm") CHECK(each.verified);
        if (each.what.family == "gemm") CHECK_FALSE(each.sessions[0].ran.implementation.empty());
    }
    // Millisecond benchmarks on a machine that builds beside them are noisy: the margin is wide, the path is the same.
    std::ofstream(at.folder / "policy.json") << R"({"rules": [{"match": "*", "margin": 0.99, "s0": 0.001, "s_e": 0}]})";
    const ended compared = at.bench(
        {"--compare=" + file, "--sessions=1", "--force", "--policy=" + (at.folder / "policy.json"), "--format=json"});
    CAPTURE(compared.err);
    CHECK((compared.code == 0 || compared.code == 1)); // measured and judged, whatever the machine was doing
    CHECK(contains(compared.out, "\"plumbline/comparison\""));
    CHECK(contains(compared.out, "\"gemm/fp32/tn/m64n64k64/hot\""));
}

TEST_CASE("the fingerprint of two runs has the same hashes") {
    const place at;
    const result::fingerprint a = json::parse_fingerprint(at.bench({"--fingerprint"}).out, "first");
    const result::fingerprint b = json::parse_fingerprint(at.bench({"--fingerprint"}).out, "second");
    CHECK(a.comparability_hash() == b.comparability_hash());
    CHECK(a.provenance_hash() == b.provenance_hash());
    CHECK(a.attributes.size() > 20);
}

TEST_CASE("--check runs its suite and says that GEMM works") {
    const place at;
    const ended r = at.bench({"--check=quick"});
    CAPTURE(r.out);
    CHECK(contains(r.out, "ok  backend.starts"));
    CHECK(contains(r.out, "work.gemm"));
    CHECK((r.code == 0 || contains(r.out, "fail  ")));
}
