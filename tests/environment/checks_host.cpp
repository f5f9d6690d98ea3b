// SPDX-License-Identifier: Apache-2.0
#include "check_scenarios.hpp"

using namespace plumbline_tests;

namespace {

void nothing(world&) {}

} // namespace

TEST_CASE("checks of the host pass on a healthy server and fail for one reason each") {
    const std::vector<scenario> scenarios{
        {"debug.none_left", "clean", check_status::ok, nothing, "none"},
        {"debug.none_left", "blocking launches", check_status::fail,
         [](world& w) { w.machine.set("CUDA_LAUNCH_BLOCKING", "1"); }, "unset CUDA_LAUNCH_BLOCKING"},
        {"debug.none_left", "set, but off", check_status::ok,
         [](world& w) { w.machine.set("CUDA_LAUNCH_BLOCKING", "0").set("CUBLASLT_LOG_LEVEL", "1"); }, "none"},
        {"debug.none_left", "cuDNN logs", check_status::fail,
         [](world& w) { w.machine.set("CUDNN_LOGLEVEL_DBG", "2"); }, "cuDNN logs"},
        {"debug.none_left", "a profiler", check_status::fail,
         [](world& w) { w.machine.set("CUDA_INJECTION64_PATH", "/opt/nsys/libToolsInjection64.so"); }, "profiler"},
        {"debug.none_left", "a sanitizer is mapped", check_status::fail,
         [](world& w) { w.machine.file("/proc/self/maps", "7f00-7f10 r-xp 0 08:02 2 /usr/lib/libasan.so.8\n"); },
         "libasan"},
        {"debug.none_left", "NCCL traces", check_status::fail, [](world& w) { w.machine.set("NCCL_DEBUG", "TRACE"); },
         "NCCL_DEBUG=TRACE"},
        {"debug.none_left", "NCCL talks", check_status::warn, [](world& w) { w.machine.set("NCCL_DEBUG", "INFO"); },
         "unset NCCL_DEBUG"},
        {"debug.none_left", "NCCL warns only", check_status::ok, [](world& w) { w.machine.set("NCCL_DEBUG", "WARN"); },
         "none"},
        {"precision.tf32", "effective", check_status::ok, nothing, "measured tf32"},
        {"precision.tf32", "overridden", check_status::warn,
         [](world& w) { w.machine.set("NVIDIA_TF32_OVERRIDE", "0"); }, "unset NVIDIA_TF32_OVERRIDE"},
        {"precision.tf32", "off for no visible reason", check_status::warn,
         [](world& w) { w.said["cublas.tf32_effective"] = false; }, "full fp32"},
        {"precision.tf32", "not measured", check_status::skipped,
         [](world& w) { w.said.erase("cublas.tf32_effective"); }, "no probe"},
        {"numa.local", "near", check_status::ok, nothing, "near the GPU 0-3"},
        {"numa.local", "bound to the other socket", check_status::warn,
         [](world& w) { w.machine.file("/proc/self/status", "Cpus_allowed_list:\t4-7\n"); }, "taskset -c 0-3"},
        {"cpu.quota", "none", check_status::ok, nothing, "unlimited"},
        {"cpu.quota", "two of eight", check_status::warn,
         [](world& w) {
             w.machine.file("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
             w.machine.file("/sys/fs/cgroup/user.slice/cpu.stat",
                            "nr_periods 100\nnr_throttled 40\nthrottled_usec 9\n");
         },
         "no more than 2 threads"},
        {"cpu.quota", "as many as allowed", check_status::ok,
         [](world& w) { w.machine.file("/sys/fs/cgroup/user.slice/cpu.max", "800000 100000\n"); }, "8 CPUs of 8"},
        {"cpu.left_alone", "by its load", check_status::ok,
         [](world& w) { w.machine.file("/proc/loadavg", "3.9 1 1 1/99 7\n"); }, "load 3.9 on 8 CPUs"},
        {"cpu.left_alone", "busy by its load", check_status::warn,
         [](world& w) { w.machine.file("/proc/loadavg", "4.0 1 1 1/99 7\n"); }, "has ended"},
        {"cpu.left_alone", "a load of a minute ago that nobody waits for", check_status::ok,
         [](world& w) {
             w.machine.file("/proc/loadavg", "9.5 1 1 1/99 7\n");
             w.machine.file("/proc/pressure/cpu", "some avg10=9.99 avg60=80.00 avg300=0.00 total=1\n");
         },
         "waited for a CPU 9.99 %"},
        {"cpu.left_alone", "work that waits", check_status::warn,
         [](world& w) {
             w.machine.file("/proc/loadavg", "0.1 1 1 1/99 7\n");
             w.machine.file("/proc/pressure/cpu", "some avg10=10.00 avg60=0.00 avg300=0.00 total=1\n");
         },
         "10 % of the last 10 s"},
        {"cpu.left_alone", "nothing is told", check_status::skipped,
         [](world& w) { w.machine.file("/proc/loadavg", "\n").file("/proc/pressure/cpu", "\n"); }, "load.one_minute"},
        {"cpu.governor", "performance", check_status::ok, nothing, "performance"},
        {"cpu.governor", "powersave of intel_pstate", check_status::ok,
         [](world& w) {
             for (const char* cpu : {"cpu0", "cpu1"}) {
                 w.machine.file(std::string("/sys/devices/system/cpu/") + cpu + "/cpufreq/scaling_governor",
                                "powersave\n");
             }
         },
         "intel_pstate"},
        {"cpu.governor", "powersave of acpi-cpufreq", check_status::warn,
         [](world& w) {
             w.machine.file("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
             for (const char* cpu : {"cpu0", "cpu1"}) {
                 w.machine.file(std::string("/sys/devices/system/cpu/") + cpu + "/cpufreq/scaling_driver",
                                "acpi-cpufreq\n");
             }
         },
         "performance,powersave"},
        {"kernel.clock_source", "tsc", check_status::ok, nothing, "tsc"},
        {"kernel.clock_source", "hpet", check_status::warn,
         [](world& w) { w.machine.file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"); },
         "hpet"},
        {"memory.shared", "large", check_status::ok, nothing, "8 GiB"},
        {"memory.shared", "what a container gets by default", check_status::warn,
         [](world& w) {
             w.machine.host.space_of = [](const fs::path&) { return env::file_system_space{64u << 20, 64u << 20}; };
         },
         "--shm-size"},
        {"memory.shared", "full", check_status::warn,
         [](world& w) {
             w.machine.host.space_of = [](const fs::path&) {
                 return env::file_system_space{std::uint64_t{8} << 30, 1u << 20};
             };
         },
         "free 1 MiB"},
        {"memory.locked", "unlimited", check_status::ok, nothing, "unlimited"},
        {"memory.locked", "64 KiB", check_status::warn,
         [](world& w) {
             w.machine.file("/proc/self/limits",
                            "Max locked memory         65536                65536                bytes\n");
         },
         "memlock=-1"},
        {"memory.huge_pages", "madvise", check_status::ok, nothing, "madvise"},
        {"memory.huge_pages", "never", check_status::warn,
         [](world& w) { w.machine.file("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"); },
         "never"},
        {"framework.gpu_build", "CUDA build", check_status::ok, nothing, "CUDA 13.0"},
        {"framework.gpu_build", "CPU build", check_status::warn,
         [](world& w) { w.said["python.torch_cuda"] = std::string("none"); }, "CUDA none"},
    };
    run_scenarios(scenarios, env::checks::of_host());
}
