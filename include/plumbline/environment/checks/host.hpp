// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_CHECKS_HOST_HPP
#define PLUMBLINE_ENVIRONMENT_CHECKS_HOST_HPP

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/environment/cgroup.hpp"
#include "plumbline/environment/checks/support.hpp"
#include "plumbline/environment/libraries.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::checks {

/// This process may run on CPUs near the GPU.
[[nodiscard]] inline check_outcome numa_local(const check_context& on) {
    const auto near_gpu = known_text(on, "gpu.near_cpus"), allowed = known_text(on, "cpu.allowed");
    if (!near_gpu) return skipped(why_unknown(on, "gpu.near_cpus"));
    if (!allowed) return skipped(why_unknown(on, "cpu.allowed"));
    const auto local = parse_id_list(*near_gpu), mine = parse_id_list(*allowed);
    std::vector<int> both;
    std::set_intersection(local.begin(), local.end(), mine.begin(), mine.end(), std::back_inserter(both));
    const std::string seen = "allowed " + *allowed + ", near the GPU " + *near_gpu;
    const std::string expected = "CPUs of the GPU's own NUMA node";
    if (local.empty()) return skipped("gpu.near_cpus: no list");
    if (!both.empty()) return passed(seen, expected);
    return warned(seen, expected, "start with taskset -c " + *near_gpu + " (or numactl --cpunodebind, --membind)");
}

/// No CPU quota below the number of CPUs the process sees: threads started by that number would be stopped in turn.
[[nodiscard]] inline check_outcome cpu_quota_sufficient(const check_context& on) {
    const auto allowed = static_cast<std::int64_t>(allowed_cpus(*on.machine).size());
    const auto quota = known<double>(on, "cgroup.cpu_quota");
    const auto throttled = known_int(on, "cgroup.throttled_periods");
    if (!quota) {
        const auto text = known_text(on, "cgroup.cpu_quota");
        return text ? passed(*text, "no quota, or one not below the CPUs allowed")
                    : skipped(why_unknown(on, "cgroup.cpu_quota"));
    }
    const std::string seen = environment::detail::shown(*quota) + " CPUs of " + std::to_string(allowed) + " allowed" +
                             (throttled ? ", stopped in " + std::to_string(*throttled) + " periods so far" : "");
    const std::string expected = "no quota, or one not below the CPUs allowed";
    if (*quota >= static_cast<double>(allowed)) return passed(seen, expected);
    const auto usable = known_int(on, "cpu.usable").value_or(1);
    return warned(seen, expected,
                  "start no more than " + std::to_string(usable) +
                      " threads (OMP_NUM_THREADS), or raise the limit (docker --cpus, resources.limits.cpu)");
}

/// Enough shared memory for workers that hand batches over.
[[nodiscard]] inline check_outcome shared_memory_sufficient(const check_context& on) {
    const auto total = known_number(on, "memory.shm_bytes"), free = known_number(on, "memory.shm_free_bytes");
    if (!total) return skipped(why_unknown(on, "memory.shm_bytes"));
    constexpr double gib = 1024.0 * 1024 * 1024;
    const std::string seen =
        environment::detail::shown_bytes(*total) + (free ? ", free " + environment::detail::shown_bytes(*free) : "");
    if (*total >= gib && free.value_or(*total) >= gib / 2) return passed(seen, "1 GiB or more, half of it free");
    return warned(seen, "1 GiB or more, half of it free",
                  "start the container with --shm-size=8g or --ipc=host (Kubernetes: emptyDir with medium Memory)");
}

/// Locked memory is allowed: NCCL over InfiniBand and GPUDirect need it.
[[nodiscard]] inline check_outcome memlock_sufficient(const check_context& on) {
    const auto unlimited = known_text(on, "process.limit_memlock_bytes");
    const auto limit = known_int(on, "process.limit_memlock_bytes");
    if (unlimited) return passed(*unlimited, "unlimited, or 64 MiB and more");
    if (!limit) return skipped(why_unknown(on, "process.limit_memlock_bytes"));
    const std::string seen = environment::detail::shown_bytes(static_cast<double>(*limit));
    if (*limit >= std::int64_t{64} << 20) return passed(seen, "unlimited, or 64 MiB and more");
    // A single GPU talks to nobody over InfiniBand.
    if (known_int(on, "gpu.count").value_or(0) < 2) return passed(seen + ", fewer than two GPUs", "no limit is needed");
    return warned(seen, "unlimited, or 64 MiB and more", "ulimit -l unlimited (docker --ulimit memlock=-1)");
}

/// Transparent huge pages are available to programs that ask for them.
[[nodiscard]] inline check_outcome huge_pages_available(const check_context& on) {
    const auto mode = known_text(on, "memory.thp");
    if (!mode) return skipped(why_unknown(on, "memory.thp"));
    const auto reserved = known_int(on, "memory.huge_pages").value_or(0);
    const std::string seen = *mode + ", " + std::to_string(reserved) + " reserved";
    if (*mode != "never") return passed(seen, "madvise or always");
    return warned(seen, "madvise or always", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
}

/// The CPU clock follows the load at once.
[[nodiscard]] inline check_outcome cpu_governor_fast(const check_context& on) {
    const auto governor = known_text(on, "cpu.governor");
    if (!governor) return skipped(why_unknown(on, "cpu.governor"));
    const auto driver = known_text(on, "cpu.scaling_driver").value_or("");
    // With hardware-managed states (intel_pstate, amd-pstate-epp) "powersave" is the ordinary, load-following one.
    const bool managed = driver.find("pstate") != std::string::npos;
    const std::string seen = *governor + (driver.empty() ? "" : " (" + driver + ")");
    if (governor->find("powersave") == std::string::npos || managed) return passed(seen, "not powersave");
    return warned(seen, "performance or schedutil", "cpupower frequency-set -g performance");
}

/// Nobody else keeps the CPUs busy: benchmarks of the CPU and all that waits for the host would be timed beside them.
[[nodiscard]] inline check_outcome cpu_left_alone(const check_context& on) {
    const auto load = known_number(on, "load.one_minute"), waiting = known_number(on, "load.pressure_cpu");
    const auto usable = known_number(on, "cpu.usable");
    if (!waiting && (!load || !usable)) return skipped(why_unknown(on, "load.one_minute"));
    std::string seen;
    if (waiting) seen = "work waited for a CPU " + environment::detail::shown(*waiting) + " % of the last 10 s";
    if (load && usable) {
        seen += (seen.empty() ? "load " : ", load ") + environment::detail::shown(*load) + " on " +
                environment::detail::shown(*usable) + " CPUs";
    }
    const std::string expected = "waiting below 10 % (where that is not told: a load below half of the CPUs)";
    if (waiting ? *waiting < 10 : *load < *usable / 2) return passed(seen, expected);
    return warned(seen, expected, "wait until the other work (a build, a job; top shows it) has ended");
}

/// The time of the host is read from the CPU, not from a slow device.
[[nodiscard]] inline check_outcome clock_source_fast(const check_context& on) {
    const auto source = known_text(on, "kernel.clock_source");
    if (!source) return skipped(why_unknown(on, "kernel.clock_source"));
    const std::string expected = "tsc, kvm-clock, arch_sys_counter or the like";
    if (*source != "hpet" && *source != "acpi_pm" && *source != "jiffies") return passed(*source, expected);
    return warned(*source, expected, "dmesg | grep -i tsc says why; boot with tsc=reliable if the hardware is sound");
}

namespace detail {

/// A variable that, when set to anything but its harmless values, makes a program slower or another one.
struct debug_variable {
    const char* name;
    const char* effect;
    bool fails; ///< no baseline may be taken with it; else it is a warning
};

inline constexpr debug_variable debug_variables[] = {
    {"CUDA_LAUNCH_BLOCKING", "every launch waits for its kernel", true},
    {"CUDA_FORCE_PTX_JIT", "kernels are compiled from PTX", true},
    {"CUDA_FORCE_JIT", "kernels are compiled from PTX", true},
    {"CUDA_CACHE_DISABLE", "compiled kernels are not kept", true},
    {"CUDA_INJECTION64_PATH", "a profiler or tool is attached", true},
    {"NVTX_INJECTION64_PATH", "a profiler is attached", true},
    {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "the GPU runs with a debugger's trap handler", true},
    {"CUDA_DEVICE_WAITS_ON_EXCEPTION", "the GPU runs with a debugger's trap handler", true},
    {"PYTORCH_NO_CUDA_MEMORY_CACHING", "every allocation goes to the driver", true},
    {"TORCH_USE_CUDA_DSA", "device-side assertions", true},
    {"CUDNN_LOGLEVEL_DBG", "cuDNN logs", true},
    {"CUDNN_LOGINFO_DBG", "cuDNN logs", true},
    {"CUBLAS_LOGINFO_DBG", "cuBLAS logs", true},
    {"CUBLASLT_LOG_LEVEL", "cuBLASLt logs", true},
    {"CUDNN_FRONTEND_LOG_INFO", "cuDNN's frontend logs", false},
    {"ONEDNN_VERBOSE", "oneDNN logs", true},
    {"DNNL_VERBOSE", "oneDNN logs", true},
    {"CUDA_LOG_FILE", "the driver logs", false},
    {"TORCH_SHOW_CPP_STACKTRACES", "stack traces are collected", false},
};

/// Whether a value switches something off. Levels up to 1 of a log are errors only.
[[nodiscard]] inline bool harmless(const std::string& name, const std::string& value) {
    if (value.empty() || value == "0") return true;
    return name.find("LOG_LEVEL") != std::string::npos || name.find("LOGLEVEL") != std::string::npos ? value == "1"
                                                                                                     : false;
}

} // namespace detail

/// No debugging aid was left switched on: variables, sanitizers, profilers.
[[nodiscard]] inline check_outcome no_debug_aids(const check_context& on) {
    std::vector<std::string> stopping, noted, names;
    const auto find = [&](const std::string& name, const char* effect, bool fails) {
        const auto value = variable(on, name);
        if (!value || detail::harmless(name, *value)) return;
        (fails ? stopping : noted).push_back(name + " is set: " + effect);
        names.push_back(name);
    };
    for (const auto& known : detail::debug_variables) find(known.name, known.effect, known.fails);
    if (const auto nccl = variable(on, "NCCL_DEBUG"); nccl && (*nccl == "TRACE" || *nccl == "INFO")) {
        (*nccl == "TRACE" ? stopping : noted).push_back("NCCL_DEBUG=" + *nccl + ": NCCL logs");
        names.emplace_back("NCCL_DEBUG");
    }
    std::vector<std::string> tools;
    for (const mapped_library& library : mapped_libraries(*on.machine)) {
        for (const char* tool : {"libasan", "libtsan", "libsanitizer", "libToolsInjection", "libcuda-gdb"}) {
            if (library.name.rfind(tool, 0) == 0) tools.push_back(library.name + " is loaded: a sanitizer or profiler");
        }
    }
    std::string remedy = names.empty() ? std::string() : "unset " + environment::detail::join(names, " ");
    if (!tools.empty()) {
        remedy += std::string(remedy.empty() ? "" : "; ") + "run without the sanitizer or profiler";
        stopping.insert(stopping.end(), tools.begin(), tools.end());
    }
    const std::string expected = "no debugging variable, sanitizer or profiler";
    stopping.insert(stopping.end(), noted.begin(), noted.end());
    if (stopping.empty()) return passed("none", expected);
    const std::string seen = environment::detail::join(stopping, "; ");
    return stopping.size() > noted.size() ? failed(seen, expected, remedy) : warned(seen, expected, remedy);
}

/// What a precision setting declares is what the library does.
[[nodiscard]] inline check_outcome tf32_as_declared(const check_context& on) {
    const auto override_value = variable(on, "NVIDIA_TF32_OVERRIDE");
    const auto effective = known_flag(on, "cublas.tf32_effective");
    const std::string expected = "tf32 work uses tensor cores, and nothing overrides it";
    const std::string seen = "NVIDIA_TF32_OVERRIDE " + override_value.value_or("not set") + ", measured " +
                             (effective ? (*effective ? "tf32" : "full fp32") : "not measured");
    const std::string remedy = "unset NVIDIA_TF32_OVERRIDE, unless full fp32 is on purpose";
    if (override_value && *override_value == "0") return warned(seen, expected, remedy);
    if (effective && !*effective) return warned(seen, expected, "look for a math mode set by the program or a wrapper");
    if (!override_value && !effective) return skipped("nothing overrides TF32, and no probe of it was run");
    return passed(seen, expected);
}

/// A framework installed beside this program was built for GPUs (pytorch/pytorch#32369).
[[nodiscard]] inline check_outcome framework_built_for_gpu(const check_context& on) {
    const auto torch = known_text(on, "python.torch");
    if (!torch) return skipped(why_unknown(on, "python.torch"));
    const auto cuda = known_text(on, "python.torch_cuda");
    const std::string seen = "torch " + *torch + ", CUDA " + cuda.value_or("none");
    const std::string expected = "a build of PyTorch with CUDA, where there is a GPU";
    if (!on.cuda_expected || (cuda && *cuda != "none")) return passed(seen, expected);
    return warned(seen, expected,
                  "install the CUDA build: pip install torch --index-url of pytorch.org for your CUDA version");
}

/// Checks of the host, the container's limits, and settings left behind.
[[nodiscard]] inline std::vector<check> of_host() {
    constexpr auto stop = consequence::precondition;
    return {{"debug.none_left", 1, stop, extent::quick, no_debug_aids},
            {"precision.tf32", 2, stop, extent::quick, tf32_as_declared},
            {"numa.local", 4, stop, extent::quick, numa_local},
            {"cpu.quota", 4, stop, extent::quick, cpu_quota_sufficient},
            {"cpu.governor", 4, stop, extent::quick, cpu_governor_fast},
            {"cpu.left_alone", 4, stop, extent::quick, cpu_left_alone},
            {"kernel.clock_source", 4, stop, extent::quick, clock_source_fast},
            {"memory.shared", 4, stop, extent::quick, shared_memory_sufficient},
            {"memory.locked", 4, stop, extent::quick, memlock_sufficient},
            {"memory.huge_pages", 4, stop, extent::quick, huge_pages_available},
            {"framework.gpu_build", 3, stop, extent::quick, framework_built_for_gpu}};
}

} // namespace environment::checks

PLUMBLINE_NAMESPACE_END

#endif
