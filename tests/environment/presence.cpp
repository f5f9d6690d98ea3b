// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "fake_machine.hpp"
#include "plumbline/environment/presence.hpp"

using namespace plumbline_tests;

namespace {

bool mentions(const env::cuda_diagnosis& d, const std::string& words) {
    return d.text().find(words) != std::string::npos;
}

} // namespace

TEST_CASE("hardware is seen on the PCI bus or in /dev, and other devices are not taken for it") {
    fake_machine m;
    CHECK_FALSE(env::find_nvidia_hardware(m.host).present());
    // An Intel display controller, and the audio function of an NVIDIA board.
    m.file("/sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n")
        .file("/sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
    m.file("/sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n")
        .file("/sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n");
    m.file("/dev/null", "");
    CHECK_FALSE(env::find_nvidia_hardware(m.host).present());
    m.file("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
        .file("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
    auto found = env::find_nvidia_hardware(m.host);
    CHECK(found.present());
    CHECK(found.pci_ids == std::vector<std::string>{"0000:01:00.0"});
    m.without("/sys/bus");
    m.file("/dev/nvidiactl", "");
    found = env::find_nvidia_hardware(m.host);
    CHECK(found.present());
    CHECK(found.device_nodes == std::vector<std::string>{"/dev/nvidiactl"});
}

TEST_CASE("each reason why CUDA cannot start has its own diagnosis and remedy") {
    fake_machine m;
    make_server(m);
    const auto code = [&](std::optional<int> error) { return env::diagnose_cuda(m.host, error).code; };

    SUBCASE("this machine is fine, the program was built without CUDA") {
        CHECK(code(std::nullopt) == "not_built_in");
        CHECK(mentions(env::diagnose_cuda(m.host), "PLUMBLINE_CUDA=ON"));
    }
    SUBCASE("errors of the runtime") {
        CHECK(code(35) == "insufficient_driver");
        CHECK(code(804) == "compat_not_supported");
        CHECK(code(802) == "system_not_ready");
        CHECK(code(803) == "version_mismatch");
        CHECK(code(100) == "no_device");
        CHECK(code(999) == "other");
        CHECK(mentions(env::diagnose_cuda(m.host, 999, "cudaErrorUnknown"), "error 999 (cudaErrorUnknown)"));
    }
    SUBCASE("hidden by the variable") {
        m.set("CUDA_VISIBLE_DEVICES", "");
        CHECK(code(100) == "hidden");
        m.set("CUDA_VISIBLE_DEVICES", "-1");
        CHECK(code(100) == "hidden");
        m.set("CUDA_VISIBLE_DEVICES", "0");
        CHECK(code(100) == "no_device");
    }
    SUBCASE("kernel module and library of two versions") {
        m.file("/proc/self/maps", "7f00-7f10 r-xp 0 08:02 2 /usr/lib/libcuda.so.590.10.01\n");
        const auto d = env::diagnose_cuda(m.host, 999);
        CHECK(d.code == "version_mismatch");
        CHECK(mentions(d, "580.65.06 and 590.10.01"));
        CHECK(mentions(d, "reboot"));
    }
    SUBCASE("NVML says so, and no library is mapped yet") {
        m.nvml->init_answer = nvidia::code::version_mismatch;
        m.restart_nvml();
        m.file("/proc/self/maps", "");
        CHECK(code(std::nullopt) == "version_mismatch");
    }
    SUBCASE("no driver") {
        for (int i = 0; i < 8; ++i) m.without("/dev/nvidia" + std::to_string(i));
        m.without("/dev/nvidiactl").without("/dev/nvidia-uvm").without("/proc/driver").without("/sys/module/nvidia");
        m.file("/proc/self/maps", "").without("/usr/lib/x86_64-linux-gnu/libcuda.so.1");
        const auto d = env::diagnose_cuda(m.host, 35);
        CHECK(d.code == "no_driver");
        CHECK(mentions(d, "modprobe nvidia"));
        CHECK(mentions(d, "0000:1b:00.0"));
    }
    SUBCASE("no user-space library") {
        m.without("/usr/lib/x86_64-linux-gnu/libcuda.so.1").file("/proc/self/maps", "");
        CHECK(code(35) == "no_libcuda");
        m.file("/opt/driver/libcuda.so.1", "").set("LD_LIBRARY_PATH", "relative:/opt/driver");
        CHECK(code(35) == "insufficient_driver");
    }
    SUBCASE("no device nodes") {
        for (int i = 0; i < 8; ++i) m.without("/dev/nvidia" + std::to_string(i));
        const auto d = env::diagnose_cuda(m.host, 100);
        CHECK(d.code == "no_device_nodes");
        CHECK(mentions(d, "nvidia-modprobe"));
    }
}

TEST_CASE("a container without GPUs mapped: which part is missing") {
    fake_machine m;
    make_container_without_gpus(m);
    auto d = env::diagnose_cuda(m.host, 35);
    CHECK(d.code == "container_without_gpu");
    CHECK(mentions(d, "NVIDIA_VISIBLE_DEVICES names no GPU, no /dev/nvidia0, no libcuda.so.1"));
    CHECK(mentions(d, "--gpus all"));
    m.set("NVIDIA_VISIBLE_DEVICES", "all");
    d = env::diagnose_cuda(m.host, 35);
    CHECK_FALSE(mentions(d, "names no GPU"));
    CHECK(mentions(d, "no /dev/nvidia0, no libcuda.so.1"));
    m.file("/dev/nvidia0", "");
    d = env::diagnose_cuda(m.host, 35);
    CHECK(mentions(d, "without a GPU: no libcuda.so.1"));
    m.file("/usr/lib64/libcuda.so.1", "");
    CHECK(env::diagnose_cuda(m.host, 35).code == "insufficient_driver");
}

TEST_CASE("a machine without any NVIDIA GPU is told apart from a broken one") {
    fake_machine m;
    make_bare_vm(m);
    CHECK(env::diagnose_cuda(m.host, 35).code == "no_hardware");
    CHECK(mentions(env::diagnose_cuda(m.host), "--backend=cpu"));
    m.file("/.dockerenv", "");
    CHECK(env::diagnose_cuda(m.host, 35).code == "no_hardware");
    m.set("NVIDIA_VISIBLE_DEVICES", "void");
    CHECK(env::diagnose_cuda(m.host, 35).code == "no_hardware");
    m.set("NVIDIA_VISIBLE_DEVICES", "all");
    CHECK(env::diagnose_cuda(m.host, 35).code == "container_without_gpu");
}

TEST_CASE("container runtimes are known by what they leave behind") {
    fake_machine m;
    CHECK(env::container_runtime(m.host).empty());
    m.file("/proc/1/cgroup", "0::/kubepods/besteffort/pod1\n");
    CHECK(env::container_runtime(m.host) == "kubernetes");
    m.file("/proc/1/cgroup", "4:cpu:/docker/abc\n");
    CHECK(env::container_runtime(m.host) == "docker");
    m.set("container", "lxc");
    CHECK(env::container_runtime(m.host) == "lxc");
    m.dir("/.singularity.d");
    CHECK(env::container_runtime(m.host) == "apptainer");
    m.file("/run/.containerenv", "");
    CHECK(env::container_runtime(m.host) == "podman");
    m.file("/.dockerenv", "");
    CHECK(env::container_runtime(m.host) == "docker");
    m.set("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    CHECK(env::container_runtime(m.host) == "kubernetes");
}
