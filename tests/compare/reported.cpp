// SPDX-License-Identifier: Apache-2.0
// Thirty regressions that people reported in public trackers, each as a small pair of baselines: what they say had
// changed, among changes that did nothing, and what the measurements would have shown. The right cause must come first,
// and no wrong one may be more than associated.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "pair.hpp"

namespace {

using build::pair;
using namespace std::string_literals;

struct reported {
    std::string issue;
    std::string cause; ///< the name it must have
    std::function<void(pair&)> happened;
    bool mechanism = false; ///< the measurements show how: it must be consistent
};

const std::string conv = "conv/fprop/bf16/*";

const std::vector<reported> cases{
    {"NVIDIA/TensorRT-LLM#16623", "another board",
     [](pair& p) {
         p.change("gpu.board", "b1"s, "b2"s).change("cublaslt.version", 130100, 130200, 2);
         for (const char* id : {"probe/canary_*", "gemm/*", "conv/*", "layernorm/*", "training_step/*"})
             p.slow(id, 1.08);
     },
     true},
    {"triton-inference-server/fastertransformer_backend#78", "NVIDIA driver",
     [](pair& p) {
         p.change("driver.version", "470.82"s, "460.73"s).slow("probe/launch", 2.5).slow("probe/graph_launch", 1.8);
         p.slow("training_step/*", 1.4);
     }},
    {"tensorflow/tensorflow#5417", "NVIDIA driver",
     [](pair& p) {
         p.change("driver.library_version", "361.42"s, "367.57"s).slow("probe/*launch*", 10).slow("training_step/*", 8);
     }},
    {"NVIDIA/cudf#10507", "vGPU licence",
     [](pair& p) {
         p.state("gpu.vgpu_license", "licensed"s, "unlicensed"s);
         for (const char* id : {"probe/canary_*", "gemm/*", "conv/*", "layernorm/*", "training_step/*"}) p.slow(id, 30);
     },
     true},
    {"tonyd2wild/DeepSeek-V4.1-Flash-vLLM-DGX-Spark#1", "firmware",
     [](pair& p) {
         p.change("machine.bios_version", "5.36"s, "5.32"s).change("cudnn.version", 91900, 91901, 2);
         for (const char* id : {"probe/canary_*", "gemm/*", "conv/*", "layernorm/*", "training_step/*"})
             p.slow(id, 1.5);
     }},
    {"l4rz/reverse-engineering-dell-idrac-to-get-rid-of-gpu-throttling#3", "GPU power limit",
     [](pair& p) {
         p.change("gpu.power_limit_enforced_w", 400.0, 240.0).change("cublaslt.version", 130100, 130200, 2);
         p.part("gemm/*", "cublaslt_version", 130100, 130200);
         for (const char* id : {"probe/canary_mma", "gemm/*", "conv/*", "training_step/*"}) p.slow(id, 1.35, 1.35);
     },
     true},
    {"ashalliants/ninfer-3090#72", "GPU power limit",
     [](pair& p) {
         p.change("gpu.power_limit_w", 350.0, 315.0);
         for (const char* id : {"probe/canary_mma", "gemm/*", "conv/*"}) p.slow(id, 1.11, 1.11);
     },
     true},
    {"noonghunna/club-3090#178", "GPU temperature",
     [](pair& p) {
         p.state("gpu.temperature_c", 40, 88);
         for (const char* id : {"probe/canary_mma", "gemm/*", "conv/*"}) p.slow(id, 1.2, 1.2);
     },
     true},
    {"tile-ai/TileOPs#1587", "GPU clock setting",
     [](pair& p) {
         p.change("gpu.application_sm_clock_mhz", 1980, 1500).change("kernel.release", "6.1"s, "6.2"s);
         for (const char* id : {"probe/canary_*", "gemm/*", "conv/*", "layernorm/*", "training_step/*"}) {
             p.slow(id, 1.32, 1.32);
         }
     },
     true},
    {"janhq/jan#183", "PCIe link",
     [](pair& p) { p.state("pcie.generation", 5, 1).slow("probe/h2d_*", 6.4).slow("probe/d2h_*", 6.4); }, true},
    {"deepseek-ai/DeepEP#624", "NUMA placement",
     [](pair& p) { p.change("kernel.numa_balancing", 0, 1, 4).slow("probe/host_wake", 3); }},
    {"google/gvisor#14526", "CPU idle states",
     [](pair& p) {
         p.change("cpu.idle_states", "C1"s, "C1 C6"s, 4).slow("probe/host_wake", 15).slow("probe/launch", 1.3);
     }},
    {"NVIDIA/nvidia-docker#1279", "persistence mode",
     [](pair& p) {
         p.change("gpu.persistence", true, false).change("cudnn.version", 91900, 91901, 2);
         p.slow("probe/cold_*", 5);
     }},
    {"FORTH-ModelBasedTracker/HandTracker#7", "JIT of device code",
     [](pair& p) {
         p.variable("CUDA_CACHE_DISABLE", "", "1").change("cuda.device_code", "machine code sm_90"s, "PTX sm_80"s, 2);
         p.slow("probe/cold_first_launch", 60);
     }},
    {"NVIDIA/nvidia-docker#1050", "container isolation",
     [](pair& p) { p.change("process.seccomp", "0"s, "2"s).slow("probe/launch", 1.064).slow("probe/host_wake", 1.9); }},
    {"pytorch/pytorch#146096", "cuDNN",
     [](pair& p) {
         p.change("cudnn.version", 91900, 92000, 2)
             .change("lib.libcudnn.path", "/a/libcudnn.so.9"s, "/b/libcudnn.so.9"s, 2);
         p.change("driver.version", "580.1"s, "580.2"s);
         p.slow(conv, 8).ran(conv, "cudnn/A/eng38/k2=1", "cudnn/A/eng0/k2=1");
     },
     true},
    {"pytorch/pytorch#81940", "cuDNN",
     [](pair& p) {
         p.change("cudnn.version", 8302, 8401, 2).change("cuda.runtime_version", 11030, 11060, 2);
         p.slow(conv, 1.29).slow("conv/wgrad/*", 0.85).ran("conv/*", "cudnn/A/eng38/k2=1", "cudnn/A/eng3/k2=1");
     },
     true},
    {"liuliu/ccv#225", "cuDNN",
     [](pair& p) {
         p.change("cudnn.version", 7605, 8000, 2).change("cublaslt.version", 130100, 130200, 2);
         p.slow("conv/*", 4.7).ran("conv/*", "cudnn/A/eng38", "cudnn/A/eng1").slow("training_step/*", 3);
     },
     true},
    {"pytorch/pytorch#119458", "CUDA runtime",
     [](pair& p) {
         p.change("cuda.runtime_version", 11080, 12010, 2).slow("probe/launch", 1.28).slow("probe/graph_launch", 1.2);
         p.slow("training_step/*/stream", 1.2);
     }},
    {"jax-ml/jax#11705", "cuBLAS",
     [](pair& p) {
         p.change("cublaslt.version", 110500, 110700, 2).change("cudnn.version", 91900, 91901, 2);
         p.slow("gemm/bf16/*", 1.4).ran("gemm/bf16/*", "lt/id66/t248/s35", "lt/id21/t20/s7");
     },
     true},
    {"pytorch/pytorch#101145", "cuBLAS workspace",
     [](pair& p) {
         p.variable("CUBLASLT_WORKSPACE_SIZE", "", "1024", 2).change("cublaslt.version", 130100, 130200, 2);
         p.slow("gemm/bf16/*", 6).ran("gemm/bf16/*", "lt/id66/t248/s35", "lt/id21/t20/s7");
         p.part("gemm/bf16/*", "workspace_offered_bytes", std::int64_t{33554432}, std::int64_t{1048576});
     },
     true},
    {"BVLC/caffe#2211", "GPU memory in use",
     [](pair& p) {
         p.state("gpu.memory_used_bytes", std::int64_t{3407872}, std::int64_t{140000000000});
         p.slow("conv/*", 2.2).ran("conv/*", "cudnn/A/eng38/k2=1", "cudnn/A/eng0/k2=1");
         p.part("conv/*", "workspace_bytes", std::int64_t{900000000}, std::int64_t{0});
     },
     true},
    {"pytorch/pytorch#153195", "TF32 policy",
     [](pair& p) {
         p.variable("NVIDIA_TF32_OVERRIDE", "", "0", 2).change("cublas.tf32_effective", true, false, 2);
         p.variable("CUDA_DEVICE_MAX_CONNECTIONS", "", "1");
         p.slow("gemm/tf32/*", 6.2).slow("conv/*/tf32/*", 7.4);
         p.ran("gemm/tf32/*", "lt/id66/t248/s35", "lt/id0/t20/s8").part("gemm/tf32/*", "tensor_cores", true, false);
     },
     true},
    {"jishengpeng/WavTokenizer#17", "CUDA_LAUNCH_BLOCKING",
     [](pair& p) {
         p.variable("CUDA_LAUNCH_BLOCKING", "", "1").change("driver.version", "580.1"s, "580.2"s);
         p.slow("probe/launch", 2).ran("probe/launch", "asynchronous", "blocking").slow("training_step/*", 1.7);
     },
     true},
    {"NVIDIA/cutlass#1255", "build of the program",
     [](pair& p) { p.change("build.cuda_flags", "-O3 -DNDEBUG"s, "-O3"s, 2).slow("layernorm/*/native", 6.7); }},
    {"NVIDIA/nvidia-docker#757", "CPU quota",
     [](pair& p) {
         p.change("cgroup.cpu_quota", "unlimited"s, "4"s, 4).change("cpu.usable", 16, 4, 4).slow("dataloader/*", 2);
         p.state("cgroup.throttled_periods", 0, 900);
     },
     true},
    {"pytorch/pytorch#194605", "CPU affinity",
     [](pair& p) {
         p.change("cpu.allowed", "0-15"s, "0-1"s, 4).change("cpu.usable", 16, 2, 4).slow("dataloader/*", 7);
     }},
    {"open-mmlab/mmdetection#6867", "number of threads",
     [](pair& p) { p.variable("OPENCV_FOR_THREADS_NUM", "1", "", 4).slow("dataloader/*", 1.9); }},
    {"python-pillow/Pillow#4705", "JPEG decoder",
     [](pair& p) {
         p.change("lib.libjpeg.path", "/opt/turbo/libjpeg.so.62"s, "/usr/lib/libjpeg.so.62"s, 4);
         p.variable("LD_LIBRARY_PATH", "/opt/turbo", "");
         p.slow("dataloader/*", 2).measured("dataloader/*", "decode_us_per_image", 800, 1700);
     },
     true},
    {"NVIDIA/DALI#1415", "storage",
     [](pair& p) {
         p.state("load.pressure_io", 0.1, 60.0).slow("dataloader/*", 12);
         p.measured("dataloader/*", "read_us_per_image", 50, 9000);
     },
     true},
};

} // namespace

TEST_CASE("of thirty reported regressions the right cause comes first, and no wrong one is more than associated") {
    REQUIRE(cases.size() == 30);
    int right = 0;
    for (const reported& each : cases) {
        pair p;
        p.gpu_suite().innocent();
        each.happened(p);
        const auto why = p.explained();
        CAPTURE(each.issue);
        CAPTURE(build::names(why));
        const bool first = !why.causes.empty() && why.causes.front().name == each.cause;
        WARN(first);
        right += first;
        if (first && each.mechanism) CHECK(why.causes.front().how_sure == plumbline::compare::strength::consistent);
        for (const auto& cause : why.causes) {
            CHECK_MESSAGE((cause.name == each.cause || cause.how_sure == plumbline::compare::strength::associated),
                          cause.name);
        }
        for (const auto& cause : why.set_aside) CHECK(cause.name != each.cause);
    }
    CHECK(right >= 27);
}

TEST_CASE("the same changes without a regression are no cause") {
    for (const reported& each : cases) {
        pair p;
        p.gpu_suite().innocent();
        each.happened(p);
        // What was measured is put back; what changed in the environment stays.
        p.candidate.results = p.base.results;
        CAPTURE(each.issue);
        const auto why = p.explained();
        CHECK(why.causes.empty());
        CHECK(why.conclusion.empty());
    }
}

TEST_CASE("a regression keeps its cause whatever else was changed on the same day") {
    // Each case with the changes of each other one, which do nothing this time.
    int right = 0, all = 0;
    for (const reported& guilty : cases) {
        for (const reported& other : cases) {
            if (guilty.cause == other.cause) continue;
            pair p, decoy;
            p.gpu_suite().innocent();
            guilty.happened(p);
            decoy.gpu_suite();
            other.happened(decoy);
            for (const bool before : {true, false}) {
                const auto& from = (before ? decoy.base : decoy.candidate).environment.attributes;
                auto& into = (before ? p.base : p.candidate).environment.attributes;
                for (const auto& [name, entry] : from) {
                    // What the machine shows of an effect is no innocent change.
                    if (entry.kind == build::attribute_class::config) into.emplace(name, entry);
                }
            }
            const auto why = p.explained();
            CAPTURE(guilty.issue);
            CAPTURE(other.issue);
            CAPTURE(build::names(why));
            ++all;
            const bool first = !why.causes.empty() && why.causes.front().name == guilty.cause;
            right += first;
            for (const auto& cause : why.causes) {
                CHECK_MESSAGE(
                    (cause.name == guilty.cause || cause.how_sure == plumbline::compare::strength::associated),
                    cause.name);
            }
        }
    }
    CAPTURE(right);
    CAPTURE(all);
    CHECK(right >= 0.9 * all);
}
