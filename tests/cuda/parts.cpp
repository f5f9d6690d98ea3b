// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <doctest/doctest.h>

#include "plumbline/cuda/catalogue.hpp"
#include "plumbline/cuda/datasheet.hpp"

using namespace plumbline;
namespace machine = plumbline::cuda::machine;

TEST_CASE("the catalogue makes every probe, as a kernel or as a procedure, and any GEMM") {
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
        } else {
            REQUIRE(family.name == "gemm");
            const auto made = family.make("gemm/fp8/tn/m16n16k16/sustained");
            CHECK(made.how == measure::regime::sustained);
            CHECK(static_cast<bool>(made.prepare));
        }
    }
    CHECK(cuda::catalogue().size() == 2);
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
    using cuda::lt::alarm;
    using workload::dtype;
    CHECK(alarm(dtype::fp32, fma | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F).empty());
    CHECK(alarm(dtype::fp32, hmma | tf32).find("TF32") != std::string::npos);
    CHECK(alarm(dtype::tf32, hmma | tf32).empty());
    CHECK(alarm(dtype::tf32, fma | tf32).empty()); // seen: 0x40201
    CHECK(cuda::lt::uses_tensor_cores(0x40201));
    CHECK_FALSE(cuda::lt::uses_tensor_cores(0x80201));
    for (dtype type : {dtype::tf32, dtype::fp16, dtype::bf16, dtype::fp8, dtype::int8}) {
        CHECK(alarm(type, fma).find("without tensor cores") != std::string::npos);
    }
    CHECK(alarm(dtype::bf16, hmma).empty());
    CHECK(alarm(dtype::int8, CUBLASLT_NUMERICAL_IMPL_FLAGS_IMMA).empty());
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
