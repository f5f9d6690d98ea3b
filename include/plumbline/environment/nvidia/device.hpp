// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_NVIDIA_DEVICE_HPP
#define PLUMBLINE_ENVIRONMENT_NVIDIA_DEVICE_HPP

#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/environment/nvidia/nvml.hpp"
#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::nvidia {

/// A GPU as NVML knows it. With MIG, `handle` is the whole GPU and `mig` the instance that is measured.
struct device {
    device_handle handle = nullptr;
    device_handle mig = nullptr;
};

/// The device that a host describes, or why there is none.
struct found_device {
    std::optional<device> gpu;
    result::reading why;
};

/// The name of a PCI device in /sys ("0000:1b:00.0") from any way of writing it ("00000000:1B:00.0").
[[nodiscard]] inline std::string sysfs_bus_id(std::string_view text) {
    std::string id;
    for (const char c : text) id += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto colon = id.find(':');
    // NVML writes the domain with eight digits, the kernel with four.
    if (colon == 8 && id.compare(0, 4, "0000") == 0) id.erase(0, 4);
    return id;
}

/// Text that NVML writes into a buffer of the caller.
template <class Call>
[[nodiscard]] result::reading read_text(const Call& call, device_handle gpu, const char* symbol) {
    if (!call) return failed_call(code::function_not_found, symbol);
    char text[256] = {};
    const int answer = call(gpu, text, static_cast<unsigned>(sizeof text));
    if (answer != code::success) return failed_call(answer, symbol);
    text[sizeof text - 1] = '\0';
    const auto trimmed = environment::detail::trimmed(text);
    if (trimmed.empty()) return result::reading::unsupported(std::string(symbol) + ": empty");
    return result::reading::of(std::string(trimmed));
}

/// One unsigned number of a device; `first` are arguments before the result (a clock type, a link).
template <class Call, class... First>
[[nodiscard]] result::reading read_number(const Call& call, const char* symbol, device_handle gpu, First... first) {
    if (!call) return failed_call(code::function_not_found, symbol);
    unsigned value = 0;
    const int answer = call(gpu, first..., &value);
    if (answer != code::success) return failed_call(answer, symbol);
    return result::reading::of(static_cast<std::int64_t>(value));
}

/// Whether a device is switched to something: a number of NVML as true or false.
[[nodiscard]] inline result::reading as_flag(result::reading number) {
    if (number.known()) number.value = std::get<std::int64_t>(number.value) != 0;
    return number;
}

/// Milliwatts as watts.
[[nodiscard]] inline result::reading as_watts(result::reading milliwatts) {
    if (milliwatts.known()) milliwatts.value = static_cast<double>(std::get<std::int64_t>(milliwatts.value)) * 1e-3;
    return milliwatts;
}

namespace detail {

/// The instance that a process uses on a GPU in MIG mode: the one CUDA_VISIBLE_DEVICES names, else the first, which
/// is also the only one that CUDA enumerates then.
[[nodiscard]] inline device_handle mig_instance(const host& machine, device_handle whole) {
    const nvml_api& api = *machine.nvml;
    unsigned current = 0, pending = 0;
    if (!api.mig_mode || api.mig_mode(whole, &current, &pending) != code::success || current == 0) return nullptr;
    device_handle instance = nullptr;
    const auto visible = machine.variables.find("CUDA_VISIBLE_DEVICES");
    if (visible != machine.variables.end() && visible->second.rfind("MIG-", 0) == 0 && api.handle_by_uuid) {
        const std::string first = visible->second.substr(0, visible->second.find(','));
        if (api.handle_by_uuid(first.c_str(), &instance) == code::success) return instance;
    }
    if (api.mig_device && api.mig_device(whole, 0, &instance) == code::success) return instance;
    return nullptr;
}

} // namespace detail

/// Finds host.gpu by UUID or PCI bus id, never by a CUDA ordinal: NVML and CUDA number devices differently
/// (bamos/setGPU#1). An empty host.gpu means the first device.
[[nodiscard]] inline found_device find_device(const host& machine) {
    if (machine.nvml == nullptr) {
        return {std::nullopt, result::reading::absent(machine.nvml_problem.empty() ? "no NVML" : machine.nvml_problem)};
    }
    const nvml_api& api = *machine.nvml;
    device gpu;
    const bool by_uuid = machine.gpu.rfind("GPU-", 0) == 0 || machine.gpu.rfind("MIG-", 0) == 0;
    const char* symbol = machine.gpu.empty() ? "nvmlDeviceGetHandleByIndex_v2"
                         : by_uuid           ? "nvmlDeviceGetHandleByUUID"
                                             : "nvmlDeviceGetHandleByPciBusId_v2";
    int answer = code::function_not_found;
    if (machine.gpu.empty()) {
        if (api.handle_by_index) answer = api.handle_by_index(0, &gpu.handle);
    } else if (by_uuid) {
        if (api.handle_by_uuid) answer = api.handle_by_uuid(machine.gpu.c_str(), &gpu.handle);
    } else if (api.handle_by_pci) {
        answer = api.handle_by_pci(machine.gpu.c_str(), &gpu.handle);
    }
    if (answer != code::success) return {std::nullopt, failed_call(answer, symbol)};
    if (machine.gpu.rfind("MIG-", 0) == 0) {
        gpu.mig = gpu.handle;
        if (!api.parent_of_mig || api.parent_of_mig(gpu.mig, &gpu.handle) != code::success) gpu.handle = gpu.mig;
    } else {
        gpu.mig = detail::mig_instance(machine, gpu.handle);
    }
    return {gpu, result::reading::of(true)};
}

/// Number of GPUs NVML sees.
[[nodiscard]] inline result::reading device_count(const host& machine) {
    if (machine.nvml == nullptr) return result::reading::absent(machine.nvml_problem);
    unsigned count = 0;
    const int answer = machine.nvml->device_count(&count);
    if (answer != code::success) return failed_call(answer, "nvmlDeviceGetCount_v2");
    return result::reading::of(static_cast<std::int64_t>(count));
}

/// The PCI bus id of a device as /sys writes it; empty where NVML does not say.
[[nodiscard]] inline std::string bus_id_of(const nvml_api& api, device_handle gpu) {
    pci_info pci{};
    if (!api.pci || api.pci(gpu, &pci) != code::success) return {};
    pci.bus_id[sizeof pci.bus_id - 1] = '\0';
    return sysfs_bus_id(pci.bus_id);
}

} // namespace environment::nvidia

PLUMBLINE_NAMESPACE_END

#endif
