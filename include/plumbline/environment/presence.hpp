// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_PRESENCE_HPP
#define PLUMBLINE_ENVIRONMENT_PRESENCE_HPP

#include <optional>
#include <string>
#include <vector>

#include "plumbline/environment/container.hpp"
#include "plumbline/environment/host.hpp"
#include "plumbline/environment/nvidia/driver.hpp"
#include "plumbline/environment/nvidia/gpu.hpp"
#include "plumbline/environment/variables.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// NVIDIA hardware as the operating system shows it, whether or not a driver is loaded.
struct nvidia_hardware {
    std::vector<std::string> pci_ids;      ///< bus ids of display and 3D controllers of vendor 0x10de
    std::vector<std::string> device_nodes; ///< /dev/nvidia0, /dev/nvidiactl, ...

    [[nodiscard]] bool present() const noexcept { return !pci_ids.empty() || !device_nodes.empty(); }
};

/// Looks for NVIDIA GPUs on the PCI bus and in /dev. Decides `--backend=auto`. Never throws.
[[nodiscard]] inline nvidia_hardware find_nvidia_hardware(const host& machine) {
    nvidia_hardware found;
    found.pci_ids = nvidia::pci_gpus(machine);
    for (const std::string& name : list_folder(machine, "/dev")) {
        if (name.rfind("nvidia", 0) == 0) found.device_nodes.push_back("/dev/" + name);
    }
    return found;
}

/// Why CUDA cannot start here.
struct cuda_diagnosis {
    std::string code;               ///< "no_driver", "version_mismatch", "container_without_gpu", ...
    std::string summary;            ///< one line: what is wrong
    std::vector<std::string> facts; ///< what was seen, one line each
    std::string remedy;             ///< one line: what to do

    /// summary, facts and remedy in one text for an error message.
    [[nodiscard]] std::string text() const {
        std::string all = summary;
        for (const std::string& fact : facts) all += "\n  seen: " + fact;
        if (!remedy.empty()) all += "\n  try:  " + remedy;
        return all;
    }
};

namespace detail {

/// The folders where the loader looks for libcuda.so.1, and whether it is in one of them.
[[nodiscard]] inline std::string find_libcuda(const host& machine) {
    std::vector<std::string> folders;
    if (const auto path = machine.variables.find("LD_LIBRARY_PATH"); path != machine.variables.end()) {
        folders = split(path->second, ':');
    }
    for (const char* usual : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
                              "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/local/cuda/compat", "/lib64"}) {
        folders.emplace_back(usual);
    }
    for (const std::string& folder : folders) {
        if (folder.front() == '/' && exists(machine, folder + "/libcuda.so.1")) return folder + "/libcuda.so.1";
    }
    return {};
}

/// What the diagnosis rests on.
struct cuda_facts {
    nvidia_hardware hardware;
    std::string runtime; ///< container runtime, "" outside of one
    std::string libcuda;
    result::reading module, library;
    std::vector<std::string> gpu_nodes; ///< /dev/nvidia0 and the like, without nvidiactl and nvidia-uvm
    std::optional<std::string> visible; ///< NVIDIA_VISIBLE_DEVICES
    std::optional<std::string> cuda_visible;
};

[[nodiscard]] inline cuda_facts gather_cuda_facts(const host& machine) {
    cuda_facts facts;
    facts.hardware = find_nvidia_hardware(machine);
    facts.runtime = container_runtime(machine);
    facts.libcuda = find_libcuda(machine);
    facts.module = nvidia::module_version(machine);
    facts.library = nvidia::library_version(machine);
    for (const std::string& node : facts.hardware.device_nodes) {
        const std::string rest = node.substr(std::string_view("/dev/nvidia").size());
        if (integer(rest)) facts.gpu_nodes.push_back(node);
    }
    const auto variable = [&](const char* name) -> std::optional<std::string> {
        const auto at = machine.variables.find(name);
        if (at == machine.variables.end()) return std::nullopt;
        return at->second;
    };
    facts.visible = variable("NVIDIA_VISIBLE_DEVICES");
    facts.cuda_visible = variable("CUDA_VISIBLE_DEVICES");
    return facts;
}

[[nodiscard]] inline std::vector<std::string> fact_lines(const host& machine, const cuda_facts& facts) {
    std::vector<std::string> lines;
    const auto line = [&](const std::string& name, const std::string& value) { lines.push_back(name + ": " + value); };
    line("NVIDIA GPUs on the PCI bus", facts.hardware.pci_ids.empty() ? "none" : join(facts.hardware.pci_ids, " "));
    line("device nodes",
         facts.hardware.device_nodes.empty() ? "no /dev/nvidia*" : join(facts.hardware.device_nodes, " "));
    line("kernel module", facts.module.known() ? to_string(facts.module.value) : "not loaded");
    line("libcuda.so.1", facts.libcuda.empty() ? "not found" : facts.libcuda);
    if (machine.nvml == nullptr && !machine.nvml_problem.empty()) line("NVML", machine.nvml_problem);
    if (!facts.runtime.empty()) {
        line("container", facts.runtime);
        line("NVIDIA_VISIBLE_DEVICES",
             facts.visible ? (facts.visible->empty() ? "empty" : environment::detail::without_uuids(*facts.visible))
                           : "not set");
    }
    if (facts.cuda_visible) {
        line("CUDA_VISIBLE_DEVICES",
             facts.cuda_visible->empty() ? "empty" : environment::detail::without_uuids(*facts.cuda_visible));
    }
    return lines;
}

/// Errors of the CUDA runtime (cudaError_t, driver_types.h) that have a reason of their own.
namespace cuda_code {
inline constexpr int insufficient_driver = 35, no_device = 100, system_not_ready = 802, system_driver_mismatch = 803;
inline constexpr int compat_not_supported = 804;
} // namespace cuda_code

/// Which part of a container's way to the GPU is missing.
[[nodiscard]] inline std::string missing_in_container(const cuda_facts& facts) {
    std::vector<std::string> missing;
    if (!facts.visible || facts.visible->empty() || *facts.visible == "void" || *facts.visible == "none") {
        missing.emplace_back("NVIDIA_VISIBLE_DEVICES names no GPU");
    }
    if (facts.gpu_nodes.empty()) missing.emplace_back("no /dev/nvidia0");
    if (facts.libcuda.empty()) missing.emplace_back("no libcuda.so.1");
    return join(missing, ", ");
}

} // namespace detail

/// Names the reason why CUDA cannot start, from what the machine shows and, where CUDA was tried, the error it gave
/// (`cuda_error`: a cudaError_t value; empty when the program has no CUDA backend).
[[nodiscard]] inline cuda_diagnosis diagnose_cuda(const host& machine, std::optional<int> cuda_error = std::nullopt,
                                                  const std::string& cuda_error_name = {}) {
    const detail::cuda_facts facts = detail::gather_cuda_facts(machine);
    cuda_diagnosis found;
    found.facts = detail::fact_lines(machine, facts);
    if (cuda_error) {
        found.facts.push_back("CUDA: error " + std::to_string(*cuda_error) +
                              (cuda_error_name.empty() ? "" : " (" + cuda_error_name + ")"));
    }
    const auto say = [&](const char* code, std::string summary, std::string remedy) {
        found.code = code, found.summary = std::move(summary), found.remedy = std::move(remedy);
        return found;
    };
    const bool mismatch = machine.nvml_code == nvidia::code::version_mismatch ||
                          cuda_error == detail::cuda_code::system_driver_mismatch ||
                          (facts.module.known() && facts.library.known() && facts.module.value != facts.library.value);
    if (mismatch) {
        return say(
            "version_mismatch",
            "the NVIDIA kernel module and the driver's libraries have different versions" +
                (facts.module.known() && facts.library.known()
                     ? " (" + to_string(facts.module.value) + " and " + to_string(facts.library.value) + ")"
                     : std::string()),
            "reboot, or reload the module (rmmod nvidia_uvm nvidia; modprobe nvidia); in a container, restart it");
    }
    if (facts.cuda_visible && (facts.cuda_visible->empty() || *facts.cuda_visible == "-1")) {
        return say("hidden", "CUDA_VISIBLE_DEVICES hides every GPU", "unset CUDA_VISIBLE_DEVICES, or name a GPU in it");
    }
    const std::string missing = detail::missing_in_container(facts);
    const bool granted =
        facts.visible && !facts.visible->empty() && *facts.visible != "void" && *facts.visible != "none";
    if (!facts.hardware.present() && !granted) {
        return say("no_hardware", "there is no NVIDIA GPU here",
                   facts.runtime.empty() ? "use --backend=cpu"
                                         : "use --backend=cpu, or start the container with --gpus all on a GPU server");
    }
    if (!facts.runtime.empty() && (facts.gpu_nodes.empty() || facts.libcuda.empty())) {
        return say("container_without_gpu", "the container was started without a GPU: " + missing,
                   "start it with --gpus all (Docker, Podman: --device nvidia.com/gpu=all; Kubernetes: request "
                   "nvidia.com/gpu)");
    }
    if (!facts.hardware.present()) {
        return say("no_hardware", "NVIDIA_VISIBLE_DEVICES names a GPU, but there is none here",
                   "unset NVIDIA_VISIBLE_DEVICES and use --backend=cpu, or move to a GPU server");
    }
    if (!facts.module.known() && facts.gpu_nodes.empty()) {
        return say("no_driver", "there is an NVIDIA GPU, but its kernel module is not loaded",
                   "install the NVIDIA driver and load it: modprobe nvidia; dmesg says why if that fails");
    }
    if (facts.libcuda.empty()) {
        return say("no_libcuda", "the kernel module is loaded, but libcuda.so.1 is not there",
                   "install the user-space part of the same driver version (libcuda1, or nvidia-driver-cuda)");
    }
    if (facts.gpu_nodes.empty()) {
        return say("no_device_nodes", "the kernel module is loaded, but there is no /dev/nvidia0",
                   "run nvidia-modprobe -c 0 -u, or start nvidia-persistenced");
    }
    if (cuda_error == detail::cuda_code::insufficient_driver) {
        return say("insufficient_driver", "the driver is older than the CUDA runtime this program was built with",
                   "update the driver, install the cuda-compat package, or build with an older CUDA toolkit");
    }
    if (cuda_error == detail::cuda_code::compat_not_supported) {
        return say("compat_not_supported",
                   "the cuda-compat libcuda that is loaded does not work with this GPU or driver",
                   "take the compat folder out of LD_LIBRARY_PATH and /etc/ld.so.conf.d, or update the driver");
    }
    if (cuda_error == detail::cuda_code::system_not_ready) {
        return say("system_not_ready", "the driver waits for the NVLink fabric", "start nvidia-fabricmanager");
    }
    if (cuda_error == detail::cuda_code::no_device) {
        return say("no_device", "the driver is loaded, but CUDA sees no GPU",
                   "look at CUDA_VISIBLE_DEVICES, at MIG without instances (nvidia-smi mig -lgi), and at dmesg");
    }
    if (!cuda_error) {
        return say("not_built_in", "there is an NVIDIA GPU, but this program was built without CUDA",
                   "build with -DPLUMBLINE_CUDA=ON, or choose --backend=cpu");
    }
    return say("other", "CUDA cannot start", "nvidia-smi and dmesg may say more");
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
