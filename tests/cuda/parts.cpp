// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "plumbline/cuda/catalogue.hpp"
#include "plumbline/cuda/datasheet.hpp"
#include "plumbline/result/alarm.hpp"

using namespace plumbline;
namespace machine = plumbline::cuda::machine;

TEST_CASE("the catalogue makes every probe, as a kernel or as a procedure, any GEMM and any convolution") {
    for (const auto& family : cuda::catalogue()) {
        if (family.name == "probe") {
            for (const workload::probe::traits& each : workload::probe::all_kinds) {
                const std::string id = workload::probe::id(workload::probe::of(each.what));
                const auto made = family.make(id);
                CHECK(made.what.id == id);
                CHECK(static_cast<bool>(made.prepare) != static_cast<bool>(made.measure));
                const bool kernel = made.what.kind == benchmark_class::kernel;
                CHECK(static_cast<bool>(made.prepare) == kernel);
            }
            CHECK_THROWS_AS(static_cast<void>(family.make("probe/nonsense")), usage_error);
        } else if (family.name == "gemm") {
            const auto made = family.make("gemm/fp8/tn/m16n16k16/sustained");
            CHECK(made.how == measure::regime::sustained);
            CHECK(static_cast<bool>(made.prepare));
        } else if (family.name == "layernorm") {
            for (const char* id : {"layernorm/fwd/bf16/r8h64/native/hot", "layernorm/rms_bwd/fp32/r8h64/cudnn/best",
                                   "layernorm/bwd/fp16/r8h64/onednn"}) {
                const auto made = family.make(id);
                CHECK(made.what.id == id);
                CHECK(static_cast<bool>(made.prepare));
            }
        } else if (family.name == "conv") {
            const auto made = family.make("conv/dgrad/bf16/nhwc/n2c8h8w8k8r3s3u1p1/hot");
            CHECK_FALSE(made.cold);
            CHECK(static_cast<bool>(made.prepare));
        }
    }
    std::set<std::string> names;
    for (const auto& family : cuda::catalogue()) names.insert(family.name);
    for (const char* name : {"conv", "dataloader", "gemm", "layernorm", "probe"}) CHECK(names.count(name) == 1);
}

TEST_CASE("a cold start crosses the pipe unchanged, and anything else is not one") {
    machine::cold_start taken;
    taken.context = 123456789.25;
    taken.first_launch = 0.1;
    taken.library = 3e11;
    const auto read = machine::detail::parse_cold_start(machine::detail::to_text(taken));
    REQUIRE(read.has_value());
    CHECK(read->context == taken.context);
    CHECK(read->first_launch == taken.first_launch);
    CHECK(read->library == taken.library);
    for (const char* text : {"", "ok", "ok 1 2", "ok 1 2 x", "ok 1 0 3", "ok 1 -2 3", "error 1 2 3", "usage: ..."}) {
        CHECK_FALSE(machine::detail::parse_cold_start(text).has_value());
    }
}

TEST_CASE("only the hidden option alone is served") {
    const auto serve = [](std::vector<std::string> words) {
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        return machine::serve_cold_start(static_cast<int>(argv.size()), argv.data());
    };
    CHECK_FALSE(serve({"bench"}).has_value());
    CHECK_FALSE(serve({"bench", "--baseline"}).has_value());
    CHECK_FALSE(serve({"bench", "--plumbline-cold-start=1,0", "--quiet"}).has_value());
    CHECK(serve({"bench", "--plumbline-cold-start="}) == 2);
    CHECK(serve({"bench", "--plumbline-cold-start=9"}) == 2);
    CHECK(serve({"bench", "--plumbline-cold-start=9,x"}) == 2);
}

TEST_CASE("the compiled program of the JIT probe differs with its seed and knows its answer") {
    CHECK(machine::detail::jit_program(1) != machine::detail::jit_program(2));
    CHECK(machine::detail::jit_answer(1) != machine::detail::jit_answer(2));
    CHECK(machine::detail::jit_program(1) == machine::detail::jit_program(1));
}

TEST_CASE("failures name the call, the object and a remedy, and keep the code") {
    try {
        cuda::check(cudaErrorMemoryAllocation, "cudaMalloc", "12 bytes");
        FAIL("it did not throw");
    } catch (const cuda::cuda_error& failure) {
        CHECK(failure.status() == cudaErrorMemoryAllocation);
        CHECK(failure.api() == "cudaMalloc");
        CHECK(std::string(failure.what()) ==
              "cudaMalloc on 12 bytes: cudaErrorMemoryAllocation (out of memory); free device memory (nvidia-smi lists "
              "the processes that hold it) or choose a smaller size");
    }
    CHECK_NOTHROW(cuda::check(cudaSuccess, "cudaMalloc"));
    CHECK_THROWS_AS(cuda::check(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmul"), unsupported_error);
    CHECK_THROWS_AS(cuda::check(CUBLAS_STATUS_EXECUTION_FAILED, "cublasLtMatmul"), cuda::cuda_error);
}

TEST_CASE("numerical flags are told by name") {
    CHECK(cuda::lt::detail::bit_names(0, {"a", "b", "c", "d", "e", "f", "g", "h"}) == "none");
    CHECK(cuda::lt::detail::bit_names(5, {"a", "b", "c", "d", "e", "f", "g", "h"}) == "a+c");
    CHECK(cuda::lt::detail::hex(0x10202) == "10202");
}

TEST_CASE("a plan that computes otherwise than asked raises an alarm") {
    constexpr std::uint64_t fma = CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA;
    constexpr std::uint64_t hmma = CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA;
    constexpr std::uint64_t tf32 = CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32;
    namespace code = result::alarm_code;
    const auto alarm = [](const std::string& type, std::uint64_t flags) {
        result::evidence ran;
        cuda::lt::add_numerics(ran, flags);
        const auto found =
            result::alarms(workload::gemm::describe(workload::gemm::parse("gemm/" + type + "/tn/m8n8k8")), ran);
        return found.empty() ? std::string() : found.at(0).code;
    };
    CHECK(alarm("fp32", fma | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F).empty());
    CHECK(alarm("fp32", hmma | tf32) == code::tf32_in_fp32);
    CHECK(alarm("tf32", hmma | tf32).empty());
    CHECK(alarm("tf32", fma | tf32).empty()); // seen: 0x40201
    CHECK(cuda::lt::uses_tensor_cores(0x40201));
    CHECK_FALSE(cuda::lt::uses_tensor_cores(0x80201));
    CHECK(alarm("tf32", 0x80201) == code::no_tf32);
    for (const char* type : {"fp16", "bf16", "fp8", "int8"}) {
        CAPTURE(type);
        CHECK(alarm(type, fma) == code::no_tensor_cores);
    }
    CHECK(alarm("bf16", hmma).empty());
    CHECK(alarm("int8", CUBLASLT_NUMERICAL_IMPL_FLAGS_IMMA).empty());
}

TEST_CASE("a recorded plan is rebuilt attribute by attribute, and named as it was") {
    // Attributes need neither a device nor a handle; the id, which does, stays 0 here.
    cublasLtMatmulAlgo_t chosen{};
    std::int64_t value = 3;
    for (const cuda::lt::attribute& each : cuda::lt::attributes) {
        if (each.letter != 0) cuda::lt::put(chosen, each, ++value);
    }
    result::evidence recorded;
    cuda::lt::add_attributes(recorded, chosen);
    CHECK(recorded.implementation == "lt/id0/t4/s5/k6/r7/z8/c9/i10/g11");
    int asked = -1;
    const auto make = [&asked](int id) {
        asked = id;
        return cublasLtMatmulAlgo_t{};
    };
    recorded.parts["algo.id"] = std::int64_t{66};
    result::evidence again;
    cuda::lt::add_attributes(again, cuda::lt::from_evidence(recorded, "it", make));
    CHECK(asked == 66);
    CHECK(again.implementation == recorded.implementation);
    recorded.parts.erase("algo.swizzle");
    CHECK_THROWS_WITH_AS(static_cast<void>(cuda::lt::from_evidence(recorded, "it", make)),
                         doctest::Contains("it: the recorded plan lacks algo.swizzle"), unsupported_error);
}

TEST_CASE("a plan's numbers mean the same only in the version that recorded them") {
    result::evidence recorded;
    CHECK_THROWS_WITH_AS(cuda::lt::require_same_numbers(recorded, "it", 130100), doctest::Contains("unknown version"),
                         unsupported_error);
    recorded.parts["cublaslt_version"] = std::int64_t{130100};
    CHECK_NOTHROW(cuda::lt::require_same_numbers(recorded, "it", 130100));
    CHECK_THROWS_WITH_AS(cuda::lt::require_same_numbers(recorded, "it", 130200),
                         doctest::Contains("recorded with cublasLt 130100, this is 130200"), unsupported_error);
}

TEST_CASE("the heuristic is told how operands are aligned") {
    CHECK(cuda::alignment_of(0) == 256);
    CHECK(cuda::alignment_of(1) == 1);
    CHECK(cuda::alignment_of(2) == 2);
    CHECK(cuda::alignment_of(24) == 8);
    CHECK(cuda::alignment_of(512) == 256);
}

TEST_CASE("a device carries its datasheet where the model is known") {
    result::device on;
    on.model = "NVIDIA H200";
    cuda::add_datasheet(on);
    CHECK(std::get<double>(on.properties.at("datasheet.copy_bytes_per_s")) == 4.8e12);
    on = {};
    on.model = "NVIDIA T4";
    cuda::add_datasheet(on);
    CHECK(on.properties.empty());
}
