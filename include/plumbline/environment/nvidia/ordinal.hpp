// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_NVIDIA_ORDINAL_HPP
#define PLUMBLINE_ENVIRONMENT_NVIDIA_ORDINAL_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/environment/nvidia/device.hpp"
#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::nvidia {

/// UUIDs of all GPUs, in NVML's order, which is that of the PCI bus. Empty where there is no NVML.
[[nodiscard]] inline std::vector<std::string> all_gpus(const host& machine) {
    std::vector<std::string> found;
    const result::reading count = device_count(machine);
    if (!count.known()) return found;
    const nvml_api& api = *machine.nvml;
    for (std::int64_t i = 0; i < std::get<std::int64_t>(count.value); ++i) {
        device_handle gpu = nullptr;
        result::reading uuid = result::reading::absent("no handle");
        if (api.handle_by_index && api.handle_by_index(static_cast<unsigned>(i), &gpu) == code::success) {
            uuid = read_text(api.uuid, gpu, "nvmlDeviceGetUUID");
        }
        // A GPU that does not answer keeps its place: numbers count places.
        found.push_back(uuid.known() ? to_string(uuid.value) : std::string());
    }
    return found;
}

/// The GPUs that CUDA offers to this process, by UUID and in CUDA's order, without asking CUDA: those that
/// CUDA_VISIBLE_DEVICES names (by number, or by UUID and its beginnings; the first entry that names none ends the
/// list, as in CUDA), else all. CUDA's own default order puts the fastest GPU first, which is the order of the bus
/// wherever all are of one model; entry/cuda.hpp finds out where it is not.
[[nodiscard]] inline std::vector<std::string> visible_gpus(const host& machine) {
    const std::vector<std::string> all = all_gpus(machine);
    const auto variable = machine.variables.find("CUDA_VISIBLE_DEVICES");
    if (variable == machine.variables.end()) return all;
    std::vector<std::string> visible;
    for (const std::string& raw : environment::detail::split(variable->second, ',')) {
        const std::string entry(environment::detail::trimmed(raw));
        if (entry.rfind("MIG-", 0) == 0) {
            visible.push_back(entry);
            continue;
        }
        std::optional<std::string> named;
        const auto number = environment::detail::integer(entry);
        for (std::size_t i = 0; i < all.size(); ++i) {
            const bool by_number = number && *number == static_cast<std::int64_t>(i);
            const bool by_uuid = entry.rfind("GPU-", 0) == 0 && all[i].rfind(entry, 0) == 0;
            if (!named && (by_number || by_uuid)) named = all[i];
        }
        if (!named) break;
        visible.push_back(*named);
    }
    return visible;
}

/// The UUID of CUDA device `ordinal`; "" where NVML does not know any visible GPU. Throws usage_error for a number
/// beyond the visible ones.
[[nodiscard]] inline std::string gpu_of_ordinal(const host& machine, int ordinal) {
    const std::vector<std::string> visible = visible_gpus(machine);
    if (visible.empty()) return {};
    if (static_cast<std::size_t>(ordinal) >= visible.size()) {
        throw usage_error("there is no CUDA device " + std::to_string(ordinal) + "; this process sees " +
                          std::to_string(visible.size()) + " (see CUDA_VISIBLE_DEVICES)");
    }
    return visible[static_cast<std::size_t>(ordinal)];
}

} // namespace environment::nvidia

PLUMBLINE_NAMESPACE_END

#endif
