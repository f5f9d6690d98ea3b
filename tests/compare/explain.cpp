// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "pair.hpp"

using build::pair;
using namespace plumbline;
using namespace std::string_literals;
using compare::strength;

namespace {

const compare::cause& named(const compare::explanation& in, const std::string& name) {
    for (const auto* list : {&in.causes, &in.set_aside}) {
        for (const auto& each : *list) {
            if (each.name == name) return each;
        }
    }
    throw std::out_of_range("no cause " + name + " among " + build::names(in));
}

const char* const everything[] = {"probe/canary_*", "gemm/*", "conv/*", "layernorm/*", "training_step/*"};

} // namespace

TEST_CASE("a slower node is called so, and no library is blamed for it") {
    pair p;
    p.gpu_suite().innocent();
    for (const char* id : everything) p.slow(id, 1.06);
    SUBCASE("nothing recorded changed") {
        const auto why = p.explained();
        CHECK(why.canary == compare::canary_state::slower);
        REQUIRE(why.causes.size() == 1);
        CHECK(why.causes[0].name == "this machine");
        CHECK(why.causes[0].how_sure == strength::consistent);
        CHECK(why.causes[0].changes.empty());
        CHECK(why.causes[0].remedy.find("--siblings") != std::string::npos);
        CHECK(why.unexplained.empty());
    }
    SUBCASE("cuBLAS and cuDNN were upgraded on the same day") {
        p.change("cublaslt.version", 130100, 130200, 2).change("cudnn.version", 91400, 91900, 2);
        const auto why = p.explained();
        CHECK(build::names(why) == "this machine consistent");
    }
    SUBCASE("the canary is not the same code: it says nothing, and nobody is sure of anything") {
        p.change("cublaslt.version", 130100, 130200, 2).part("probe/canary_*", "code_hash", "a"s, "b"s);
        const auto why = p.explained();
        CHECK(why.canary == compare::canary_state::other_code);
        CHECK(build::names(why) == "cuBLAS associated");
        CHECK(why.unexplained.size() == p.compared().count(compare::verdict::regressed) - 5);
    }
}

TEST_CASE("without a canary and without a change the node is suspected in words") {
    pair p;
    p.add("gemm/bf16/tn/m8192n8192k8192", 400).slow("gemm/*", 1.2);
    const auto why = p.explained();
    CHECK(why.causes.empty());
    CHECK(why.conclusion.rfind("nothing recorded changed: suspect the node; run it on a sibling", 0) == 0);
    p.change("memory.overcommit", 0, 1, 4); // changed, and does nothing to a GPU
    CHECK(p.explained().conclusion.rfind("nothing that changed explains it: suspect the node", 0) == 0);
}

TEST_CASE("a version that changed together with lower clocks is not blamed for the clock's share") {
    pair p;
    p.gpu_suite().innocent().change("cublaslt.version", 130100, 130200, 2).change("gpu.power_limit_w", 700.0, 500.0);
    SUBCASE("all of it is the clock") {
        for (const char* id : {"probe/canary_mma", "gemm/*", "conv/*"}) p.slow(id, 1.08, 1.08);
        CHECK(build::names(p.explained()) == "GPU power limit consistent");
    }
    SUBCASE("a part of it is another algorithm") {
        for (const char* id : {"probe/canary_mma", "conv/*", "gemm/bf16/*"}) p.slow(id, 1.08, 1.08);
        p.slow("gemm/tf32/*", 1.08 * 1.2, 1.08).ran("gemm/tf32/*", "lt/id66", "lt/id21");
        const auto why = p.explained();
        CHECK(build::names(why) == "GPU power limit consistent, cuBLAS consistent");
        const auto& library = named(why, "cuBLAS");
        REQUIRE(library.covers.size() == 1);
        CHECK(library.covers[0].id == "gemm/tf32/tn/m4096n4096k4096");
        CHECK(library.covers[0].share == doctest::Approx(std::log(1.2)).epsilon(0.02));
        for (const auto& each : named(why, "GPU power limit").covers) {
            CHECK(each.share == doctest::Approx(std::log(1.08)).epsilon(0.02));
        }
    }
    SUBCASE("the canary says it where cycles are not known") {
        for (const char* id : everything) p.slow(id, 1.08);
        const auto why = p.explained();
        for (const auto& each : why.causes) CHECK(each.name != "cuBLAS");
    }
}

TEST_CASE("two candidates that fit alike are both associated; a mechanism tells them apart") {
    pair p;
    p.gpu_suite().innocent().change("cublaslt.version", 130100, 130200, 2);
    p.variable("CUBLASLT_HEURISTICS_CACHE_CAPACITY", "", "0", 2);
    p.slow("gemm/bf16/*", 1.3);
    SUBCASE("neither left a trace") {
        const auto why = p.explained();
        REQUIRE(why.causes.size() == 2);
        for (const auto& each : why.causes) CHECK(each.how_sure == strength::associated);
    }
    SUBCASE("both could have left the same trace") {
        p.ran("gemm/bf16/*", "lt/id66", "lt/id21");
        for (const auto& each : p.explained().causes) CHECK(each.how_sure == strength::associated);
    }
    SUBCASE("one left a trace that the other does not leave") {
        p.variable("CUBLASLT_WORKSPACE_SIZE", "", "0", 2).ran("gemm/bf16/*", "lt/id66", "lt/id21");
        p.part("gemm/bf16/*", "workspace_offered_bytes", std::int64_t{33554432}, std::int64_t{0});
        const auto why = p.explained();
        CHECK(build::names(why) == "cuBLAS workspace consistent");
        CHECK(named(why, "cuBLAS").set_aside == "it fits, but what it could explain is explained by cuBLAS workspace");
    }
}

TEST_CASE("what cannot run any more is covered, with the reason that was given") {
    pair p("cpu");
    p.add("gemm/fp32/tn/m512n512k512", 100).add("gemm/bf16/tn/m512n512k512", 50).add("probe/canary_fma", 10);
    p.variable("ONEDNN_MAX_CPU_ISA", "", "SSE41", 2).variable("MALLOC_ARENA_MAX", "", "1", 4);
    p.slow("gemm/fp32/*", 7).ran("gemm/fp32/*", "brg:avx512_core", "gemm:jit");
    p.fails("gemm/bf16/*", "this oneDNN has no implementation of it", result::result_status::skipped);
    const auto why = p.explained();
    CHECK(build::names(why) == "oneDNN instruction set consistent");
    const auto& isa = why.causes[0];
    CHECK(isa.covers.size() == 2);
    REQUIRE(isa.signs.size() == 2);
    CHECK(isa.signs[0].what == compare::mechanism::instruction_set_lower);
    CHECK(isa.signs[0].text == "brg:avx512_core -> gemm:jit");
    CHECK(isa.signs[1].text == "this oneDNN has no implementation of it");
    CHECK(environment::describe(isa.changes[0].from) == "not set");
}

TEST_CASE("LD_LIBRARY_PATH is what brought a library in, and no suspect beside it") {
    pair p;
    p.gpu_suite().change("cudnn.version", 91400, 91900, 2).variable("LD_LIBRARY_PATH", "/old", "/new");
    p.change("lib.libcudnn.path", "/old/libcudnn.so.9"s, "/new/libcudnn.so.9"s, 2);
    p.change("lib.libcudnn.build_id", "aa"s, "bb"s, 2);
    p.slow("conv/*", 1.3).ran("conv/*", "cudnn/A/eng38", "cudnn/A/eng0");
    const auto why = p.explained();
    CHECK(build::names(why) == "cuDNN consistent");
    CHECK(why.causes[0].changes.front().name == "cudnn.version");
    CHECK(why.causes[0].changes.size() == 3);
    REQUIRE(why.causes[0].through);
    CHECK(why.causes[0].through->name == "env.LD_LIBRARY_PATH");
}

TEST_CASE("LD_LIBRARY_PATH that brought nothing in is not suspected") {
    pair p;
    p.gpu_suite().variable("LD_LIBRARY_PATH", "/old", "/new").slow("conv/*", 1.3);
    CHECK(p.explained().causes.empty());
    p.base.environment.attributes.erase("process.libraries_captured"); // then nobody knows what it brought
    CHECK(build::names(p.explained()) == "env.LD_LIBRARY_PATH associated");
}

TEST_CASE("a board that is slower than its siblings are is a cause, although its factor is taken out of the effects") {
    pair p;
    p.gpu_suite().change("gpu.board", "a"s, "b"s);
    for (auto& s : p.candidate.sessions) s.when.board = "another";
    for (const char* id : {"probe/canary_mma", "gemm/*", "conv/*"}) p.slow(id, 1.06);
    const auto found = p.compared();
    REQUIRE(found.board);
    CHECK(found.board->red);
    const auto why = compare::explain(found, p.base, p.candidate);
    REQUIRE_FALSE(why.causes.empty());
    CHECK(why.causes[0].name == "slower board");
    CHECK(why.causes[0].changes.front().name == "gpu.board");
}

TEST_CASE("work of somebody else on the device is named where it spoilt the results") {
    pair p;
    p.gpu_suite().innocent().state("gpu.processes", 0, 1).change("cudnn.version", 91400, 91900, 2);
    p.part("conv/*", "cudnn_version", 91400, 91900);
    for (auto& r : p.candidate.results) {
        for (auto& s : r.sessions) s.flags.push_back(result::flag::foreign_load);
    }
    const auto why = p.explained();
    CHECK(build::names(why) == "other processes on the GPU consistent");
    CHECK(why.unexplained.empty());
}

TEST_CASE("a process that merely appeared on the device is not blamed before a library that left its trace") {
    pair p;
    p.gpu_suite()
        .change("cublaslt.version", 130100, 130200, 2)
        .slow("gemm/*", 1.06)
        .ran("gemm/*", "lt/id66", "lt/id21");
    SUBCASE("its presence is all there is") {
        p.state("gpu.processes", 0, 1);
        const auto why = p.explained();
        CHECK(build::names(why) == "cuBLAS consistent");
        CHECK(named(why, "other processes on the GPU").set_aside ==
              "it fits, but what it could explain is explained by cuBLAS");
    }
    SUBCASE("it was at work when the session began: both could be") {
        p.state("gpu.utilization_percent", 0, 60);
        for (const auto& each : p.explained().causes) CHECK(each.how_sure == strength::associated);
    }
}

TEST_CASE("what was never begun accuses nobody; a crash and a wrong result may be anybody's") {
    pair p;
    p.gpu_suite().innocent().change("cublaslt.version", 130100, 130200, 2);
    SUBCASE("no time was left") {
        p.fails("gemm/tf32/*", result::not_measured, result::result_status::skipped);
        CHECK(p.explained().empty());
    }
    SUBCASE("no session could be started any more") {
        p.fails("gemm/tf32/*", result::no_session);
        CHECK(p.explained().empty());
    }
    SUBCASE("a wrong result") {
        p.fails("gemm/tf32/*", "in session 2: wrong result at element 17: 3 instead of 4");
        CHECK(build::names(p.explained()) == "cuBLAS associated");
    }
    SUBCASE("no memory") {
        p.state("gpu.memory_used_bytes", std::int64_t{3407872}, std::int64_t{140000000000});
        p.fails("gemm/tf32/*", "in session 1: cudaMalloc: cudaErrorMemoryAllocation (out of memory)");
        CHECK(build::names(p.explained()) == "GPU memory in use consistent");
    }
}

TEST_CASE("a library that lies elsewhere and is the same build did nothing") {
    pair p;
    p.gpu_suite().change("lib.libcublasLt.path", "/a/libcublasLt.so.13"s, "/b/libcublasLt.so.13"s, 2);
    p.variable("CUDNN_PATH", "/a", "/b", 2).slow("gemm/*", 1.06).ran("gemm/*", "lt/id66", "lt/id21");
    p.slow("conv/*", 1.06);
    CHECK(build::names(p.explained()) == "cuBLAS consistent"); // nobody knows whether it is the same build
    for (auto* each : {&p.base, &p.candidate}) {
        each->environment.attributes["lib.libcublasLt.build_id"] = {build::attribute_class::config, 2, "test",
                                                                    result::reading::of("a7"s)};
    }
    CHECK(p.explained().causes.empty());
}

TEST_CASE("a change too small or too large for the slowdown is not blamed") {
    pair p;
    p.gpu_suite();
    SUBCASE("ten watts do not take six percent of the clock") {
        for (const char* id : {"probe/canary_mma", "gemm/*", "conv/*"}) p.slow(id, 1.06, 1.06);
        p.change("gpu.power_limit_w", 700.0, 690.0);
        CHECK(build::names(p.explained()) == "lower SM clock consistent");
        CHECK(named(p.explained(), "GPU power limit").set_aside == "the slowdown is larger than such a change makes");
        p.change("gpu.power_limit_w", 700.0, 600.0);
        CHECK(named(p.explained(), "GPU power limit").how_sure == strength::consistent);
    }
    SUBCASE("an idle link was seen resting") {
        p.state("pcie.generation", 5, 1).slow("probe/h2d_*", 1.15);
        const auto why = p.explained();
        CHECK(why.causes.empty());
        CHECK(named(why, "PCIe link").set_aside == "probe/h2d_pinned is +15.0 %, and such a change would do far more");
    }
    SUBCASE("half the lanes are half the rate") {
        p.state("pcie.width", 16, 8).slow("probe/h2d_*", 1.9).slow("probe/d2h_*", 1.9);
        CHECK(build::names(p.explained()) == "PCIe link consistent");
    }
}

TEST_CASE("a change for the better is nobody's fault, nor one of the processor what the GPU's clock does") {
    pair p;
    p.gpu_suite();
    SUBCASE("clocks") {
        for (const char* id : {"probe/canary_mma", "gemm/*", "conv/*"}) p.slow(id, 1.06, 1.06);
        p.change("gpu.max_sm_clock_mhz", 1980, 2100).change("gpu.power_limit_w", 600.0, 700.0);
        p.change("cpu.microcode", "0x1"s, "0x2"s);
        CHECK(build::names(p.explained()) == "lower SM clock consistent");
        p.change("gpu.max_sm_clock_mhz", 1980, 1800);
        CHECK(build::names(p.explained()) == "GPU clock setting consistent");
    }
    SUBCASE("memory of the GPU") {
        p.slow("conv/*", 2).part("conv/*", "workspace_bytes", std::int64_t{900000000}, std::int64_t{0});
        p.state("gpu.memory_used_bytes", std::int64_t{140000000000}, std::int64_t{3407872});
        p.state("gpu.memory_free_bytes", std::int64_t{9000000000}, std::int64_t{140000000000});
        CHECK(p.explained().causes.empty());
        p.state("gpu.memory_free_bytes", std::int64_t{140000000000}, std::int64_t{9000000000});
        CHECK(build::names(p.explained()) == "GPU memory in use consistent");
    }
    SUBCASE("the host of a loader") {
        p.slow("dataloader/*", 2).measured("dataloader/*", "read_us_per_image", 10, 1000);
        p.state("load.pressure_io", 30.0, 1.0).state("memory.available_bytes", 1e9, 9e9);
        p.change("cgroup.cpu_quota", 2.0, 8.0, 4).state("memory.swap_used_bytes", 9e9, 0.0);
        CHECK(p.explained().causes.empty());
        p.state("load.pressure_io", 1.0, 30.0);
        CHECK(build::names(p.explained()) == "storage consistent");
    }
}

TEST_CASE("the CPU's own canary speaks of its clock and of other work") {
    pair p("cpu");
    p.add("gemm/fp32/tn/m512n512k512", 100).add("probe/canary_fma", 10).add("probe/canary_copy", 10);
    p.part("probe/canary_*", "code_hash", "c0de"s).slow("gemm/*", 1.5);
    SUBCASE("a governor would have slowed it") {
        p.change("cpu.governor", "performance"s, "powersave"s, 4);
        CHECK(p.explained().causes.empty());
        p.slow("probe/*", 1.5);
        CHECK(build::names(p.explained()) == "CPU frequency associated");
    }
    SUBCASE("so would other work, and then it is not the machine") {
        p.state("load.pressure_cpu", 0.0, 60.0).slow("probe/*", 1.5);
        CHECK(build::names(p.explained()) == "other work on these processors consistent");
    }
}

TEST_CASE("nothing recorded changed and the device is as before: the node is not accused") {
    pair p;
    p.gpu_suite().slow("gemm/bf16/*", 1.08);
    CHECK(p.explained().conclusion ==
          "nothing recorded changed, and the device itself runs as before: suspect other work on the host and what no "
          "fingerprint sees; run it on a sibling, then bench-compare --siblings DIR NEW");
}

TEST_CASE("the base's plan timed again tells a choice from what slows every plan") {
    pair p;
    const std::string id = "gemm/bf16/tn/m8192n8192k8192";
    p.gpu_suite().add(id + "/pinned", 400).ran(id + "/pinned", "lt/id66/t248/s35");
    p.change("cublaslt.version", 130100, 130200, 2).change("driver.version", "580.1"s, "590.1"s);
    p.slow(id, 1.2).ran(id, "lt/id66/t248/s35", "lt/id21/t20/s7");
    SUBCASE("as fast as before: the choice") {
        const auto why = p.explained();
        CHECK(build::names(why) == "cuBLAS consistent");
        CHECK(why.set_aside.empty()); // a driver slows all plans alike
        CHECK(why.causes[0].signs[0].text ==
              "id66/t248/s35 -> id21/t20/s7, and the baseline's own plan is as fast as before");
    }
    SUBCASE("slower too: not the choice") {
        p.slow(id + "/pinned", 1.2);
        for (const auto& each : p.explained().causes) CHECK(each.how_sure == strength::associated);
        CHECK(named(p.explained(), "NVIDIA driver").covers.size() == 2);
    }
    SUBCASE("another plan was replayed: it says nothing") {
        p.ran(id + "/pinned", "lt/id1").slow(id + "/pinned", 1.2);
        CHECK(build::names(p.explained()).rfind("cuBLAS consistent", 0) == 0);
    }
}

TEST_CASE("a cause that would have slowed something else, which runs as before, is refuted") {
    pair p;
    p.gpu_suite().variable("CUDA_LAUNCH_BLOCKING", "", "1").slow("conv/*", 1.2);
    const auto why = p.explained();
    CHECK(why.causes.empty());
    CHECK(named(why, "CUDA_LAUNCH_BLOCKING").set_aside ==
          "probe/launch, which it would have slowed down, runs as before");
    CHECK(why.conclusion.rfind("nothing that changed explains it", 0) == 0);
}

TEST_CASE("a change that nobody knows is associated at the most; one that a user describes is known") {
    pair p;
    p.gpu_suite().variable("CUDA_SITE_SETTING", "", "7").slow("conv/*", 1.2).ran("conv/*", "cudnn/a", "cudnn/b");
    CHECK(build::names(p.explained()) == "env.CUDA_SITE_SETTING associated");
    auto table = compare::built_in_knowledge();
    compare::knowledge own;
    own.component = "site setting";
    own.attributes = {"env.CUDA_SITE_*"};
    own.touches = {"conv/*"};
    own.shows = {compare::mechanism::implementation_changed};
    table.insert(table.begin(), own);
    CHECK(build::names(compare::explain(p.compared(), p.base, p.candidate, {}, table)) == "site setting consistent");
}

TEST_CASE("nothing is explained where nothing is worse") {
    pair p;
    p.gpu_suite().innocent().change("cudnn.version", 91400, 91900, 2).slow("conv/*", 0.8);
    const auto why = p.explained();
    CHECK(why.empty());
    CHECK(why.canary == compare::canary_state::unchanged);
}

TEST_CASE("the table: every entry says what it does, names what it touches and has sources in one form") {
    for (const auto& each : compare::built_in_knowledge()) {
        CAPTURE(each.component);
        CHECK_FALSE(each.attributes.empty());
        CHECK_FALSE(each.effect.empty());
        if (each.touches.empty()) continue;
        CHECK_FALSE(each.remedy.empty());
        CHECK((each.most == 0 || each.most > 1));
        for (const std::string& source : each.sources) {
            const auto slash = source.find('/'), hash = source.find('#');
            CHECK(
                (slash != std::string::npos && hash != std::string::npos && slash < hash && hash + 1 < source.size()));
        }
        // What can only be tried by a person says how.
        const bool by_hand = each.attributes.front().rfind("env.", 0) != 0;
        if (by_hand && !each.component.empty()) CHECK_FALSE(each.experiment.empty());
    }
}
