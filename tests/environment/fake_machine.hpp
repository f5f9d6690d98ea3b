// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_ENVIRONMENT_FAKE_MACHINE_HPP
#define PLUMBLINE_TESTS_ENVIRONMENT_FAKE_MACHINE_HPP

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "fake_nvml.hpp"
#include "plumbline/environment/collect.hpp"

namespace plumbline_tests {

namespace fs = std::filesystem;
namespace env = plumbline::environment;

/// A folder that is gone with the object.
class temporary_folder {
public:
    temporary_folder() {
        std::string pattern = (fs::temp_directory_path() / "plumbline_env_XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
        // The real path: what is compared with it has its links resolved.
        path_ = fs::canonical(pattern);
    }
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;
    ~temporary_folder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    [[nodiscard]] const fs::path& path() const noexcept { return path_; }

private:
    fs::path path_;
};

/// A made-up machine: a tree of files under a temporary root, an environment and an NVML. Starts empty; the functions
/// below build the usual kinds.
struct fake_machine {
    temporary_folder folder;
    std::shared_ptr<fake_nvml> nvml; ///< outlives the function table in host, whose last owner calls its shutdown
    env::host host;

    fake_machine() {
        host.root = folder.path();
        host.space_of = [](const fs::path&) {
            return env::file_system_space{std::uint64_t{8} << 30, std::uint64_t{8} << 30};
        };
    }

    fake_machine& file(const std::string& path, const std::string& text) {
        const fs::path place = folder.path() / fs::path(path).relative_path();
        fs::create_directories(place.parent_path());
        std::ofstream(place, std::ios::binary) << text;
        return *this;
    }
    fake_machine& dir(const std::string& path) {
        fs::create_directories(folder.path() / fs::path(path).relative_path());
        return *this;
    }
    fake_machine& without(const std::string& path) {
        fs::remove_all(folder.path() / fs::path(path).relative_path());
        return *this;
    }
    fake_machine& set(const std::string& name, const std::string& value) {
        host.variables[name] = value;
        return *this;
    }
    /// Gives it GPUs that NVML shows, and the CUDA backend.
    fake_machine& gpus(std::vector<fake_gpu> list) {
        host.nvml.reset();
        nvml = std::make_shared<fake_nvml>(std::move(list));
        return restart_nvml();
    }
    fake_machine& restart_nvml() {
        host.backend = "cuda";
        auto loaded = nvml->start();
        host.nvml = loaded.api;
        host.nvml_problem = loaded.problem;
        host.nvml_code = loaded.code;
        return *this;
    }
    [[nodiscard]] plumbline::result::fingerprint fingerprint() const { return env::collect(host); }
};

/// Host files of a two-socket server: what any Linux shows, bare metal included.
inline void add_server_files(fake_machine& m) {
    std::string cpuinfo;
    for (int cpu = 0; cpu < 8; ++cpu) {
        cpuinfo +=
            "processor\t: " + std::to_string(cpu) + "\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n" +
            "model name\t: Intel(R) Xeon(R) Platinum 8480C\nstepping\t: 8\nmicrocode\t: 0x2b000590\n" +
            "cpu MHz\t\t: 2000.000\nphysical id\t: " + std::to_string(cpu / 4) +
            "\ncore id\t\t: " + std::to_string(cpu % 4 / 2) + "\nflags\t\t: fpu avx avx2 avx512f amx_bf16 fma\n\n";
    }
    m.file("/proc/cpuinfo", cpuinfo);
    m.file("/proc/self/status",
           "Name:\tbench\nThreads:\t4\nNoNewPrivs:\t0\nSeccomp:\t0\n"
           "Speculation_Store_Bypass:\tvulnerable\nCpus_allowed_list:\t0-7\nMems_allowed_list:\t0-1\n");
    m.file("/proc/self/limits", "Limit                     Soft Limit           Hard Limit           Units     \n"
                                "Max processes             513924               513924               processes \n"
                                "Max open files            1024                 524288               files     \n"
                                "Max locked memory         unlimited            unlimited            bytes     \n");
    m.file("/proc/self/cgroup", "0::/user.slice\n");
    m.file("/proc/self/mountinfo", "24 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw\n"
                                   "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
    m.file("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
    m.file("/sys/fs/cgroup/user.slice/cpu.stat", "usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
    m.file("/sys/fs/cgroup/user.slice/memory.max", "max\n");
    m.file("/proc/self/maps", "55a0-55b0 r-xp 00000000 08:02 1 /usr/bin/bench\n");
    m.file("/proc/meminfo",
           "MemTotal:       2113412345 kB\nMemAvailable:   2000000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
    m.file("/proc/sys/kernel/osrelease", "6.8.0-31-generic\n");
    m.file("/proc/sys/kernel/version", "#31-Ubuntu SMP\n");
    m.file("/proc/sys/kernel/hostname", "gpu-node-17.example.com\n");
    m.file("/proc/sys/kernel/random/boot_id", "8c4ff2f5-1b1c-4d3b-9c7a-6f2b1a0c9d8e\n");
    m.file("/proc/sys/kernel/numa_balancing", "0\n");
    m.file("/proc/sys/vm/nr_hugepages", "0\n").file("/proc/sys/vm/swappiness", "60\n");
    m.file("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=12ab iommu=pt isolcpus=1 secret_key=hunter2 quiet\n");
    m.file("/proc/loadavg", "0.10 0.20 0.30 1/900 4242\n");
    m.file("/etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    m.file("/etc/os-release", "PRETTY_NAME=\"Ubuntu 24.04 LTS\"\nVERSION_ID=\"24.04\"\n");
    m.file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    m.file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    m.file("/sys/devices/system/cpu/smt/active", "1\n");
    for (const char* cpu : {"cpu0", "cpu1"}) {
        const std::string folder = std::string("/sys/devices/system/cpu/") + cpu + "/cpufreq/";
        m.file(folder + "scaling_governor", "performance\n").file(folder + "scaling_driver", "intel_pstate\n");
    }
    m.file("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    m.file("/sys/devices/system/node/node0/distance", "10 21\n")
        .file("/sys/devices/system/node/node1/distance", "21 10\n");
    m.dir("/dev/shm");
    m.file("/sys/class/dmi/id/product_name", "DGXH200\n").file("/sys/class/dmi/id/bios_version", "1.6.7\n");
    m.file("/proc/1/cgroup", "0::/init.scope\n");
    m.set("HOME", "/root");
    m.dir("/root");
}

/// What the kernel and the driver show of `count` GPUs, without NVML.
inline void add_gpu_files(fake_machine& m, int count, const std::string& driver = "580.65.06") {
    static const char* buses[] = {"1b", "43", "52", "61", "9d", "c3", "d1", "df"};
    for (int i = 0; i < count; ++i) {
        const std::string id = std::string("0000:") + buses[i] + ":00.0";
        const std::string folder = "/sys/bus/pci/devices/" + id + "/";
        m.file(folder + "vendor", "0x10de\n").file(folder + "class", "0x030200\n").file(folder + "device", "0x2335\n");
        m.file(folder + "subsystem_vendor", "0x10de\n").file(folder + "subsystem_device", "0x18be\n");
        m.file(folder + "numa_node", i < 4 ? "0\n" : "1\n").file(folder + "local_cpulist", i < 4 ? "0-3\n" : "4-7\n");
        m.file(folder + "current_link_speed", "2.5 GT/s PCIe\n").file(folder + "current_link_width", "16\n");
        m.file(folder + "max_link_speed", "32.0 GT/s PCIe\n").file(folder + "max_link_width", "16\n");
        m.file("/dev/nvidia" + std::to_string(i), "");
        m.file("/proc/driver/nvidia/gpus/" + id + "/information",
               "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-1\nGPU Firmware: \t " + driver + "\n");
    }
    m.file("/dev/nvidiactl", "").file("/dev/nvidia-uvm", "");
    m.file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " + driver +
                                              "  Release Build  (root@builder)\nGCC version: gcc 13\n");
    m.file("/proc/driver/nvidia/params", "EnableGpuFirmware: 18\nRegistryDwords: \"\"\nDeviceFileUID: 0\n");
    m.file("/sys/module/nvidia/version", driver + "\n");
    m.file("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "");
    m.file("/proc/self/maps", "7f00-7f10 r-xp 00000000 08:02 1 /usr/bin/bench\n"
                              "7f20-7f30 r-xp 00000000 08:02 2 /usr/lib/x86_64-linux-gnu/libcuda.so." +
                                  driver +
                                  "\n"
                                  "7f40-7f50 r-xp 00000000 08:02 3 /usr/lib/x86_64-linux-gnu/libnvidia-ml.so." +
                                  driver + "\n");
}

/// GPUs of one model on different buses.
inline std::vector<fake_gpu> same_gpus(int count) {
    static const char* buses[] = {"1B", "43", "52", "61", "9D", "C3", "D1", "DF"};
    std::vector<fake_gpu> list(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        fake_gpu& gpu = list[static_cast<std::size_t>(i)];
        gpu.bus_id = std::string("00000000:") + buses[i] + ":00.0";
        gpu.uuid = "GPU-0000000" + std::to_string(i) + "-2222-3333-4444-555555555555";
        gpu.serial = "165012345678" + std::to_string(i);
    }
    return list;
}

/// A bare-metal server with eight GPUs.
inline void make_server(fake_machine& m) {
    add_server_files(m);
    add_gpu_files(m, 8);
    m.gpus(same_gpus(8));
    m.host.gpu = "0000:1B:00.0";
}

/// A container on a GPU server that was started without GPUs: the PCI bus shows them, nothing else does.
inline void make_container_without_gpus(fake_machine& m) {
    add_server_files(m);
    add_gpu_files(m, 2);
    for (const char* path : {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm",
                             "/usr/lib/x86_64-linux-gnu/libcuda.so.1"}) {
        m.without(path);
    }
    m.file("/.dockerenv", "").file("/proc/self/maps", "55a0-55b0 r-xp 00000000 08:02 1 /usr/bin/bench\n");
    m.host.backend = "cuda";
    m.host.nvml_problem = "libnvidia-ml.so.1: cannot open shared object file: No such file or directory";
}

/// A small virtual machine: no cpufreq, DMI, microcode, cgroup files or GPU.
inline void make_bare_vm(fake_machine& m) {
    m.file("/proc/cpuinfo",
           "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\nflags\t\t: avx2 hypervisor\n");
    m.file("/proc/self/status", "Cpus_allowed_list:\t0\n").file("/proc/self/maps", "");
}

} // namespace plumbline_tests

#endif
