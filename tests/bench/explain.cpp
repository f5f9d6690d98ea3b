// SPDX-License-Identifier: Apache-2.0
// Explained regressions for real, on the CPU backend: oneDNN kept from its instructions, and too many threads. Effects
// are several-fold, so that a busy machine does not hide them.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "plumbline/json/store.hpp"
#include "process_under_test.hpp"

namespace json = plumbline::json;
namespace result = plumbline::result;

namespace {

/// A baseline of small products, made once, and runs that are compared with it.
struct place {
    test_folder folder;
    std::map<std::string, std::string> variables;
    result::baseline base;

    place() {
        variables["PLUMBLINE_BASELINE_DIR"] = folder / "baselines";
        variables["OMP_NUM_THREADS"] = "1";
        std::ofstream(folder / "tiny.json") << R"({"name": "tiny", "cpu": ["gemm/fp32/tn/m64n64k64/hot",
            "gemm/fp32/tn/m128n128k128/hot", "gemm/bf16/tn/m64n64k64/hot", "probe/canary_fma",
            "probe/device_copy/1MiB/hot"]})";
        std::ofstream(folder / "policy.json")
            << R"({"rules": [{"match": "*", "margin": 0.5, "s0": 0.1, "s_e": 0.01}]})";
        const ended r = bench({"--baseline=" + file(), "--suite=" + (folder / "tiny.json")});
        CAPTURE(r.err);
        REQUIRE(r.code == 0);
        base = json::load(file());
    }

    [[nodiscard]] std::string file() const { return folder / "base.json"; }

    ended bench(std::vector<std::string> arguments) const {
        for (const char* more : {"--backend=cpu", "--sessions=2", "--time-budget=30", "--force"}) {
            arguments.emplace_back(more);
        }
        return run_program(BENCH, std::move(arguments), variables, folder.text());
    }
    ended compare() const {
        return bench({"--compare=" + file(), "--confirm", "--policy=" + (folder / "policy.json")});
    }

    [[nodiscard]] std::string implementation(const std::string& id) const {
        for (const result::result& each : base.results) {
            if (each.what.id == id && !each.sessions.empty()) return each.sessions[0].ran.implementation;
        }
        return {};
    }
};

/// The place all tests share: a baseline takes longer than what is done with it.
place& shared() {
    static place only;
    return only;
}

/// The first line of a report that begins with a text.
std::string line_with(const std::string& report, const std::string& begin) {
    std::istringstream in(report);
    for (std::string line; std::getline(in, line);) {
        if (line.rfind(begin, 0) == 0) return line;
    }
    return {};
}

} // namespace

TEST_CASE("an instruction set that was taken away is named, seen and proven; a variable beside it is not blamed") {
    place& at = shared();
    const std::string before = at.implementation("gemm/fp32/tn/m128n128k128/hot");
    if (before.find("avx") == std::string::npos) {
        MESSAGE("skipped: oneDNN runs " << before << " here, which has nothing to lose");
        return;
    }
    auto variables = at.variables;
    at.variables["ONEDNN_MAX_CPU_ISA"] = "SSE41";
    at.variables["MALLOC_ARENA_MAX"] = "1"; // innocent
    const ended r = at.compare();
    at.variables = variables;
    CAPTURE(r.out);
    CAPTURE(r.err);
    CHECK(r.code == 1);
    CHECK(contains(line_with(r.out, "REGRESSED     gemm/fp32/tn/m128n128k128/hot"), "   " + before + " -> "));
    const std::string cause = line_with(r.out, "cause");
    CHECK(contains(cause, "env.ONEDNN_MAX_CPU_ISA not set -> SSE41 (confirmed), link 2"));
    CHECK(contains(r.out, "seen: an older instruction set: " + before + " -> "));
    CHECK(contains(r.out, "recovered with the old setting and were lost again with the new"));
    CHECK_FALSE(contains(cause, "MALLOC_ARENA_MAX"));
    CHECK(r.out.find("\ncause ", r.out.find("\ncause ") + 1) == std::string::npos);
    if (!at.implementation("gemm/bf16/tn/m64n64k64/hot").empty()) {
        CHECK(contains(r.out, "INVALID       gemm/bf16/tn/m64n64k64/hot"));
        CHECK(contains(r.out, "cannot be created any more: matmul: this oneDNN has no implementation of it"));
        CHECK(contains(cause, "covers 3"));
    }
}

TEST_CASE("too many threads are named, seen and proven") {
    place& at = shared();
    auto variables = at.variables;
    at.variables["OMP_NUM_THREADS"] = "16";
    const ended r = at.compare();
    at.variables = variables;
    CAPTURE(r.out);
    CAPTURE(r.err);
    CHECK(r.code == 1);
    CHECK(contains(line_with(r.out, "cause"), "number of threads: env.OMP_NUM_THREADS 1 -> 16 (confirmed), link 4"));
    CHECK(contains(r.out, "seen: threads 1 -> 16"));
}
