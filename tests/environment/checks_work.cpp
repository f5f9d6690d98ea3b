// SPDX-License-Identifier: Apache-2.0
#include "check_scenarios.hpp"

using namespace plumbline_tests;

namespace {

void nothing(world&) {}

const std::string gemm = "gemm/bf16/tn/m8192n8192k8192";
const std::string conv = "conv/fprop/bf16/nhwc/n256c64h56w56k64r3s3";
const std::string layernorm = "layernorm/fwd/bf16/r16384h4096/native";
const std::string step = "training_step/transformer/bf16/graph";

} // namespace

TEST_CASE("checks of measured work pass on a healthy server and fail for one reason each") {
    const std::vector<scenario> scenarios{
        {"work.gemm", "right", check_status::ok, nothing, gemm},
        {"work.gemm", "wrong result", check_status::fail,
         [](world& w) {
             w.find(gemm).status = pl::result::result_status::failed;
             w.find(gemm).reason = "wrong result: max_rel 0.5";
         },
         "max_rel 0.5"},
        {"work.gemm", "wrong device", check_status::fail, [](world& w) { w.find(gemm).backend = "cpu"; }, "ran on cpu"},
        {"work.gemm", "not verified", check_status::fail, [](world& w) { w.find(gemm).verified = false; },
         "not verified"},
        {"work.gemm", "no tensor cores", check_status::fail,
         [](world& w) { w.find(gemm).sessions[0].ran.parts["tensor_cores"] = false; }, "without tensor cores"},
        {"work.gemm", "the GPU did nothing", check_status::fail,
         [](world& w) { w.find(gemm).sessions[0].cycles.clear(); }, "no SM cycles"},
        {"work.gemm", "too fast", check_status::fail, [](world& w) { w.set_time(gemm, 1e5); }, "too fast"},
        {"work.gemm", "as slow as a CPU", check_status::fail, [](world& w) { w.set_time(gemm, 2e9); }, "as slow as"},
        {"work.gemm", "no time", check_status::fail, [](world& w) { w.find(gemm).sessions.clear(); }, "no time"},
        {"work.gemm", "skipped", check_status::skipped,
         [](world& w) {
             w.find(gemm).status = pl::result::result_status::skipped;
             w.find(gemm).reason = "no bf16 here";
         },
         "no bf16 here"},
        {"work.gemm", "nothing measured", check_status::skipped, [](world& w) { w.measured.results.clear(); },
         "nothing was measured"},
        {"work.conv", "right", check_status::ok, nothing, conv},
        {"work.conv", "wrong", check_status::fail, [](world& w) { w.find(conv).verified = false; }, "not verified"},
        {"work.layernorm", "right", check_status::ok, nothing, layernorm},
        {"work.layernorm", "wrong", check_status::fail, [](world& w) { w.find(layernorm).backend = "cpu"; },
         "ran on cpu"},
        {"work.layernorm", "not run", check_status::skipped, [](world& w) { w.drop(layernorm); }, "no layernorm"},
        {"work.training_step", "right", check_status::ok, nothing, step},
        {"work.training_step", "wrong", check_status::fail, [](world& w) { w.find(step).verified = false; },
         "not verified"},
        {"copy.pinned", "full speed", check_status::ok, nothing, "53.7 GB/s"},
        {"copy.pinned", "half", check_status::warn, [](world& w) { w.set_time("probe/d2h_pinned", 9e6); }, "29.8 GB/s"},
        {"copy.pinned", "a quarter", check_status::fail, [](world& w) { w.set_time("probe/h2d_pinned", 20e6); },
         "13.4 GB/s"},
        {"copy.pageable", "usual", check_status::ok, nothing, "42 %"},
        {"copy.pageable", "crawling", check_status::warn, [](world& w) { w.set_time("probe/h2d_pageable", 100e6); },
         "5 %"},
        {"copy.pageable", "not measured", check_status::skipped, [](world& w) { w.drop("probe/h2d_pageable"); },
         "no copies"},
        {"loader.keeps_up", "keeps up", check_status::ok, nothing, "2 %"},
        {"loader.keeps_up", "waits", check_status::warn, [](world& w) { w.wait(0.31); }, "31 %"},
        {"loader.keeps_up", "no step consumes the batches", check_status::skipped,
         [](world& w) { w.find("dataloader/jpeg/wallp2/pinned/train").sessions[0].state.erase("trains"); },
         "no training step was fed"},
        {"nccl.all_reduce", "right", check_status::ok, nothing, "8 GPUs"},
        {"nccl.all_reduce", "fails", check_status::fail,
         [](world& w) { w.on.nccl_all_reduce = [] { return std::string("ncclCommInitAll: unhandled system error"); }; },
         "unhandled system error"},
        {"nccl.all_reduce", "one GPU", check_status::skipped, [](world& w) { w.on.cuda_devices = 1; }, "a single GPU"},
        {"nccl.all_reduce", "no NCCL", check_status::skipped, [](world& w) { w.on.nccl_all_reduce = nullptr; },
         "no NCCL"},
    };
    run_scenarios(scenarios, env::checks::of_work());
}

TEST_CASE("on the CPU backend work is right when it ran on the CPU, and no SM cycles are asked for") {
    world w;
    w.on.cuda_expected = false;
    for (auto& each : w.measured.results) {
        each.backend = "cpu";
        for (auto& session : each.sessions) {
            session.cycles.clear();
            session.ran.parts.clear();
        }
    }
    CHECK(w.run("work.gemm").status == check_status::ok);
    w.find(gemm).backend = "cuda";
    CHECK(w.run("work.gemm").status == check_status::fail);
}

TEST_CASE("faults of measured work are exit code 4, everything before them exit code 6") {
    for (const env::check& each : env::all_checks()) {
        const bool measured = each.name.rfind("work.", 0) == 0 || each.name.rfind("copy.", 0) == 0 ||
                              each.name.rfind("loader.", 0) == 0 || each.name.rfind("nccl.", 0) == 0 ||
                              each.name == "pcie.link_under_load";
        CAPTURE(each.name);
        CHECK((each.if_failed == env::consequence::fault) == measured);
        CHECK(each.link >= 1);
        CHECK(each.link <= 6);
    }
}
