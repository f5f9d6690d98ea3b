// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_NVIDIA_GPU_HPP
#define PLUMBLINE_ENVIRONMENT_NVIDIA_GPU_HPP

#include <string>

#include "plumbline/environment/nvidia/config.hpp"
#include "plumbline/environment/nvidia/device.hpp"
#include "plumbline/environment/nvidia/driver.hpp"
#include "plumbline/environment/nvidia/identity.hpp"
#include "plumbline/environment/nvidia/state.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::nvidia {

/// The PCI devices in /sys that are NVIDIA display or 3D controllers (class 0x03), sorted.
[[nodiscard]] inline std::vector<std::string> pci_gpus(const host& machine) {
    std::vector<std::string> found;
    for (const std::string& id : list_folder(machine, "/sys/bus/pci/devices")) {
        const std::string folder = "/sys/bus/pci/devices/" + id;
        const auto vendor = environment::read_text(machine, folder + "/vendor");
        const auto kind = environment::read_text(machine, folder + "/class");
        if (vendor.known() && kind.known() && to_string(vendor.value) == "0x10de" &&
            to_string(kind.value).rfind("0x03", 0) == 0) {
            found.push_back(id);
        }
    }
    return found;
}

/// The bus id, as /sys writes it, of the GPU a host describes: from NVML, else from host.gpu, else the only one there.
[[nodiscard]] inline std::string bus_id_of(const host& machine, const found_device& found) {
    if (found.gpu) {
        if (const std::string id = bus_id_of(*machine.nvml, found.gpu->handle); !id.empty()) return id;
    }
    if (machine.gpu.find(':') != std::string::npos) return sysfs_bus_id(machine.gpu);
    const auto all = pci_gpus(machine);
    return all.size() == 1 ? all.front() : std::string();
}

/// Everything about the GPU and its driver. Nothing on the CPU backend: a GPU that is not measured is no part of what
/// the numbers depend on.
inline void read_gpu(result::fingerprint& into, const host& machine) {
    if (machine.backend != "cuda") return;
    const found_device found = find_device(machine);
    const std::string bus_id = bus_id_of(machine, found);
    read_driver(into, machine, bus_id);
    read_slot(into, machine, bus_id);
    read_identity(into, machine, found, bus_id);
    recorder nvml(into, "nvml");
    nvml.config("gpu.count", 1, device_count(machine));
    if (!found.gpu) {
        nvml.config("gpu.name", 1, found.why);
        return;
    }
    read_config(into, machine, *found.gpu);
    read_state(into, machine, *found.gpu);
}

} // namespace environment::nvidia

PLUMBLINE_NAMESPACE_END

#endif
