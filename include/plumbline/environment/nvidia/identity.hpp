// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_NVIDIA_IDENTITY_HPP
#define PLUMBLINE_ENVIRONMENT_NVIDIA_IDENTITY_HPP

#include <cstdint>
#include <string>

#include "plumbline/environment/nvidia/device.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::nvidia {

namespace detail {

/// "10de:2335" from NVML's device id << 16 | vendor id.
[[nodiscard]] inline std::string pci_pair(unsigned id) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (const unsigned part : {id & 0xffffu, id >> 16}) {
        if (!text.empty()) text += ':';
        for (int shift = 12; shift >= 0; shift -= 4) text += digits[part >> shift & 0xf];
    }
    return text;
}

/// The same pair from two files of /sys ("0x10de").
[[nodiscard]] inline result::reading sysfs_pair(const host& machine, const std::string& folder, const char* vendor,
                                                const char* id) {
    const auto v = environment::read_text(machine, folder + "/" + vendor);
    const auto d = environment::read_text(machine, folder + "/" + id);
    if (!v.known()) return v;
    if (!d.known()) return d;
    const auto digits = [](const result::reading& r) {
        const std::string text = to_string(r.value);
        return text.rfind("0x", 0) == 0 ? text.substr(2) : text;
    };
    return result::reading::of(digits(v) + ":" + digits(d));
}

/// FP32 cores in one SM by compute capability (CUDA C++ Programming Guide, "Compute Capabilities"); 0 if unknown.
[[nodiscard]] inline int cores_per_sm(int major, int minor) {
    if (major == 6 && minor == 0) return 64;
    if (major == 7 || (major == 8 && minor == 0)) return 64;
    if (major >= 5 && major <= 12) return 128;
    return 0;
}

/// SM count without a CUDA library: of a MIG instance directly, of a whole GPU from its number of cores.
[[nodiscard]] inline result::reading sm_count(const nvml_api& api, const device& gpu) {
    if (gpu.mig != nullptr && api.attributes) {
        mig_attributes slice{};
        const int answer = api.attributes(gpu.mig, &slice);
        if (answer == code::success) return result::reading::of(static_cast<std::int64_t>(slice.sm_count));
        return failed_call(answer, "nvmlDeviceGetAttributes_v2");
    }
    const auto cores = read_number(api.core_count, "nvmlDeviceGetNumGpuCores", gpu.handle);
    int major = 0, minor = 0;
    if (!cores.known()) return cores;
    if (!api.compute_capability || api.compute_capability(gpu.handle, &major, &minor) != code::success) {
        return failed_call(code::function_not_found, "nvmlDeviceGetCudaComputeCapability");
    }
    const int each = cores_per_sm(major, minor);
    if (each == 0) return result::reading::unsupported("cores per SM unknown for this compute capability");
    return result::reading::of(std::get<std::int64_t>(cores.value) / each);
}

/// Device memory rounded to GiB: of the MIG instance, else of the board, including what the driver reserves, so that
/// a driver upgrade does not change it.
[[nodiscard]] inline result::reading memory_gib(const nvml_api& api, const device& gpu) {
    const auto rounded = [](double bytes) {
        return result::reading::of(static_cast<std::int64_t>(bytes / (1024.0 * 1024 * 1024) + 0.5));
    };
    mig_attributes slice{};
    if (gpu.mig != nullptr && api.attributes && api.attributes(gpu.mig, &slice) == code::success) {
        return rounded(static_cast<double>(slice.memory_mib) * 1024 * 1024);
    }
    memory_info memory{};
    memory.version = memory_info_version;
    if (api.memory && api.memory(gpu.handle, &memory) == code::success)
        return rounded(static_cast<double>(memory.total));
    memory_info_v1 old{};
    const int answer = api.memory_v1 ? api.memory_v1(gpu.handle, &old) : code::function_not_found;
    if (answer != code::success) return failed_call(answer, "nvmlDeviceGetMemoryInfo");
    return rounded(static_cast<double>(old.total));
}

/// "none", or a profile written as nvidia-smi does: "3g.71gb", "1c.3g.71gb".
[[nodiscard]] inline result::reading mig_profile(const nvml_api& api, const device& gpu) {
    if (gpu.mig == nullptr) {
        unsigned current = 0, pending = 0;
        const int answer = api.mig_mode ? api.mig_mode(gpu.handle, &current, &pending) : code::not_supported;
        if (answer == code::not_supported || (answer == code::success && current == 0)) {
            return result::reading::of(std::string("none"));
        }
        if (answer != code::success) return failed_call(answer, "nvmlDeviceGetMigMode");
        return result::reading::absent("MIG is on, and there is no instance");
    }
    mig_attributes slice{};
    const int answer = api.attributes ? api.attributes(gpu.mig, &slice) : code::function_not_found;
    if (answer != code::success) return failed_call(answer, "nvmlDeviceGetAttributes_v2");
    std::string text;
    if (slice.compute_slices != slice.gpu_slices) text = std::to_string(slice.compute_slices) + "c.";
    return result::reading::of(text + std::to_string(slice.gpu_slices) + "g." +
                               std::to_string((slice.memory_mib + 512) / 1024) + "gb");
}

} // namespace detail

/// What makes results of two GPUs comparable: nothing in here can be changed by a driver, kernel or library upgrade.
inline void read_identity(result::fingerprint& into, const host& machine, const found_device& found,
                          const std::string& bus_id) {
    recorder nvml(into, "nvml");
    const auto none = found.why;
    const nvml_api* api = machine.nvml.get();
    pci_info pci{};
    if (found.gpu && api->pci && api->pci(found.gpu->handle, &pci) == code::success) {
        nvml.identity("gpu.pci_device_id", 1, result::reading::of(detail::pci_pair(pci.pci_device_id)));
        nvml.identity("gpu.pci_subsystem_id", 1, result::reading::of(detail::pci_pair(pci.pci_subsystem_id)));
    } else {
        recorder sys(into, "sys");
        const std::string folder = "/sys/bus/pci/devices/" + bus_id;
        const auto read = [&](const char* vendor, const char* id) {
            return bus_id.empty() ? none : detail::sysfs_pair(machine, folder, vendor, id);
        };
        sys.identity("gpu.pci_device_id", 1, read("vendor", "device"));
        sys.identity("gpu.pci_subsystem_id", 1, read("subsystem_vendor", "subsystem_device"));
    }
    nvml.identity("gpu.sm_count", 1, found.gpu ? detail::sm_count(*api, *found.gpu) : none);
    nvml.identity("gpu.memory_gib", 1, found.gpu ? detail::memory_gib(*api, *found.gpu) : none);
    nvml.identity("gpu.mig_profile", 1, found.gpu ? detail::mig_profile(*api, *found.gpu) : none);
}

} // namespace environment::nvidia

PLUMBLINE_NAMESPACE_END

#endif
