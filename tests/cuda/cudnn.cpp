// SPDX-License-Identifier: Apache-2.0
// cuDNN's answers for a described H200: no GPU and no driver is needed. The description is written by hand from public
// figures, which only the heuristics read.
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/cuda/cudnn/norm.hpp"
#include "plumbline/cuda/cudnn/predict.hpp"
#include "plumbline/result/alarm.hpp"

using namespace plumbline;
using namespace plumbline::cuda::cudnn;

namespace {

std::string h200() {
    std::ifstream file(CUDNN_DATA "/h200.json");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// What the H200 would run for an id; the whole program asks one device.
result::evidence predicted(const std::string& id) {
    return predict(h200(), workload::conv::parse(id));
}

std::vector<std::string> alarms_of(const std::string& id, const result::evidence& ran) {
    std::vector<std::string> codes;
    for (const auto& each : result::alarms(workload::conv::describe(workload::conv::parse(id)), ran)) {
        codes.push_back(each.code);
    }
    return codes;
}

template <class T>
T part(const result::evidence& ran, const char* name) {
    return std::get<T>(ran.parts.at(name));
}

const char* const first_layer = "conv/fprop/fp16/nhwc/n256c64h56w56k64r3s3u1p1";

bool tf32_is_off() {
    const char* forced = std::getenv("NVIDIA_TF32_OVERRIDE");
    return forced != nullptr && std::string(forced) == "0";
}

} // namespace

#if CUDNN_VERSION >= 91100

TEST_CASE("every convolution of the standard suite has an engine on tensor cores, first in list A") {
    for (const char* pass : {"fprop", "dgrad", "wgrad"}) {
        for (const char* size :
             {"n256c64h56w56k64r3s3u1p1", "n256c128h56w56k128r3s3u2p1", "n256c256h14w14k1024r1s1u1p0",
              "n256c512h7w7k512r3s3u1p1", "n256c3h224w224k64r7s7u2p3"}) {
            const std::string id = std::string("conv/") + pass + "/bf16/nhwc/" + size;
            CAPTURE(id);
            const result::evidence ran = predicted(id);
            CHECK(ran.implementation.rfind("cudnn/A/eng", 0) == 0);
            CHECK(part<bool>(ran, "tensor_cores"));
            CHECK(part<std::int64_t>(ran, "position") == 0);
            CHECK(part<std::int64_t>(ran, "candidates") >= 10);
            CHECK(part<std::int64_t>(ran, "passed_over") == 0);
            CHECK(part<std::int64_t>(ran, "workspace_bytes") <= std::int64_t{1} << 30);
            CHECK(alarms_of(id, ran).empty());
            if (part<std::int64_t>(ran, "cudnn_version") / 100 == 919) {
                const bool stem = id.find("c3h224") != std::string::npos;
                CHECK((part<std::int64_t>(ran, "workspace_bytes") > 100'000'000) == stem);
            }
        }
    }
}

TEST_CASE("a plan has the name that other programs give it") {
    const result::evidence ran = predicted(first_layer);
    if (part<std::int64_t>(ran, "cudnn_version") == 91900) {
        CHECK(ran.implementation == "cudnn/A/eng62_k2=4_k13=0_k18=0_k25=1_k27=8_k28=1");
        CHECK(part<std::int64_t>(ran, "engine") == 62);
        CHECK(part<std::string>(ran, "knobs") == "k2=4_k13=0_k18=0_k25=1_k27=8_k28=1");
        CHECK(part<std::string>(ran, "numerical_notes") == "tensor_core");
        CHECK(part<std::string>(ran, "behavior_notes") == "none");
        CHECK(part<std::int64_t>(ran, "workspace_bytes") == 131);
    }
    CHECK(part<std::string>(ran, "mode") == "A");
    CHECK(predicted(first_layer) == ran);
}

TEST_CASE("groups, three dimensions, dilation, both layouts and every dtype make graphs that have engines") {
    for (const char* id :
         {"conv/fprop/bf16/nhwc/n64c256h28w28k256r3s3u1p1g32", "conv/fprop/fp16/nchw/n8c64h28w28k64r3s3u1p1g64",
          "conv/dgrad/bf16/nhwc/n16c64h32w32d16k64r3s3t3u1p1", "conv/wgrad/fp16/nchw/n4c32h16w16d8k32r3s3t3u2p1",
          "conv/fprop/bf16/nhwc/n64c64h56w56k64r3s3u1p2l2", "conv/wgrad/tf32/nhwc/n64c64h28w28k64r3s3u1p1",
          "conv/dgrad/fp32/nchw/n64c64h28w28k64r3s3u1p1", "conv/fprop/fp16/nhwc/n16c33h17w15k65r5s3u2p2"}) {
        CAPTURE(id);
        CHECK_NOTHROW(static_cast<void>(predicted(id)));
    }
}

TEST_CASE("fp32 is never computed in TF32, tf32 is unless it is forbidden") {
    for (const char* pass : {"fprop", "dgrad", "wgrad"}) {
        for (const char* layout : {"nhwc", "nchw"}) {
            const std::string rest = std::string("/") + layout + "/n256c64h56w56k64r3s3u1p1";
            const std::string fp32_id = std::string("conv/") + pass + "/fp32" + rest;
            const std::string tf32_id = std::string("conv/") + pass + "/tf32" + rest;
            CAPTURE(fp32_id);
            const result::evidence fp32 = predicted(fp32_id);
            const result::evidence tf32 = predicted(tf32_id);
            CHECK_FALSE(part<bool>(fp32, "tensor_cores"));
            CHECK(part<bool>(tf32, "tensor_cores") == !tf32_is_off());
            CHECK(alarms_of(fp32_id, fp32).empty());
            const std::vector<std::string> expected{result::alarm_code::no_tf32};
            CHECK(alarms_of(tf32_id, tf32) == (tf32_is_off() ? expected : std::vector<std::string>{}));
            if (tf32_is_off()) continue;
            // Those passed over are the ones before it in the list.
            CHECK(part<std::int64_t>(fp32, "passed_over") == part<std::int64_t>(fp32, "position"));
            CHECK(part<std::string>(fp32, "passed_over_first").find("computes in TF32") != std::string::npos);
        }
    }
}

TEST_CASE("little workspace drives NCHW to a fallback, and the fallback raises an alarm") {
    const std::string free_id = "conv/fprop/fp16/nchw/n256c64h56w56k64r3s3u1p1";
    const std::string tight_id = free_id + "/ws32";
    const result::evidence free = predicted(free_id);
    CHECK(part<std::int64_t>(free, "workspace_bytes") > 100'000'000); // x and y converted
    const result::evidence tight = predicted(tight_id);
    CHECK(part<std::int64_t>(tight, "workspace_bytes") <= 32 << 20);
    CHECK_FALSE(part<bool>(tight, "tensor_cores"));
    CHECK(part<std::string>(tight, "passed_over_first").find("needs a workspace of") != std::string::npos);
    CHECK(alarms_of(free_id, free).empty());
    const std::vector<std::string> seen = alarms_of(tight_id, tight);
    CHECK(seen.back() == result::alarm_code::no_tensor_cores);
    if (part<std::string>(tight, "mode") == "FALLBACK") CHECK(seen.front() == result::alarm_code::fallback);

    const std::string asked_id = std::string(first_layer) + "/fallback";
    const result::evidence asked = predicted(asked_id);
    CHECK(asked.implementation.rfind("cudnn/FALLBACK/eng1", 0) == 0);
    CHECK(alarms_of(asked_id, asked).front() == result::alarm_code::fallback);
    CHECK(predicted(std::string(first_layer) + "/mode_b").implementation.rfind("cudnn/B/eng", 0) == 0);
}

TEST_CASE(
    "first plans are in the order of the list, as many as asked for, within the workspace, deterministic if asked") {
    const auto p = workload::conv::parse("conv/wgrad/bf16/nhwc/n64c3h56w56k64r7s7u2p3");
    const descriptor device = device_properties(h200());
    const descriptor graph = conv_graph(p);
    const auto plans = first_plans(graph, {nullptr, device}, requirements_of(p), 16);
    CHECK(plans.size() == 16);
    for (std::size_t i = 0; i < plans.size(); ++i) {
        CHECK(plans[i].from.mode == plans[0].from.mode);
        if (i > 0) CHECK(plans[i].from.position > plans[i - 1].from.position);
        CHECK(plans[i].passed_over.size() + i == static_cast<std::size_t>(plans[i].from.position));
    }
}

TEST_CASE("a plan that does not run is passed over with the reason, and what a trial throws ends the search") {
    const target to{nullptr, device_properties(h200())};
    const auto p = workload::conv::parse(first_layer);
    const descriptor graph = conv_graph(p);
    const std::string usual = describe(first_plans(graph, to, requirements_of(p), 1).front()).implementation;
    int trials = 0;
    const auto second = first_plans(graph, to, requirements_of(p), 1, all_lists(),
                                    [&](const plan&) { return ++trials == 1 ? "does not run: planted" : ""; });
    REQUIRE(second.size() == 1);
    CHECK(trials == 2);
    CHECK(describe(second[0]).implementation != usual);
    REQUIRE_FALSE(second[0].passed_over.empty());
    CHECK(second[0].passed_over.back().find("does not run: planted") != std::string::npos);
    const auto lost = [](const plan&) -> std::string { throw error("the device is lost"); };
    CHECK_THROWS_WITH(static_cast<void>(first_plans(graph, to, requirements_of(p), 1, all_lists(), lost)),
                      doctest::Contains("the device is lost"));
}

TEST_CASE("engines that give other bits every time are passed over where the same are asked for") {
    const std::string id = "conv/wgrad/fp32/nchw/n256c64h56w56k64r3s3u1p1";
    const result::evidence free = predicted(id);
    const result::evidence fixed = predicted(id + "/deterministic");
    CHECK(part<std::string>(fixed, "numerical_notes").find("nondeterministic") == std::string::npos);
    if (part<std::int64_t>(free, "cudnn_version") == 91900) {
        CHECK(part<std::string>(free, "numerical_notes").find("nondeterministic") != std::string::npos);
        CHECK(fixed.implementation != free.implementation);
    }
}

TEST_CASE("without any engine the reasons are told") {
    const auto p = workload::conv::parse(first_layer);
    const descriptor device = device_properties(h200());
    try {
        static_cast<void>(first_plans(conv_graph(p), {nullptr, device}, {p.type, false, -1}, 1));
        FAIL("it found a plan in no workspace at all");
    } catch (const unsupported_error& refused) {
        const std::string text = refused.what();
        CHECK(text.find(first_layer) != std::string::npos);
        CHECK(text.find("needs a workspace of") != std::string::npos);
        CHECK(text.find(" more") != std::string::npos);
    }
}

TEST_CASE("a recorded plan is rebuilt to the letter; what this cuDNN has not is refused") {
    const auto p = workload::conv::parse(first_layer);
    const target to{nullptr, device_properties(h200())};
    const descriptor graph = conv_graph(p);
    for (const plan& each : first_plans(graph, to, requirements_of(p), 16)) {
        const result::evidence recorded = describe(each);
        const plan again = rebuild(graph, to, recorded);
        CHECK(describe(again).implementation == recorded.implementation);
        CHECK(again.from.facts == each.from.facts);
        CHECK(again.workspace_bytes == each.workspace_bytes);
        CHECK(again.from.position == -1);
    }
    const result::evidence good = predicted(first_layer);
    const auto refused = [&](const char* name, const scalar& value) {
        result::evidence bad = good;
        bad.parts[name] = value;
        CHECK_THROWS_AS(static_cast<void>(rebuild(graph, to, bad)), unsupported_error);
        bad.parts.erase(name);
        CHECK_THROWS_WITH_AS(static_cast<void>(rebuild(graph, to, bad)), doctest::Contains(name), unsupported_error);
    };
    refused("engine", std::int64_t{9999});
    refused("knobs", std::string("k2=9999"));
    refused("knobs", std::string("k2=4;rm"));
    refused("mode", std::string("C"));
    refused("cudnn_version", std::int64_t{90100});
}

TEST_CASE("another architecture is answered for too, and nonsense is refused with cuDNN's own words") {
    std::string ampere = h200();
    const std::string hopper = "\"deviceVer\":900";
    const std::size_t at = ampere.find(hopper);
    REQUIRE(at != std::string::npos);
    ampere.replace(at, hopper.size(), "\"deviceVer\":800");
    const result::evidence there = predict(ampere, workload::conv::parse(first_layer));
    CHECK(there.implementation != predicted(first_layer).implementation);
    CHECK(part<bool>(there, "tensor_cores"));
    // What a descriptor says of itself describes the same device: so it is with a real one's in a baseline.
    const std::string own_words = device_properties(h200()).text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
    CHECK(own_words.find("NVIDIA H200") != std::string::npos);
    CHECK(own_words.find('\0') == std::string::npos);
    CHECK(predict(own_words, workload::conv::parse(first_layer)) == predicted(first_layer));
    CHECK_THROWS_WITH_AS(static_cast<void>(device_properties("{}")),
                         doctest::Contains(cudnnGetVersion() >= 91900 ? "maxGridSize" : "BAD_PARAM"), usage_error);
    CHECK_THROWS_AS(static_cast<void>(device_properties("")), usage_error);
    for (const std::size_t depth : {16'000u, 200'000u}) {
        CHECK_THROWS_AS(static_cast<void>(device_properties(std::string(depth, '['))), usage_error);
    }
}

#endif

TEST_CASE("a launch's pointers are bound without a GPU, with and without a workspace") {
    float cells[4] = {};
    CHECK_NOTHROW(static_cast<void>(variant_pack({conv_x, conv_w, conv_y}, {cells, cells + 1, cells + 2}, nullptr)));
    CHECK_NOTHROW(static_cast<void>(variant_pack({conv_x, conv_w, conv_y}, {cells, cells + 1, cells + 2}, cells + 3)));
}

TEST_CASE("tensors of a graph lie in memory as the workload says") {
    const auto place = [](const tensor& of, const std::vector<std::int64_t>& at) {
        REQUIRE(of.strides.size() == at.size());
        REQUIRE(of.dimensions.size() == at.size());
        std::int64_t index = 0;
        for (std::size_t i = 0; i < at.size(); ++i) index += of.strides[i] * at[i];
        return index;
    };
    for (const char* layout : {"nhwc", "nchw"}) {
        const std::string lead = std::string("conv/fprop/bf16/") + layout;
        const auto flat = workload::conv::parse(lead + "/n3c6h7w8k10r3s2u2p1g2");
        CHECK(x_of(flat).dimensions == std::vector<std::int64_t>{3, 6, 7, 8});
        CHECK(w_of(flat).dimensions == std::vector<std::int64_t>{10, 3, 3, 2});
        CHECK(y_of(flat).dimensions == std::vector<std::int64_t>{3, 10, 4, 5});
        CHECK(place(x_of(flat), {2, 5, 4, 3}) == flat.x_index(2, 5, 0, 4, 3));
        CHECK(place(w_of(flat), {9, 2, 1, 1}) == flat.w_index(9, 2, 0, 1, 1));
        CHECK(place(y_of(flat), {1, 8, 3, 2}) == flat.y_index(1, 8, 0, 3, 2));
        const auto deep = workload::conv::parse(lead + "/n3c6h7w8d5k10r3s2t4u1p1");
        CHECK(x_of(deep).dimensions == std::vector<std::int64_t>{3, 6, 5, 7, 8});
        CHECK(w_of(deep).dimensions == std::vector<std::int64_t>{10, 6, 4, 3, 2});
        CHECK(y_of(deep).dimensions == std::vector<std::int64_t>{3, 10, 4, 7, 9});
        CHECK(place(x_of(deep), {2, 5, 4, 3, 6}) == deep.x_index(2, 5, 4, 3, 6));
        CHECK(place(w_of(deep), {9, 5, 3, 2, 1}) == deep.w_index(9, 5, 3, 2, 1));
        CHECK(place(y_of(deep), {1, 8, 3, 2, 7}) == deep.y_index(1, 8, 3, 2, 7));
    }
}

TEST_CASE("knobs are read and written alike") {
    const std::vector<knob> knobs{{2, 4}, {13, 0}, {28, -1}};
    CHECK(knobs_text(knobs) == "k2=4_k13=0_k28=-1");
    CHECK(parse_knobs(knobs_text(knobs)) == knobs);
    CHECK(parse_knobs("") == std::vector<knob>{});
    for (const char* text : {"k", "2=4", "k2", "k2=", "k2=4_", "k2=4k3=1", "k2=4__k3=1", "_k2=4", "k2=4 ", "kx=4"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_knobs(text).has_value());
    }
    engine_facts plain;
    plain.engine = 0;
    CHECK(engine_tag(plain) == "eng0");
    for (heuristic mode : {heuristic::a, heuristic::b, heuristic::fallback}) CHECK(heuristic_of(name(mode)) == mode);
}

TEST_CASE("notes are told by name, unknown ones by number") {
    engine_facts facts;
    CHECK(numerical_notes(facts) == "none");
    facts.numerical = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13,
                       static_cast<cudnnBackendNumericalNote_t>(12)};
    facts.behavior = {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION, CUDNN_BEHAVIOR_NOTE_CUBLASLT_DEPENDENCY};
    CHECK(numerical_notes(facts) == "tensor_core+winograd_13x13+note12");
    CHECK(behavior_notes(facts) == "runtime_compilation+cublaslt");
}

TEST_CASE("what an engine computes decides whether it may be taken") {
    engine_facts facts;
    facts.numerical = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
    requirements wanted;
    for (workload::dtype type : {workload::dtype::bf16, workload::dtype::fp16, workload::dtype::tf32}) {
        wanted.type = type;
        CHECK(refusal(facts, wanted).empty());
    }
    wanted.type = workload::dtype::fp32;
    CHECK(refusal(facts, wanted) == "computes in TF32");
    facts.numerical = {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS};
    CHECK(refusal(facts, wanted) == "converts its inputs to 16 bits");
    wanted.type = workload::dtype::tf32;
    CHECK_FALSE(refusal(facts, wanted).empty());
    wanted.type = workload::dtype::bf16;
    CHECK(refusal(facts, wanted).empty());
    facts.numerical = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
    CHECK(refusal(facts, wanted).empty());
    wanted.deterministic = true;
    CHECK(refusal(facts, wanted) == "is not deterministic");
    facts = {};
    facts.workspace_bytes = 4097;
    wanted.workspace_limit = 4096;
    CHECK(refusal(facts, wanted) == "needs a workspace of 4097 bytes");
    wanted.workspace_limit = 4097;
    CHECK(refusal(facts, wanted).empty());
}

TEST_CASE("failures name the call, the object and cuDNN's words, and keep the code") {
    CHECK_NOTHROW(cuda::check(CUDNN_STATUS_SUCCESS, "cudnnCreate"));
    CHECK_THROWS_AS(cuda::check(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "cudnnBackendFinalize"), unsupported_error);
    try {
        descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor 7");
        tensor.finalize();
        FAIL("an empty tensor was finalized");
    } catch (const cuda::cuda_error& failure) {
        const std::string text = failure.what();
        CHECK(text.rfind("cudnnBackendFinalize for tensor 7: CUDNN_STATUS_BAD_PARAM", 0) == 0);
        CHECK(failure.status() / 1000 == 2);
        CHECK(failure.api() == "cudnnBackendFinalize");
    }
    try {
        cuda::check(CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED, "cudnnCreate", "device 0");
        FAIL("it did not throw");
    } catch (const cuda::cuda_error& failure) {
        CHECK(std::string(failure.what()).find("LD_LIBRARY_PATH") != std::string::npos);
    }
}

TEST_CASE("cuDNN takes the graphs of norms, and refuses one that does not fit together") {
    for (const char* pass : {"fwd", "bwd", "rms_fwd", "rms_bwd"}) {
        for (const char* type : {"fp32", "fp16", "bf16"}) {
            const std::string id = std::string("layernorm/") + pass + '/' + type + "/r64h1024/cudnn";
            CAPTURE(id);
            CHECK_NOTHROW(static_cast<void>(norm_graph(workload::layernorm::parse(id))));
        }
    }
    descriptor lacking(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, "a norm without tensors");
    lacking.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_LAYER_NORM);
    CHECK_THROWS_AS(lacking.finalize(), error);
}
