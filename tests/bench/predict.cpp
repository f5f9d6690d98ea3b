// SPDX-License-Identifier: Apache-2.0
// bench --predict for real: the cuDNN of this machine answers for a recorded H200, without a GPU or a driver.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "plumbline/json/document.hpp"
#include "plumbline/json/store.hpp"
#include "plumbline/workload/conv.hpp"
#include "process_under_test.hpp"

namespace json = plumbline::json;
namespace result = plumbline::result;
namespace workload = plumbline::workload;

namespace {

constexpr const char* bf16 = "conv/fprop/bf16/nhwc/n256c64h56w56k64r3s3u1p1";
constexpr const char* tf32 = "conv/fprop/tf32/nchw/n256c64h56w56k64r3s3u1p1";

/// A baseline of an H200 whose two convolutions ran these implementations.
result::baseline h200(const std::string& bf16_ran, const std::string& tf32_ran) {
    result::baseline made;
    made.created = "2026-11-30T21:00:00Z";
    made.device.backend = "cuda";
    made.device.model = "NVIDIA H200";
    made.device.properties["cudnn.device"] = contents(std::string(PLUMBLINE_TEST_DATA) + "/cudnn/h200.json");
    made.sessions.resize(1);
    made.sessions[0].started = made.created;
    for (const auto& [id, ran] : {std::pair(bf16, bf16_ran), std::pair(tf32, tf32_ran)}) {
        result::result one;
        one.what = workload::conv::describe(workload::conv::parse(id));
        one.backend = "cuda";
        one.sessions.resize(1);
        one.sessions[0].samples = {3e5};
        one.sessions[0].ran = {ran, {{"tensor_cores", true}, {"cudnn_version", std::int64_t{91400}}}, {}};
        made.results.push_back(one);
    }
    return made;
}

/// Runs --predict on a baseline.
ended predict(const result::baseline& of, const std::map<std::string, std::string>& variables = {},
              const std::vector<std::string>& more = {}) {
    const test_folder folder;
    json::save(folder / "base.json", of);
    std::vector<std::string> arguments{"--predict=" + (folder / "base.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(BENCH, arguments, variables, folder.text());
}

/// What the cuDNN here would run for an id, as --predict says it.
std::string choice_for(const std::string& id) {
    const ended r = predict(h200("cudnn/A/eng0", "cudnn/A/eng0"), {}, {"--format=json"});
    CAPTURE(r.err);
    const nlohmann::json found = json::parse_document(r.out, "prediction", json::comments::refused);
    for (const auto& each : found.at("results")) {
        if (each.at("id") == id) return each.at("after").get<std::string>();
    }
    return {};
}

} // namespace

TEST_CASE("the choices of the cuDNN here are as before, changed, or worse") {
    const std::string wide = choice_for(bf16), narrow = choice_for(tf32);
    CHECK(wide.rfind("cudnn/A/eng", 0) == 0);
    CHECK(narrow.rfind("cudnn/A/eng", 0) == 0);
    const ended same = predict(h200(wide, narrow));
    CAPTURE(same.out);
    CAPTURE(same.err);
    CHECK(same.code == 0);
    CHECK(contains(same.out, "0 worse, 0 changed, 2 as before; exit 0"));
    std::string other = wide; // the same engine with another knob
    other.back() = other.back() == '1' ? '2' : '1';
    const ended changed = predict(h200(other, narrow));
    CAPTURE(changed.out);
    CHECK(changed.code == 0);
    const ended unknown = predict(h200("cudnn/A/eng999", narrow));
    CHECK(unknown.code == 0);
    CHECK(contains(unknown.out, "unknown   " + std::string(bf16)));
    CHECK(contains(changed.out, "changed   " + std::string(bf16)));
    // Without TF32 the same library takes an engine without tensor cores.
    const ended worse = predict(h200(wide, narrow), {{"NVIDIA_TF32_OVERRIDE", "0"}});
    CAPTURE(worse.out);
    CHECK(worse.code == 1);
    CHECK(contains(worse.out, "WORSE     " + std::string(tf32)));
    CHECK(contains(worse.out, "TF32 was asked for and not used"));
}

TEST_CASE("what cannot be foretold says what is missing") {
    result::baseline bare = h200("cudnn/A/eng0", "cudnn/A/eng0");
    bare.device.properties.clear();
    const ended no_device = predict(bare);
    CHECK(no_device.code == 6);
    CHECK(contains(no_device.err, "\"cudnn.device\""));
    bare.device.properties["cudnn.device"] = std::string("{\"maxGridSize\": 7}");
    const ended damaged = predict(bare);
    CHECK(damaged.code == 2);
    CHECK(contains(damaged.err, "the baseline was edited or damaged"));
    result::baseline none = h200("cudnn/A/eng0", "cudnn/A/eng0");
    none.results.clear();
    const ended nothing = predict(none);
    CHECK(nothing.code == 6);
    CHECK(contains(nothing.err, "no measured convolution"));
    result::baseline other = h200("cudnn/A/eng0", "cudnn/A/eng0");
    other.device.backend = "cpu";
    for (auto& each : other.results) each.backend = "cpu";
    CHECK(predict(other).code == 6);
    CHECK(run_program(BENCH, {"--predict=/nowhere.json"}).code == 2);
}
