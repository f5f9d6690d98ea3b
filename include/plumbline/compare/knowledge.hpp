// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_KNOWLEDGE_HPP
#define PLUMBLINE_COMPARE_KNOWLEDGE_HPP

#include <string>
#include <vector>

#include "plumbline/compare/cause.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// Which changes of an attribute count.
enum class turn {
    any,  ///< every change
    up,   ///< a number that rises, false to true
    down, ///< a number that falls, true to false
};

/// What a cause does to the library-free canaries.
enum class canary_view {
    spared, ///< nothing: libraries and settings do not reach them
    either, ///< may slow them or not
    slowed, ///< slows them too: with unchanged canaries it is out of the question
};

/// What is known about the change of one component: which attributes show it, what it can slow down, by how much,
/// which traces it leaves, and what to do. Ids and attributes are given as globs (compare/glob.hpp).
struct knowledge {
    std::string component{};               ///< changes of one component are one cause; empty: the attribute's own name
    std::vector<std::string> attributes{}; ///< the most telling first
    turn way = turn::any;
    double at_least = 0;           ///< of a number: smallest absolute change that counts
    double reaches = 0;            ///< of a number: smallest new value that counts
    double at_least_share = 0;     ///< of a number: smallest change that counts, as a share of the larger value
    std::vector<std::string> to{}; ///< the new value must match one of these; empty: any
    std::string backend{};         ///< "cuda", "cpu"; empty for both
    std::vector<std::string> touches{};
    std::vector<std::string> touches_on_cpu{}; ///< more of them where the CPU is what is measured
    std::vector<std::string> spares{};         ///< exceptions from `touches`
    std::vector<std::string> always{}; ///< if one of these was measured and is equivalent, this was not the cause
    std::vector<mechanism> shows{};    ///< traces it leaves; none: it can never be more than associated by them
    bool clock = false;                ///< acts through the clock and not through the number of cycles
    bool in_proportion = false;        ///< slows by no more than its numbers changed: half the clock, twice the time
    canary_view canary = canary_view::spared;
    double most = 0;      ///< largest factor on a time that was reported; 0: not known
    double weight = 1;    ///< how readily it is suspected among causes that fit alike
    bool symptom = false; ///< has a cause itself: gives way to a changed setting that shows the same
    std::string effect{};
    std::string remedy{};
    std::string experiment{};
    std::vector<std::string> sources{}; ///< public reports, as owner/repository#number
};

namespace detail {

/// Groups of benchmarks that the table speaks of.
namespace ids {
using list = std::vector<std::string>;
inline const list& all() {
    static const list globs{"*"};
    return globs;
}
inline const list& device_work() {
    static const list globs{"gemm/*",          "conv/*",         "layernorm/*",
                            "training_step/*", "probe/canary_*", "probe/device_copy*"};
    return globs;
}
inline const list& memory_bound() {
    static const list globs{"layernorm/*", "probe/canary_copy*", "probe/device_copy*"};
    return globs;
}
inline const list& math() {
    static const list globs{"gemm/*", "conv/*", "layernorm/*", "training_step/*"};
    return globs;
}
inline const list& cublas() {
    static const list globs{"gemm/*", "training_step/*"};
    return globs;
}
inline const list& cudnn() {
    static const list globs{"conv/*", "layernorm/*/cudnn*", "training_step/*"};
    return globs;
}
inline const list& launches() {
    static const list globs{"probe/launch*", "probe/graph_launch*", "training_step/*/stream*"};
    return globs;
}
inline const list& cold() {
    static const list globs{"probe/cold_*", "probe/idle_gap*"};
    return globs;
}
inline const list& links() {
    static const list globs{"probe/h2d_*", "probe/d2h_*", "dataloader/*"};
    return globs;
}
inline const list& host() {
    static const list globs{"dataloader/*", "probe/host_*", "probe/launch*", "probe/cold_*", "probe/h2d_pageable*"};
    return globs;
}
inline const list& loader() {
    static const list globs{"dataloader/*"};
    return globs;
}
inline const list& peers() {
    static const list globs{"probe/p2p_*", "nccl/*"};
    return globs;
}
/// What a framework runs and this library does not.
inline const list& own() {
    static const list globs{"gemm/*", "conv/*", "layernorm/*", "training_step/*", "dataloader/*", "probe/*"};
    return globs;
}
} // namespace ids

// The table, which is long because it is all in one place. One more piece of knowledge: an entry in the list of its
// link. The first entry whose attributes match decides, so what is particular stands before what is general.

/// Link 1: driver and hardware.
[[nodiscard]] inline std::vector<knowledge> knowledge_of_link_1() {
    using m = mechanism;
    std::vector<knowledge> all;
    const auto add = [&all](knowledge entry) { all.push_back(std::move(entry)); };
    add({.component = "GPU power limit",
         .attributes = {"gpu.power_limit_enforced_w", "gpu.power_limit_w", "gpu.power_limit_max_w"},
         .way = turn::down,
         .backend = "cuda",
         .touches = ids::device_work(),
         .shows = {m::clock_lower},
         .clock = true,
         .in_proportion = true,
         .canary = canary_view::either, // memory-bound work keeps its speed under a lower limit
         .most = 2.5,
         .effect = "a lower power limit lowers the SM clock in compute-bound work",
         .remedy = "set the limit back: nvidia-smi -pl WATTS; under a chassis limit look at the BMC's power table",
         .experiment = "set the limit back with nvidia-smi -pl and run bench --compare again",
         .sources = {"l4rz/reverse-engineering-dell-idrac-to-get-rid-of-gpu-throttling#3", "ashalliants/ninfer-3090#72",
                     "bradrlaw/ai-server#32"}});
    add({.component = "GPU clock setting",
         .attributes = {"gpu.application_sm_clock_mhz", "gpu.sm_clock_offset_mhz", "gpu.max_sm_clock_mhz",
                        "gpu.default_sm_clock_mhz", "gpu.cuda_max_clock_khz", "gpu.auto_boost",
                        "env.CUDA_DISABLE_PERF_BOOST"},
         .way = turn::down,
         .backend = "cuda",
         .touches = ids::device_work(),
         .shows = {m::clock_lower},
         .clock = true,
         .in_proportion = true,
         .canary = canary_view::slowed,
         .most = 4,
         .effect = "a lower clock setting slows everything that computes",
         .remedy = "reset the clocks: nvidia-smi -rgc and nvidia-smi -rac",
         .experiment = "reset the clocks with nvidia-smi -rgc -rac and run bench --compare again",
         .sources = {"tile-ai/TileOPs#1587", "c3sr/comm_scope#43"}});
    add({.component = "GPU memory clock",
         .attributes = {"gpu.application_memory_clock_mhz", "gpu.max_memory_clock_mhz", "gpu.cuda_memory_clock_khz"},
         .way = turn::down,
         .backend = "cuda",
         .touches = ids::memory_bound(),
         .shows = {m::memory_slower},
         .in_proportion = true,
         .canary = canary_view::slowed,
         .most = 3,
         .effect = "a lower memory clock slows memory-bound work in proportion",
         .remedy = "reset the memory clock: nvidia-smi -rmc",
         .experiment = "reset it with nvidia-smi -rmc and run bench --compare again",
         .sources = {"NVIDIA/TensorRT-LLM#6294"}});
    add({.component = "GPU ECC",
         .attributes = {"gpu.ecc", "gpu.cuda_ecc"},
         .way = turn::up,
         .backend = "cuda",
         .touches = ids::memory_bound(),
         .shows = {m::memory_slower},
         .canary = canary_view::slowed,
         .most = 1.25,
         .effect = "error correction costs bandwidth on GPUs without HBM",
         .remedy = "wanted in a server; make a new baseline with ECC on",
         .experiment = "switch it with nvidia-smi -e and a reboot, then run bench --compare again",
         .sources = {}});
    add({.component = "GPU temperature",
         .attributes = {"gpu.temperature_c", "gpu.memory_temperature_c"},
         .way = turn::up,
         .at_least = 10,
         .reaches = 75,
         .backend = "cuda",
         .touches = ids::device_work(),
         .shows = {m::clock_lower},
         .clock = true,
         .canary = canary_view::either,
         .most = 2,
         .effect = "a hot GPU lowers its clock",
         .remedy = "look at fans, air flow and what ran before; let it cool and measure again",
         .experiment = "let the GPU idle until it is as cool as in the baseline and run bench --compare again",
         .sources = {"noonghunna/club-3090#178", "soumith/convnet-benchmarks#71"}});
    add({.component = "GPU clock event reasons",
         .attributes = {"gpu.clock_reasons"},
         .to = {"*thermal*", "*power*", "*brake*", "*slowdown*", "*cap*"},
         .backend = "cuda",
         .touches = ids::device_work(),
         .shows = {m::clock_lower},
         .clock = true,
         .canary = canary_view::either,
         .most = 3,
         .symptom = true,
         .effect = "the driver says what holds the clock down",
         .remedy = "nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE says more; a power brake comes from the chassis",
         .experiment = "remove the reason and run bench --compare again",
         .sources = {"l4rz/reverse-engineering-dell-idrac-to-get-rid-of-gpu-throttling#3"}});
    add({.component = "other processes on the GPU",
         .attributes = {"gpu.processes", "gpu.utilization_percent"},
         .way = turn::up,
         .backend = "cuda",
         .touches = ids::all(),
         .shows = {m::foreign_work, m::memory_held, m::out_of_memory},
         .canary = canary_view::either,
         .most = 20,
         .effect = "another process shares the GPU's time",
         .remedy = "nvidia-smi shows which process it is; end it or measure when it is gone",
         .experiment = "end the other process and run bench --compare again",
         .sources = {"NVIDIA/TensorRT#2377"}});
    knowledge held{.component = "GPU memory in use",
                   .attributes = {"gpu.memory_used_bytes"},
                   .way = turn::up,
                   .at_least_share = 0.1,
                   .backend = "cuda",
                   .touches = ids::math(),
                   .shows = {m::workspace_smaller, m::fallback_chosen, m::out_of_memory},
                   .canary = canary_view::spared,
                   .most = 10,
                   .symptom = true,
                   .effect = "with little memory free, libraries fall back to plans with less workspace or fail",
                   .remedy = "nvidia-smi shows who holds the memory; free it and measure again",
                   .experiment = "free the memory and run bench --compare again",
                   .sources = {"BVLC/caffe#2211", "pytorch/pytorch#558", "AUTOMATIC1111/stable-diffusion-webui#11063"}};
    add(held);
    held.attributes = {"gpu.memory_free_bytes"};
    held.way = turn::down;
    add(held);
    add({.component = "GPU memory faults",
         .attributes = {"gpu.ecc_uncorrected", "gpu.row_remap_failed", "gpu.row_remap_pending",
                        "gpu.rows_remapped_uncorrected", "gpu.rows_remapped_corrected", "gpu.pages_retired",
                        "gpu.ecc_corrected"},
         .way = turn::up,
         .backend = "cuda",
         .touches = ids::memory_bound(),
         .shows = {m::memory_faults},
         .canary = canary_view::slowed,
         .most = 2,
         .effect = "memory that reports errors is being repaired or is failing",
         .remedy = "drain the node and reset the GPU; if the counters rise again, have it replaced",
         .experiment = "run the suite on a sibling, and here again after a reset of the GPU",
         .sources = {}});
    add({.component = "another board",
         .attributes = {"gpu.board", "gpu.unit", "gpu.serial", "gpu.board_part_number"},
         .backend = "cuda",
         .touches = ids::all(),
         .spares = {"dataloader/*", "probe/host_wake*"},
         .shows = {m::canary_slower, m::clock_lower},
         .canary = canary_view::slowed,
         .most = 1.15,
         .effect = "boards of one model differ; a drop can belong to the node and to no library at all",
         .remedy = "run the suite on at least two siblings: bench-compare --siblings DIR NEW",
         .experiment = "run the same binary on the old board, or on a sibling",
         .sources = {"NVIDIA/TensorRT-LLM#16623", "wang-xinyu/tensorrtx#647"}});
    add({.component = "vGPU licence",
         .attributes = {"gpu.vgpu_license", "gpu.virtualization"},
         .backend = "cuda",
         .touches = ids::all(),
         .shows = {m::canary_slower},
         .canary = canary_view::slowed,
         .most = 2000,
         .effect = "a virtual GPU without a licence is throttled minutes after the boot",
         .remedy = "license the vGPU (nvidia-smi -q shows the state) and restart nvidia-gridd",
         .experiment = "license it and run bench --compare again",
         .sources = {"NVIDIA/cudf#10507", "NVIDIA/gpu-operator#220", "Azure/AKS#4868"}});
    add({.component = "MPS",
         .attributes = {"cuda.mps", "env.CUDA_MPS_*", "gpu.compute_mode"},
         .backend = "cuda",
         .touches = ids::all(),
         .spares = {"dataloader/*"},
         .shows = {m::canary_slower},
         .canary = canary_view::either,
         .most = 10,
         .effect = "MPS may leave a process only a share of the SMs",
         .remedy = "unset CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, or end the MPS daemon",
         .experiment = "measure without MPS",
         .sources = {}});
    add({.component = "PCIe link",
         .attributes = {"pcie.slot_max_speed", "pcie.slot_max_width", "pcie.max_generation", "pcie.max_width",
                        "pcie.slot_speed", "pcie.slot_width", "pcie.generation", "pcie.width"},
         .way = turn::down,
         .backend = "cuda",
         .touches = ids::links(),
         .always = {"probe/h2d_pinned*"},
         .shows = {m::link_lower},
         .in_proportion = true, // an idle link rests at a low generation and is fast when it works
         .canary = canary_view::spared,
         .most = 16,
         .effect = "a narrower or slower link slows every copy between host and GPU",
         .remedy = "reseat card and riser, look at the slot's bifurcation and ASPM; dmesg shows link errors",
         .experiment = "move the card to another slot, or compare with a sibling",
         .sources = {"janhq/jan#183"}});
    add({.component = "PCIe errors",
         .attributes = {"pcie.replays"},
         .way = turn::up,
         .backend = "cuda",
         .touches = ids::links(),
         .most = 16,
         .effect = "what arrives damaged is sent again",
         .remedy = "reseat card and riser; dmesg shows link errors",
         .experiment = "move the card to another slot, or compare with a sibling",
         .sources = {}});
    add({.component = "persistence mode",
         .attributes = {"gpu.persistence"},
         .way = turn::down,
         .backend = "cuda",
         .touches = ids::cold(),
         .canary = canary_view::spared,
         .most = 20,
         .effect = "without persistence the driver sets the GPU up anew for each first process",
         .remedy = "start nvidia-persistenced (nvidia-smi -pm 1)",
         .experiment = "switch it on with nvidia-smi -pm 1 and run bench --compare again",
         .sources = {"NVIDIA/nvidia-docker#1279", "arrayfire/arrayfire#2467"}});
    add({.component = "CUDA_LAUNCH_BLOCKING",
         .attributes = {"env.CUDA_LAUNCH_BLOCKING"},
         .backend = "cuda",
         .touches = {"probe/launch*", "probe/graph_launch*", "training_step/*", "layernorm/*", "gemm/*", "conv/*"},
         .always = {"probe/launch"},
         .shows = {m::launch_synchronous, m::host_slower},
         .most = 10,
         .effect = "every launch waits for its kernel: enqueueing takes as long as the work",
         .remedy = "unset CUDA_LAUNCH_BLOCKING: it is for debugging",
         .sources = {"jishengpeng/WavTokenizer#17", "k2-fsa/icefall#554", "OpenRLHF/OpenRLHF#46",
                     "ByteDance-Seed/VeOmni#115"}});
    add({.component = "JIT of device code",
         .attributes = {"cuda.device_code", "env.CUDA_FORCE_PTX_JIT", "env.CUDA_FORCE_JIT", "env.CUDA_DISABLE_*JIT",
                        "cuda.jit_cache_writable", "env.CUDA_CACHE_*", "build.cuda_architectures"},
         .backend = "cuda",
         .touches = {"probe/cold_*", "layernorm/*/native*"},
         .shows = {m::code_compiled_anew},
         .most = 100,
         .effect = "code that the driver compiles costs at each start, and differs from what nvcc made",
         .remedy =
             "build for this GPU's architecture; give CUDA_CACHE_PATH a place that lasts, unset CUDA_CACHE_DISABLE",
         .experiment = "start the program twice: with a warm cache the second start is as before",
         .sources = {"FORTH-ModelBasedTracker/HandTracker#7", "dl-container-registry/furnari-flow#3",
                     "conda-forge/pytorch-cpu-feedstock#114"}});
    add({.component = "CUDA module loading",
         .attributes = {"env.CUDA_MODULE_LOADING", "cuda.module_loading", "env.CUDA_MODULE_DATA_LOADING",
                        "env.CUDA_ENABLE_MODULE_LAZY_LOADING"},
         .backend = "cuda",
         .touches = ids::cold(),
         .most = 10,
         .effect = "eager loading moves the cost of every kernel to the start",
         .remedy = "leave CUDA_MODULE_LOADING unset (lazy)",
         .sources = {}});
    add({.component = "profiler or sanitizer",
         .attributes = {"env.CUDA_INJECTION64_PATH", "env.NVTX_INJECTION64_PATH", "lib.libToolsInjection*",
                        "lib.libsanitizer*", "lib.libasan*", "lib.libtsan*", "env.ASAN_OPTIONS", "build.sanitized"},
         .touches = ids::all(),
         .spares = {"probe/canary_*"},
         .shows = {m::host_slower, m::launch_synchronous},
         .canary = canary_view::either,
         .most = 20,
         .effect = "tools that hook into the process slow its launches or all of it",
         .remedy = "measure without the tool: unset the injection variable, build without sanitizers",
         .sources = {}});
    add({.component = "NVLink fabric",
         .attributes = {"nvlink.*", "gpu.peers"},
         .backend = "cuda",
         .touches = ids::peers(),
         .most = 100,
         .effect = "links or fabric that are down send traffic between GPUs over PCIe",
         .remedy = "nvidia-smi nvlink -s, and the fabric manager's log",
         .experiment = "run the peer test on a sibling",
         .sources = {"Dstack-TEE/dstack#1167", "Azure/azhpc-diagnostics#73"}});
    add({.component = "NCCL",
         .attributes = {"lib.libnccl*", "env.NCCL_*", "nccl.*", "python.nvidia_nccl*"},
         .backend = "cuda",
         .touches = ids::peers(),
         .most = 10,
         .effect = "NCCL's version and settings decide how GPUs talk to each other",
         .remedy = "set the variable back, or pin the library",
         .experiment = "run nccl-tests with both versions",
         .sources = {"NVIDIA/nccl#770", "NVIDIA/nccl#837", "NVIDIA/nccl#1876"}});
    add({.component = "IOMMU",
         .attributes = {"kernel.iommu_*", "kernel.aspm_policy", "driver.parameter.*"},
         .backend = "cuda",
         .touches = {"probe/p2p_*", "nccl/*", "probe/h2d_*", "probe/d2h_*"},
         .most = 6,
         .effect = "address translation and power saving on the bus slow or redirect copies",
         .remedy = "look at the kernel command line (iommu=pt, pcie_aspm=off) and the BIOS",
         .experiment = "boot with the old setting",
         .sources = {"NVIDIA/nccl#606", "NVIDIA/nccl#2079"}});
    add({.component = "NVIDIA driver",
         .attributes = {"driver.version", "driver.module_version", "driver.library_version", "driver.module_kind",
                        "driver.nvml_version", "driver.cuda_version", "cuda.driver_version", "driver.gpu_firmware",
                        "gpu.gsp_firmware", "gpu.gsp_enabled", "driver.forward_compatibility", "lib.libcuda.*",
                        "lib.libnvidia-*", "driver.confidential_computing"},
         .backend = "cuda",
         .touches = {"probe/launch*", "probe/graph_launch*", "probe/cold_*", "probe/h2d_*", "probe/d2h_*",
                     "training_step/*", "probe/canary_*", "gemm/*", "conv/*", "layernorm/*"},
         .shows = {m::host_slower, m::canary_slower},
         .canary = canary_view::either,
         .most = 10,
         .weight = 0.6,
         .effect =
             "a driver changes launch cost, clocks and the compiler of PTX; module and library must be of one version",
         .remedy = "install the old driver branch; make module and library agree (reboot after an upgrade)",
         .experiment = "boot the old driver and run bench --compare again",
         .sources = {"triton-inference-server/fastertransformer_backend#78", "NVIDIA/TensorRT#2932",
                     "tensorflow/tensorflow#5417", "jax-ml/jax#4889"}});
    add({.component = "CPU microcode",
         .attributes = {"cpu.microcode"},
         .touches = ids::host(),
         .touches_on_cpu = ids::all(),
         .canary = canary_view::either,
         .most = 2,
         .weight = 0.5,
         .effect = "microcode switches mitigations and instructions of the processor",
         .remedy = "compare with a sibling on the old microcode",
         .experiment = "run the suite on a sibling with the old microcode",
         .sources = {}});
    add({.component = "firmware",
         .attributes = {"machine.bios_version", "machine.bios_date", "gpu.vbios", "gpu.inforom", "machine.board",
                        "machine.product", "machine.vendor"},
         .touches = ids::all(),
         .shows = {m::canary_slower, m::clock_lower},
         .canary = canary_view::either,
         .most = 2,
         .weight = 0.5,
         .effect = "firmware sets power states, limits and memory timing",
         .remedy = "compare with a sibling on the old firmware",
         .experiment = "run the suite on a sibling with the old firmware",
         .sources = {"tonyd2wild/DeepSeek-V4.1-Flash-vLLM-DGX-Spark#1"}});
    add({.component = "visible devices",
         .attributes = {"env.CUDA_VISIBLE_DEVICES", "env.CUDA_DEVICE_ORDER", "env.NVIDIA_VISIBLE_DEVICES",
                        "env.GPU_DEVICE_ORDINAL", "gpu.count", "cuda.devices", "container.gpu_nodes"},
         .backend = "cuda",
         .touches = ids::all(),
         .canary = canary_view::either,
         .most = 10,
         .weight = 0.3,
         .effect = "another card may be measured than before",
         .remedy = "name the card by its UUID in CUDA_VISIBLE_DEVICES",
         .sources = {"bamos/setGPU#1", "gpuopenanalytics/pynvml#28", "NVIDIA/k8s-device-plugin#1078"}});
    add({.component = "container isolation",
         .attributes = {"process.seccomp", "process.speculation_store_bypass", "process.no_new_privileges",
                        "container.runtime", "cpu.vulnerability.*"},
         .touches = ids::host(),
         .canary = canary_view::either,
         .most = 1.4,
         .effect = "seccomp and CPU mitigations cost at every system call",
         .remedy = "run with seccomp=unconfined to see what it costs",
         .experiment = "run the same binary on the bare host",
         .sources = {"NVIDIA/nvidia-docker#1050", "docker-library/python#575"}});
    return all;
}

/// Link 2: acceleration libraries and compilers.
[[nodiscard]] inline std::vector<knowledge> knowledge_of_link_2() {
    using m = mechanism;
    std::vector<knowledge> all;
    const auto add = [&all](knowledge entry) { all.push_back(std::move(entry)); };
    add({.component = "TF32 policy",
         .attributes = {"env.NVIDIA_TF32_OVERRIDE", "cublas.tf32_effective", "cublas.fp32_exact"},
         .backend = "cuda",
         .touches = {"gemm/tf32/*", "conv/*/tf32/*", "training_step/*/tf32*", "gemm/fp32/*", "conv/*/fp32/*"},
         .shows = {m::tensor_cores_lost, m::precision_changed},
         .most = 8,
         .effect = "NVIDIA_TF32_OVERRIDE=0 takes the tensor cores from TF32 work: 6.2x in a GEMM, 7.4x in a 3x3 conv",
         .remedy = "unset NVIDIA_TF32_OVERRIDE before the process starts",
         .sources = {"pytorch/pytorch#153195", "pytorch/pytorch#61890", "tensorflow/tensorflow#53742"}});
    add({.component = "cuBLAS workspace",
         .attributes = {"env.CUBLASLT_WORKSPACE_SIZE", "env.CUBLAS_WORKSPACE_CONFIG"},
         .backend = "cuda",
         .touches = ids::cublas(),
         .shows = {m::workspace_smaller},
         .most = 12,
         .effect = "with a small workspace cuBLASLt cannot take its split-K and stream-K algorithms",
         .remedy = "give Hopper 32 MiB, or unset the variable",
         .sources = {"pytorch/pytorch#101145", "pytorch/pytorch#120925", "NVIDIA/MatX#545", "pytorch/pytorch#73328"}});
    add({.component = "cuDNN workspace cap",
         .attributes = {"env.CUDNN_CONV_WSCAP_DBG"},
         .backend = "cuda",
         .touches = {"conv/*", "training_step/*"},
         .shows = {m::workspace_smaller, m::fallback_chosen},
         .most = 10,
         .effect = "engines that need more workspace than the cap are not offered",
         .remedy = "unset CUDNN_CONV_WSCAP_DBG",
         .sources = {"BVLC/caffe#2211"}});
    add({.component = "library logging",
         .attributes = {"env.CUDNN_LOG*", "env.CUDNN_NVTX*", "env.CUBLAS_LOG*", "env.CUBLASLT_LOG*", "env.CUBLAS*NVTX*",
                        "env.ONEDNN_VERBOSE", "env.DNNL_VERBOSE", "env.CUDNN_FRONTEND_LOG*"},
         .touches = ids::math(),
         .shows = {m::host_slower},
         .most = 5,
         .effect = "logging costs at every call of the library",
         .remedy = "unset the logging variable",
         .sources = {}});
    add({.component = "oneDNN instruction set",
         .attributes = {"env.ONEDNN_MAX_CPU_ISA", "env.DNNL_MAX_CPU_ISA"},
         .backend = "cpu",
         .touches = ids::math(),
         .shows = {m::instruction_set_lower, m::cannot_run},
         .most = 40,
         .effect = "oneDNN may use only older instructions than the processor has",
         .remedy = "unset ONEDNN_MAX_CPU_ISA",
         .sources = {}});
    add({.component = "oneDNN arithmetic mode",
         .attributes = {"env.ONEDNN_DEFAULT_FPMATH_MODE"},
         .backend = "cpu",
         .touches = ids::math(),
         .shows = {m::implementation_changed},
         .most = 8,
         .effect = "decides whether fp32 work may be done in bf16",
         .remedy = "set ONEDNN_DEFAULT_FPMATH_MODE back",
         .sources = {}});
    add({.component = "oneDNN",
         .attributes = {"lib.libdnnl*", "lib.libmkldnn*"},
         .backend = "cpu",
         .touches = ids::math(),
         .shows = {m::implementation_changed, m::library_replaced, m::cannot_run},
         .most = 10,
         .effect = "another oneDNN chooses among other kernels",
         .remedy = "pin the package of the library, or point LD_LIBRARY_PATH at the old one",
         .experiment = "load the old library by LD_LIBRARY_PATH and run bench --compare again",
         .sources = {"uxlfoundation/oneDNN#2583"}});
    add({.component = "cuDNN",
         .attributes = {"cudnn.version", "cudnn.sublibraries", "lib.libcudnn*", "cudnn.cudart_version",
                        "cudnn.compiled_version", "cudnn.max_device_version", "env.CUDNN_PATH"},
         .backend = "cuda",
         .touches = ids::cudnn(),
         .shows = {m::implementation_changed, m::fallback_chosen, m::tensor_cores_lost, m::library_replaced,
                   m::cannot_run},
         .most = 10,
         .effect = "another cuDNN has other heuristics and engines: shapes move in both directions",
         .remedy = "pin the old cuDNN, or pin the plan; bench --predict judges an upgrade before it is rolled out",
         .experiment = "point LD_LIBRARY_PATH at the old cuDNN and run bench --compare again",
         .sources = {"pytorch/pytorch#146096", "pytorch/pytorch#81940", "pytorch/pytorch#101529", "liuliu/ccv#225",
                     "BVLC/caffe#3239", "tensorflow/tensorflow#3391", "pytorch/pytorch#188892"}});
    add({.component = "cuDNN settings",
         .attributes = {"env.CUDNN_*"},
         .backend = "cuda",
         .touches = ids::cudnn(),
         .shows = {m::implementation_changed, m::fallback_chosen, m::cannot_run},
         .most = 10,
         .weight = 0.8,
         .effect = "debug settings of cuDNN change which engines it offers",
         .remedy = "unset the variable",
         .sources = {"espnet/espnet#3041"}});
    add({.component = "cuBLAS",
         .attributes = {"cublaslt.version", "cublas.version", "lib.libcublas*", "cublaslt.cudart_version"},
         .backend = "cuda",
         .touches = ids::cublas(),
         .shows = {m::implementation_changed, m::tensor_cores_lost, m::library_replaced, m::cannot_run},
         .most = 4,
         .effect = "another cuBLAS has other heuristics and kernels",
         .remedy = "pin the old cuBLAS, or pin the algorithm",
         .experiment = "point LD_LIBRARY_PATH at the old cuBLAS and run bench --compare again",
         .sources = {"jax-ml/jax#11705", "pytorch/pytorch#119458"}});
    add({.component = "cuBLAS settings",
         .attributes = {"env.CUBLASLT_*", "env.CUBLAS_*", "cublaslt.heuristics_cache"},
         .backend = "cuda",
         .touches = ids::cublas(),
         .shows = {m::implementation_changed, m::cannot_run},
         .most = 8,
         .weight = 0.8,
         .effect = "settings of cuBLAS change which algorithms it takes",
         .remedy = "unset the variable",
         .sources = {"pytorch/pytorch#145130"}});
    add({.component = "CUDA runtime",
         .attributes = {"cuda.runtime_version", "lib.libcudart*", "cuda.compiled_version", "env.CUDA_VERSION",
                        "cuda.device_flags", "cuda.limit_*"},
         .backend = "cuda",
         .touches = {"probe/launch*", "probe/graph_launch*", "probe/cold_*", "training_step/*/stream*"},
         .shows = {m::host_slower, m::launch_synchronous},
         .most = 3,
         .weight = 0.8,
         .effect = "the runtime decides what a launch and a start cost",
         .remedy = "pin the old CUDA runtime",
         .experiment = "run a build with the old CUDA runtime",
         .sources = {"pytorch/pytorch#119458"}});
    add({.component = "build of the program",
         .attributes = {"build.type", "build.optimised", "build.assertions", "build.cxx_flags", "build.cuda_flags",
                        "build.cuda_compiler", "build.compiler", "build.architecture", "lib.libnvrtc*",
                        "lib.libnvJitLink*", "env.NVCC_*"},
         .touches = {"layernorm/*", "training_step/*", "dataloader/*", "probe/launch*", "probe/host_*"},
         .spares = {"layernorm/*/cudnn*"},
         .canary = canary_view::either, // the CPU's canary is compiled with the program
         .most = 7,
         .effect = "our own kernels are as fast as compiler and flags make them",
         .remedy = "build Release with the flags and compiler of the baseline",
         .experiment = "build with the old compiler and flags and run bench --compare again",
         .sources = {"NVIDIA/cutlass#1255", "NVIDIA/cutlass#3563"}});
    return all;
}

/// Links 3 and 6: frameworks and inference, which touch only what they run themselves.
[[nodiscard]] inline std::vector<knowledge> knowledge_of_frameworks() {
    std::vector<knowledge> all;
    all.push_back({.component = "",
                   .attributes = {"python.torch*", "python.triton", "python.jax*", "python.tensorflow*",
                                  "python.onnxruntime*", "python.tensorrt*", "python.vllm", "python.nvidia_*"},
                   .touches = ids::all(),
                   .spares = ids::own(),
                   .most = 20,
                   .effect = "a framework's release changes its kernels, launchers and defaults",
                   .remedy = "pin the old version; the benchmarks without a framework say whether the libraries hold",
                   .experiment = "swap this one package in both directions",
                   .sources = {"pytorch/pytorch#166122", "triton-lang/triton#11373", "jax-ml/jax#27218",
                               "vllm-project/vllm#43153", "microsoft/onnxruntime#22705"}});
    all.push_back({.component = "",
                   .attributes = {"env.TORCH*", "env.PYTORCH*", "env.TF_*", "env.JAX_*", "env.XLA_*", "env.TRITON_*",
                                  "env.VLLM_*", "env.TLLM_*", "env.CT2_*", "env.GGML_*", "env.DISABLE_ADDMM_CUDA_LT"},
                   .touches = ids::all(),
                   .spares = ids::own(),
                   .most = 20,
                   .effect = "a framework's setting changes what it calls and how it allocates",
                   .remedy = "set the variable back",
                   .sources = {"vllm-project/vllm#41158", "tensorflow/tensorflow#5048"}});
    all.push_back({.component = "Python packages",
                   .attributes = {"python.*", "env.PYTHON*"},
                   .touches = ids::all(),
                   .spares = ids::own(),
                   .most = 3,
                   .weight = 0.2,
                   .effect = "a package of the Python environment may do the work of a framework's step",
                   .remedy = "pin the package",
                   .experiment = "swap this one package in both directions",
                   .sources = {}});
    return all;
}

/// Link 4: data pipeline and host.
[[nodiscard]] inline std::vector<knowledge> knowledge_of_link_4() {
    using m = mechanism;
    std::vector<knowledge> all;
    const auto add = [&all](knowledge entry) { all.push_back(std::move(entry)); };
    const std::vector<std::string> host_bound{"dataloader/*", "probe/host_*", "training_step/*/stream*"};
    const std::vector<std::string> cpu_work{"gemm/*", "conv/*", "layernorm/*", "training_step/*", "probe/device_copy*"};
    const std::vector<std::string> all_cpu_work{"gemm/*",          "conv/*",         "layernorm/*",
                                                "training_step/*", "probe/canary_*", "probe/device_copy*"};
    add({.component = "number of threads",
         .attributes = {"env.OMP_NUM_THREADS", "env.OMP_THREAD_LIMIT", "env.OMP_DYNAMIC", "env.MKL_NUM_THREADS",
                        "env.MKL_DYNAMIC", "env.OPENBLAS_NUM_THREADS", "env.BLIS_NUM_THREADS", "env.TBB_NUM_THREADS",
                        "env.NUMEXPR_NUM_THREADS", "env.OPENCV_FOR_THREADS_NUM"},
         .touches = ids::loader(),
         .touches_on_cpu = ids::math(),
         .shows = {m::threads_changed},
         .most = 200,
         .effect = "too few threads leave processors idle, too many wait for each other",
         .remedy = "set it to the processors this process may use, or leave it unset; inside a loader's worker: 1",
         .sources = {"open-mmlab/mmdetection#6867", "liebharc/homr#128", "speechbrain/speechbrain#990",
                     "transferable-samplers/transferable-samplers#12"}});
    add({.component = "placement of threads",
         .attributes = {"env.OMP_PROC_BIND", "env.OMP_PLACES", "env.OMP_WAIT_POLICY", "env.GOMP_*", "env.KMP_*",
                        "env.DALI_AFFINITY_MASK"},
         .touches = ids::loader(),
         .touches_on_cpu = ids::math(),
         .most = 200,
         .effect = "threads bound to one place, or spinning while they wait, take each other's processor",
         .remedy = "set the variable back",
         .sources = {"NVIDIA/DALI#1209"}});
    add({.component = "CPU affinity",
         .attributes = {"cpu.allowed", "cgroup.cpuset"},
         .touches = host_bound,
         .touches_on_cpu = cpu_work,
         .shows = {m::processors_fewer, m::threads_changed},
         .canary = canary_view::either,
         .most = 200,
         .effect = "the process may use other or fewer processors",
         .remedy = "taskset -p shows the mask; give the process its processors back (taskset, cpuset, --cpuset-cpus)",
         .experiment = "run under taskset with the old mask",
         .sources = {"pytorch/pytorch#194605", "NVIDIA/DALI#1209"}});
    add({.component = "CPU quota",
         .attributes = {"cgroup.cpu_quota"},
         .way = turn::down,
         .touches = host_bound,
         .touches_on_cpu = cpu_work,
         .shows = {m::quota_hit, m::processors_fewer, m::threads_changed},
         .canary = canary_view::either,
         .most = 20,
         .effect = "the kernel stops the process for the rest of each period when its quota is spent",
         .remedy = "raise the limit (docker --cpus, Kubernetes limits.cpu); threads must not exceed it",
         .experiment = "run without the quota",
         .sources = {"NVIDIA/nvidia-docker#757", "kserve/kserve#1031", "springfall2008/batpred#4771"}});
    add({.component = "CPU quota is spent",
         .attributes = {"cgroup.throttled_periods", "cgroup.throttled_ms"},
         .way = turn::up,
         .at_least = 5,
         .touches = host_bound,
         .touches_on_cpu = cpu_work,
         .shows = {m::quota_hit},
         .canary = canary_view::either,
         .most = 20,
         .symptom = true,
         .effect = "the kernel held the process back because its quota was spent",
         .remedy = "raise the limit, or use fewer threads",
         .experiment = "run without the quota",
         .sources = {"kserve/kserve#1031"}});
    add({.component = "usable processors",
         .attributes = {"cpu.usable", "cpu.logical", "cpu.cores", "cpu.smt", "cpu.sockets"},
         .touches = host_bound,
         .touches_on_cpu = cpu_work,
         .shows = {m::processors_fewer, m::threads_changed},
         .canary = canary_view::either,
         .most = 100,
         .symptom = true,
         .effect = "the process may use fewer processors",
         .remedy = "look at affinity, cpuset and quota",
         .experiment = "give the processors back and run bench --compare again",
         .sources = {"springfall2008/batpred#4771"}});
    add({.component = "processor",
         .attributes = {"cpu.model", "cpu.math_flags", "cpu.family", "cpu.stepping", "cpu.vendor", "cpu.hypervisor"},
         .touches = ids::host(),
         .touches_on_cpu = ids::all(),
         .shows = {m::instruction_set_lower, m::canary_slower, m::cannot_run},
         .canary = canary_view::either,
         .most = 10,
         .effect = "another processor, or another view of it by the hypervisor, runs other code",
         .remedy = "host-bound results of two processors are not compared; make a baseline for this one",
         .experiment = "run on the old processor",
         .sources = {"google/gvisor#14526", "conda/conda#2476"}});
    knowledge work{.component = "other work on these processors",
                   .attributes = {"load.pressure_cpu", "load.one_minute"},
                   .way = turn::up,
                   .at_least = 2,
                   .at_least_share = 0.5,
                   .backend = "cuda",
                   .touches = {"dataloader/*", "probe/host_*", "probe/launch*"},
                   .shows = {m::cpu_contention},
                   .canary = canary_view::slowed,
                   .most = 20,
                   .weight = 0.5,
                   .symptom = true,
                   .effect = "other processes take processor time",
                   .remedy = "look at top; measure when the machine is quiet",
                   .experiment = "stop the other work and run bench --compare again",
                   .sources = {}};
    add(work);
    work.backend = "cpu";
    work.touches_on_cpu = all_cpu_work;
    work.shows.push_back(m::canary_slower); // the canary runs on these processors too
    add(work);
    knowledge memory{.component = "host memory",
                     .attributes = {"load.pressure_memory", "memory.swap_used_bytes"},
                     .way = turn::up,
                     .at_least_share = 0.5,
                     .touches = {"dataloader/*", "probe/h2d_pageable*"},
                     .shows = {m::memory_pressure, m::out_of_memory},
                     .most = 20,
                     .symptom = true,
                     .effect = "short of memory, the host drops its page cache or swaps",
                     .remedy = "free memory or raise the limit",
                     .experiment = "free memory and run bench --compare again",
                     .sources = {"NVIDIA/DALI#1415"}};
    add(memory);
    memory.attributes = {"cgroup.memory_limit_bytes", "cgroup.memory_high_bytes", "memory.available_bytes"};
    memory.way = turn::down;
    add(memory);
    knowledge disk{.component = "storage",
                   .attributes = {"data.*"},
                   .at_least_share = 0.5,
                   .touches = ids::loader(),
                   .shows = {m::read_slower},
                   .most = 20,
                   .weight = 0.5,
                   .symptom = true,
                   .effect = "reading from slower or busy storage",
                   .remedy = "put the data on a local disk, or warm the page cache",
                   .experiment = "run with the data in /dev/shm",
                   .sources = {"NVIDIA/DALI#1415", "NVIDIA/DALI#259", "huggingface/neuralcoref#234"}};
    add(disk);
    disk.attributes = {"load.pressure_io"};
    disk.way = turn::up;
    add(disk);
    add({.component = "/dev/shm",
         .attributes = {"memory.shm_bytes", "memory.shm_free_bytes"},
         .way = turn::down,
         .at_least_share = 0.5,
         .touches = ids::loader(),
         .shows = {m::cannot_run, m::out_of_memory},
         .most = 5,
         .effect = "workers hand their batches over through shared memory; with too little they fail",
         .remedy = "docker run --shm-size, or mount a larger /dev/shm",
         .experiment = "run with a larger /dev/shm",
         .sources = {"pytorch/pytorch#5040", "pytorch/pytorch#1355", "pytorch/pytorch#16979"}});
    add({.component = "locked memory limit",
         .attributes = {"process.limit_memlock_bytes"},
         .way = turn::any,
         .touches = {"probe/h2d_pinned*", "probe/d2h_pinned*", "dataloader/*/pinned*"},
         .shows = {m::cannot_run, m::out_of_memory},
         .most = 3,
         .effect = "pinned memory may be refused",
         .remedy = "ulimit -l unlimited",
         .experiment = "raise the limit and run bench --compare again",
         .sources = {"rapidsai/dask-cuda#98"}});
    add({.component = "NUMA placement",
         .attributes = {"numa.pages", "numa.allowed", "gpu.numa_node", "gpu.near_cpus", "gpu.host_numa_node",
                        "numa.nodes", "numa.distances", "kernel.numa_balancing", "memory.zone_reclaim"},
         .touches = {"probe/h2d_*", "probe/d2h_*", "dataloader/*", "probe/host_*"},
         .shows = {m::pages_remote},
         .canary = canary_view::either,
         .most = 3,
         .effect = "memory or threads on the socket far from the GPU; page scanning adds stalls",
         .remedy = "bind the process to the GPU's node: numactl --cpunodebind --membind",
         .experiment = "bind with numactl and run bench --compare again",
         .sources = {"NVIDIA/TensorRT-LLM#18117", "deepseek-ai/DeepEP#624", "NVIDIA/nccl-tests#74"}});
    add({.component = "CPU idle states",
         .attributes = {"cpu.idle_driver", "cpu.idle_governor", "cpu.idle_states"},
         .touches = {"probe/host_*", "probe/launch*", "dataloader/*"},
         .canary = canary_view::either,
         .most = 40,
         .effect = "waking from a deep idle state takes 100 us and more",
         .remedy = "cpupower idle-set -D 10, or idle=poll while measuring",
         .experiment = "disable deep idle states and run bench --compare again",
         .sources = {"google/gvisor#14526"}});
    add({.component = "CPU frequency",
         .attributes = {"cpu.governor", "cpu.energy_preference", "cpu.turbo", "cpu.scaling_max_khz",
                        "cpu.scaling_min_khz", "cpu.scaling_driver"},
         .touches = {"dataloader/*", "probe/host_*", "probe/launch*"},
         .touches_on_cpu = all_cpu_work,
         .always = {"probe/canary_fma*"}, // it touches that of the CPU alone
         .shows = {m::canary_slower},
         .canary = canary_view::either,
         .most = 4,
         .effect = "governor and turbo decide the processor's clock",
         .remedy = "cpupower frequency-set -g performance",
         .experiment = "set the governor back and run bench --compare again",
         .sources = {}});
    add({.component = "huge pages",
         .attributes = {"memory.thp", "memory.thp_defrag", "memory.huge_pages"},
         .touches = {"dataloader/*", "probe/h2d_pageable*"},
         .touches_on_cpu = {"gemm/*", "probe/device_copy*"},
         .canary = canary_view::either,
         .most = 1.3,
         .weight = 0.5,
         .effect = "page size changes what large buffers on the host cost",
         .remedy = "set transparent_hugepage back",
         .experiment = "set it back and run bench --compare again",
         .sources = {}});
    add({.component = "allocator",
         .attributes = {"env.MALLOC_*", "env.TCMALLOC_*", "env.GLIBC_TUNABLES", "lib.libtcmalloc*", "lib.libjemalloc*",
                        "lib.libmimalloc*", "env.TBB_MALLOC*", "process.libc"},
         .touches = ids::loader(),
         .most = 3,
         .weight = 0.7,
         .effect = "the allocator decides what a batch's memory costs",
         .remedy = "set the variable back, or preload the old allocator",
         .sources = {}});
    add({.component = "JPEG decoder",
         .attributes = {"lib.libjpeg*", "lib.libturbojpeg*", "python.pillow*"},
         .touches = {"dataloader/jpeg*"},
         .shows = {m::decode_slower},
         .most = 4,
         .effect = "libjpeg without SIMD decodes at a half or a third of libjpeg-turbo's speed",
         .remedy = "install libjpeg-turbo and look at the path that is loaded",
         .experiment = "load the old library by LD_LIBRARY_PATH",
         .sources = {"python-pillow/Pillow#4705", "pytorch/vision#6563", "torch/image#62"}});
    add({.component = "math library of the host",
         .attributes = {"lib.libmkl*", "lib.libopenblas*", "lib.libblis*", "lib.libgomp*", "lib.libomp*",
                        "lib.libiomp5*", "lib.libtbb*", "env.MKL_*", "env.OPENBLAS_*", "env.ATEN_CPU_CAPABILITY"},
         .touches = {"gemm/*", "conv/*", "layernorm/*", "training_step/*", "dataloader/*"},
         .most = 3,
         .weight = 0.7,
         .effect = "threading and math runtimes decide what a parallel region costs",
         .remedy = "pin the library, set the variable back",
         .experiment = "load the old library by LD_LIBRARY_PATH",
         .sources = {"conda/conda#2476"}});
    add({.component = "Linux kernel",
         .attributes = {"kernel.release", "kernel.version", "kernel.parameters", "os.version", "os.name",
                        "kernel.clock_source", "kernel.*", "memory.swappiness", "memory.overcommit"},
         .touches = ids::host(),
         .canary = canary_view::either,
         .most = 2,
         .weight = 0.4,
         .effect = "scheduler, mitigations and drivers of the kernel change host-bound work",
         .remedy = "boot the old kernel",
         .experiment = "boot the old kernel and run bench --compare again",
         .sources = {"docker-library/python#575"}});
    return all;
}

/// What says where something lies or who somebody is, and does nothing to a benchmark.
[[nodiscard]] inline knowledge harmless() {
    return {.component = "",
            .attributes = {"env.PATH", "env.CUDA_HOME", "env.CUDA_PATH", "process.nvcc", "env.*_VERSION",
                           "env.NVIDIA_REQUIRE_CUDA", "env.NVIDIA_PRODUCT_NAME", "env.NVIDIA_BUILD_ID", "machine.id",
                           "machine.host_name", "kernel.boot", "scheduler.*", "build.plumbline", "build.git",
                           "process.limit_*", "cgroup.version", "cgroup.path", "cgroup.pids_limit",
                           "process.*_captured"},
            .touches = {},
            .effect = "names a place or a version and does no work"};
}

/// Everything else that changed: it may matter, and nobody has said how.
[[nodiscard]] inline knowledge unknown_effect() {
    return {.component = "",
            .attributes = {"*"},
            .touches = ids::all(),
            .canary = canary_view::either,
            .weight = 0.05,
            .effect = "nothing is known about what this does",
            .remedy = "set it back and run bench --compare again",
            .experiment = "set it back and run bench --compare again"};
}

} // namespace detail

/// What is known, most particular first; the last entry fits everything. A user's own entries go in front:
/// json/knowledge.hpp.
[[nodiscard]] inline std::vector<knowledge> built_in_knowledge() {
    std::vector<knowledge> all{detail::harmless()};
    for (auto list : {detail::knowledge_of_link_1(), detail::knowledge_of_link_2(), detail::knowledge_of_link_4(),
                      detail::knowledge_of_frameworks()}) {
        all.insert(all.end(), list.begin(), list.end());
    }
    all.push_back(detail::unknown_effect());
    return all;
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
