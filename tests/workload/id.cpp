// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "plumbline/workload/gemm.hpp"
#include "plumbline/workload/probe.hpp"

using namespace plumbline;
using namespace plumbline::workload;

namespace {

/// The message of the usage_error that parsing throws; "" if it does not throw.
template <class Parse>
std::string refusal(Parse parse, const std::string& id) {
    try {
        (void)parse(id);
        return "";
    } catch (const usage_error& e) {
        return e.what();
    }
}

} // namespace

TEST_CASE("a gemm id says its parameters and nothing else, both ways") {
    for (std::string id : {"gemm/bf16/tn/m8192n8192k8192", "gemm/fp8/tn/m1n2k3b4/gelu/best/hot/sustained/stream",
                           "gemm/fp32/nt/m4095n4095k4095/bias", "gemm/int8/nn/m1n1k1/pinned", "gemm/bf16/tn/m8n8k8/ws0",
                           "gemm/bf16/tn/m8n8k8/pad1/hot", "gemm/bf16/tn/m8n8k8/offset1", "gemm/fp8/tn/m8n8k8/precise",
                           "gemm/fp8/nn/m8n8k8b2/gelu/pad7/offset3/ws64/precise/best"}) {
        CHECK(gemm::id(gemm::parse(id)) == id);
        CHECK(gemm::describe(gemm::parse(id)).id == id);
    }
    const gemm::params p = gemm::parse("gemm/fp8/tn/m1n2k3b4/gelu/best/hot/sustained/stream");
    CHECK(p.type == dtype::fp8);
    CHECK(p.trans == gemm::transposition::tn);
    CHECK(p.m == 1);
    CHECK(p.n == 2);
    CHECK(p.k == 3);
    CHECK(p.batch == 4);
    CHECK(p.after == gemm::epilogue::gelu);
    CHECK(p.mode == modes{plan_choice::best, true, true, true});
}

TEST_CASE("nonsense in a gemm id is refused with the id, the part, what is right, and an example") {
    struct bad {
        const char* id;
        const char* says;
    };
    for (const bad& each : {bad{"gemm", "ends where a dtype was expected"},
                            {"conv/bf16", "family is not 'gemm'"},
                            {"gemm/float/tn/m1n1k1", "'float' is not a dtype (one of fp32, tf32"},
                            {"gemm/bf16/ab/m1n1k1", "'ab' is not a transposition (one of tn, nn, nt, tt)"},
                            {"gemm/bf16/tn", "ends where a size"},
                            {"gemm/bf16/tn/m1n1", "lacks k"},
                            {"gemm/bf16/tn/m1n1k1m1", "is not a size"},
                            {"gemm/bf16/tn/m01n1k1", "is not a size"},
                            {"gemm/bf16/tn/m-1n1k1", "is not a size"},
                            {"gemm/bf16/tn/m1n1k", "is not a size"},
                            {"gemm/bf16/tn/m1n1k1x2", "is not a size"},
                            {"gemm/bf16/tn/m99999999999999999999n1k1", "is not a size"},
                            {"gemm/bf16/tn/m0n1k1", "m must be between 1 and"},
                            {"gemm/bf16/tn/m1n1k1048577", "k must be between 1 and"},
                            {"gemm/bf16/tn/m1n1k1b1", "it is written gemm/bf16/tn/m1n1k1;"},
                            {"gemm/bf16/tn/n1m1k1", "it is written gemm/bf16/tn/m1n1k1;"},
                            {"gemm/bf16/tn/m1n1k1/hot/best", "it is written gemm/bf16/tn/m1n1k1/best/hot;"},
                            {"gemm/bf16/tn/m1n1k1/hot/hot", "'hot' is not a mode here"},
                            {"gemm/bf16/tn/m1n1k1/best/pinned", "'pinned' is not a mode here"},
                            {"gemm/bf16/tn/m1n1k1/warm", "'warm' is not a mode here"},
                            {"gemm//tn/m1n1k1", "empty part"},
                            {"gemm/bf16/tn/m1n1k1/", "empty part"},
                            {"gemm/bf16/tn/m1 n1k1", "a character that no id has"},
                            {"", "empty part"}}) {
        CAPTURE(each.id);
        const std::string message = refusal(gemm::parse, each.id);
        CHECK(message.find(std::string("'") + each.id + "'") != std::string::npos);
        CHECK(message.find(each.says) != std::string::npos);
        CHECK(message.find("a right one is gemm/") != std::string::npos);
    }
}

TEST_CASE("everything that changes the work changes the id and workload.hash") {
    std::set<std::string> ids;
    std::set<std::string> hashes;
    const char* all[] = {"gemm/bf16/tn/m8n16k32",        "gemm/fp16/tn/m8n16k32",          "gemm/bf16/nn/m8n16k32",
                         "gemm/bf16/tn/m9n16k32",        "gemm/bf16/tn/m8n17k32",          "gemm/bf16/tn/m8n16k33",
                         "gemm/bf16/tn/m8n16k32b2",      "gemm/bf16/tn/m8n16k32/bias",     "gemm/bf16/tn/m8n16k32/gelu",
                         "gemm/bf16/tn/m8n16k32/best",   "gemm/bf16/tn/m8n16k32/pinned",   "gemm/bf16/tn/m8n16k32/hot",
                         "gemm/bf16/tn/m8n16k32/stream", "gemm/bf16/tn/m8n16k32/sustained"};
    for (std::string id : all) {
        const description what = gemm::describe(gemm::parse(id));
        ids.insert(what.id);
        hashes.insert(what.hash());
    }
    CHECK(ids.size() == std::size(all));
    CHECK(hashes.size() == std::size(all));
    CHECK(gemm::describe(gemm::parse("gemm/bf16/tn/m8n16k32/sustained")).kind == benchmark_class::sustained);
    CHECK(gemm::describe(gemm::parse("gemm/bf16/tn/m8n16k32")).kind == benchmark_class::kernel);
}

TEST_CASE("every kind of probe has an id that comes back, with and without a size") {
    std::set<std::string> hashes;
    for (const probe::traits& each : probe::all_kinds) {
        const probe::params p = probe::of(each.what);
        CAPTURE(each.name);
        CHECK(probe::id(p) == "probe/" + std::string(each.name));
        CHECK(probe::parse(probe::id(p)) == p);
        hashes.insert(probe::describe(p).hash());
    }
    CHECK(hashes.size() == probe::all_kinds.size());
    const probe::params p = probe::parse("probe/device_copy/64MiB/hot");
    CHECK(p.bytes == 64 * probe::mebibyte);
    CHECK(p.mode.hot);
    CHECK(probe::describe(p).bytes == 2.0 * 64 * 1048576);
    CHECK(probe::describe(probe::parse("probe/h2d_pinned")).bytes == 256.0 * 1048576);
    CHECK(probe::size_text(48) == "48B");
    CHECK(probe::size_text(3 << 20) == "3MiB");
    CHECK(probe::size_text(std::int64_t{2} << 40) == "2048GiB");
}

TEST_CASE("a raised revision of frozen probe code changes workload.hash but not the id") {
    probe::params p = probe::of(probe::kind::canary_mma);
    const description before = probe::describe(p);
    p.revision = 2;
    CHECK(probe::describe(p).id == before.id);
    CHECK(probe::describe(p).hash() != before.hash());
}

TEST_CASE("nonsense in a probe id is refused") {
    struct bad {
        const char* id;
        const char* says;
    };
    for (const bad& each : {bad{"probe/copy", "'copy' is not a kind of probe (one of canary_mma,"},
                            {"probe", "ends where a kind of probe was expected"},
                            {"probe/device_copy/1GiB", "it is written probe/device_copy;"},
                            {"probe/device_copy/64MB", "is not a size"},
                            {"probe/device_copy/0B", "is not a size"},
                            {"probe/device_copy/1025GiB", "is not a size"},
                            {"probe/device_copy/9223372036854775807GiB", "is not a size"},
                            {"probe/device_copy/1024KiB", "it is written probe/device_copy/1MiB;"},
                            {"probe/canary_mma/64MiB", "'64MiB' is not a mode here"},
                            {"probe/canary_mma/best", "no plans"},
                            {"probe/canary_mma/hot", "neither hot nor cold"},
                            {"probe/h2d_pinned/hot", "neither hot nor cold"},
                            {"probe/host_wake/stream", "has no modes"}}) {
        CAPTURE(each.id);
        CHECK(refusal(probe::parse, each.id).find(each.says) != std::string::npos);
    }
}

TEST_CASE("the plan of an id can be exchanged; other modes and the work stay") {
    for (const char* id : {"gemm/bf16/tn/m8n16k32", "gemm/bf16/tn/m8n16k32b4/bias/hot/stream"}) {
        const std::string best = with_plan(id, plan_choice::best);
        CAPTURE(best);
        CHECK(split_modes(best).mode.plan == plan_choice::best);
        CHECK(gemm::id(gemm::parse(best)) == best);
        CHECK(with_plan(best, plan_choice::pinned) == with_plan(id, plan_choice::pinned));
        CHECK(with_plan(best, plan_choice::heuristic) == id);
        CHECK(split_modes(best).work == split_modes(id).work);
    }
    CHECK(with_plan("gemm/x/hot", plan_choice::best) == "gemm/x/best/hot");
    CHECK(split_modes("gemm/bias").work == "gemm/bias");
    CHECK(split_modes("").work.empty());
    CHECK(split_modes("hot").work == "hot"); // an id is more than a mode
}

TEST_CASE("a word with a number is taken only as that") {
    id_reader reader("gemm/ws32/ws/ws07/ws-1/ws4294967296/wsx", "gemm", "gemm/x");
    CHECK_FALSE(reader.take_number("pad").has_value());
    CHECK(reader.take_number("ws") == 32);
    while (!reader.done()) {
        CAPTURE(reader.peek());
        CHECK_FALSE(reader.take_number("ws").has_value());
        (void)reader.next("anything");
    }
    CHECK_FALSE(reader.take_number("ws").has_value());
    CHECK(id_reader("gemm/ws0", "gemm", "gemm/x").take_number("ws") == 0);
}
