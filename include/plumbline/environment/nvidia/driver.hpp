// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_NVIDIA_DRIVER_HPP
#define PLUMBLINE_ENVIRONMENT_NVIDIA_DRIVER_HPP

#include <cstdint>
#include <string>
#include <string_view>

#include "plumbline/environment/nvidia/device.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::nvidia {

namespace detail {

/// Whether a word is a version of the driver: digits with one or two dots ("580.65.06").
[[nodiscard]] inline bool driver_version_like(std::string_view word) {
    const bool characters = word.find_first_not_of("0123456789.") == std::string_view::npos;
    return characters && word.find('.') != std::string_view::npos && word.size() >= 5 && word.front() != '.';
}

[[nodiscard]] inline result::reading system_text(const std::function<int(char*, unsigned)>& call, const char* symbol) {
    if (!call) return failed_call(code::function_not_found, symbol);
    char text[96] = {};
    const int answer = call(text, static_cast<unsigned>(sizeof text));
    if (answer != code::success) return failed_call(answer, symbol);
    return result::reading::of(std::string(environment::detail::trimmed(text)));
}

} // namespace detail

/// Version of the loaded kernel module, from /proc/driver/nvidia/version or /sys/module/nvidia/version.
[[nodiscard]] inline result::reading module_version(const host& machine) {
    const text_file file = read_file(machine, "/proc/driver/nvidia/version");
    for (const std::string& line : environment::detail::split(file.text, '\n')) {
        if (line.rfind("NVRM version", 0) != 0) continue;
        for (const std::string& word : environment::detail::split(line, ' ')) {
            if (detail::driver_version_like(word)) return result::reading::of(word);
        }
    }
    const auto sys = environment::read_text(machine, "/sys/module/nvidia/version");
    return sys.known() || !file.known() ? sys : result::reading::unsupported("/proc/driver/nvidia/version: no version");
}

/// "open" or "proprietary".
[[nodiscard]] inline result::reading module_kind(const host& machine) {
    const text_file file = read_file(machine, "/proc/driver/nvidia/version");
    if (!file.known()) return file.why;
    const bool open = file.text.find("Open Kernel Module") != std::string::npos;
    return result::reading::of(std::string(open ? "open" : "proprietary"));
}

/// Version in the file name of a library of the driver, as it is mapped: ".../libcuda.so.580.65.06". A libcuda of the
/// forward-compatibility package is newer than the driver on purpose and does not count.
[[nodiscard]] inline result::reading library_version(const host& machine) {
    const text_file maps = read_file(machine, "/proc/self/maps", 64u << 20);
    if (!maps.known()) return maps.why;
    for (const char* name : {"/libnvidia-ml.so.", "/libcuda.so."}) {
        for (const std::string& line : environment::detail::split(maps.text, '\n')) {
            const auto at = line.rfind(name);
            if (at == std::string::npos || line.find("/compat/") != std::string::npos) continue;
            const std::string version = line.substr(at + std::string_view(name).size());
            if (detail::driver_version_like(version)) return result::reading::of(version);
        }
    }
    return result::reading::absent("no library of the driver is mapped");
}

/// Driver: versions of kernel module and library, kind of module, parameters that matter, firmware of this GPU.
inline void read_driver(result::fingerprint& into, const host& machine, const std::string& bus_id) {
    recorder proc(into, "proc");
    proc.config("driver.module_version", 1, module_version(machine));
    proc.config("driver.module_kind", 1, module_kind(machine));
    const text_file parameters = read_file(machine, "/proc/driver/nvidia/params");
    for (const char* name :
         {"CoherentGPUMemoryMode", "DynamicPowerManagement", "EnableGpuFirmware", "EnableMSI",
          "EnablePCIERelaxedOrderingMode", "EnablePCIeGen3", "EnableResizableBar", "EnableStreamMemOPs",
          "GrdmaPciTopoCheckOverride", "NvLinkDisable", "PreserveVideoMemoryAllocations", "RegistryDwords"}) {
        const auto value = field_of(parameters.text, name);
        if (!parameters.known() || value) {
            proc.config(std::string("driver.parameter.") + name, 1,
                        value ? result::reading::of(*value) : parameters.why);
        }
    }
    const std::string information = "/proc/driver/nvidia/gpus/" + bus_id + "/information";
    const text_file gpu = read_file(machine, information);
    auto firmware = field_of(gpu.text, "GPU Firmware");
    if (!firmware) firmware = field_of(gpu.text, "GSP Firmware");
    proc.config("driver.gpu_firmware", 1,
                firmware         ? result::reading::of(*firmware)
                : bus_id.empty() ? result::reading::absent("no GPU is known")
                : gpu.known()    ? result::reading::absent(information + ": no firmware line")
                                 : gpu.why);
    proc.config("driver.library_version", 1, library_version(machine));
    recorder out(into, "nvml");
    if (machine.nvml == nullptr) {
        const auto why = result::reading::absent(machine.nvml_problem.empty() ? "no NVML" : machine.nvml_problem);
        for (const char* name :
             {"driver.version", "driver.nvml_version", "driver.cuda_version", "driver.confidential_computing"}) {
            out.config(name, 1, why);
        }
        return;
    }
    const nvml_api& api = *machine.nvml;
    out.config("driver.version", 1, detail::system_text(api.driver_version, "nvmlSystemGetDriverVersion"));
    out.config("driver.nvml_version", 1, detail::system_text(api.nvml_version, "nvmlSystemGetNVMLVersion"));
    int cuda = 0;
    int answer = api.cuda_driver_version ? api.cuda_driver_version(&cuda) : code::function_not_found;
    out.config("driver.cuda_version", 1,
               answer == code::success ? result::reading::of(std::int64_t{cuda})
                                       : failed_call(answer, "nvmlSystemGetCudaDriverVersion_v2"));
    confidential_state confidential{};
    answer = api.confidential_computing ? api.confidential_computing(&confidential) : code::function_not_found;
    out.config("driver.confidential_computing", 1,
               answer == code::success ? result::reading::of(confidential.feature != 0)
                                       : failed_call(answer, "nvmlSystemGetConfComputeState"));
}

/// Where the GPU sits in the machine, as the kernel sees it: NUMA node, CPUs near it, links of device and slot.
inline void read_slot(result::fingerprint& into, const host& machine, const std::string& bus_id) {
    recorder sys(into, "sys");
    const std::string folder = "/sys/bus/pci/devices/" + bus_id;
    const auto unknown = result::reading::absent("no GPU is known");
    const auto text = [&](const char* file) {
        return bus_id.empty() ? unknown : environment::read_text(machine, folder + "/" + file);
    };
    result::reading node = bus_id.empty() ? unknown : environment::read_integer(machine, folder + "/numa_node");
    if (node.known() && std::get<std::int64_t>(node.value) < 0) {
        node = result::reading::unsupported(folder + "/numa_node: the firmware does not say (-1)");
    }
    sys.config("gpu.numa_node", 4, node);
    sys.config("gpu.near_cpus", 4, text("local_cpulist"));
    sys.config("pcie.slot_max_speed", 1, text("max_link_speed"));
    sys.config("pcie.slot_max_width", 1, text("max_link_width"));
    sys.state("pcie.slot_speed", 1, text("current_link_speed"));
    sys.state("pcie.slot_width", 1, text("current_link_width"));
}

} // namespace environment::nvidia

PLUMBLINE_NAMESPACE_END

#endif
