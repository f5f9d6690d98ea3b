// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_NVIDIA_CONFIG_HPP
#define PLUMBLINE_ENVIRONMENT_NVIDIA_CONFIG_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/environment/nvidia/device.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::nvidia {

namespace detail {

/// One of the texts that name the values of an enumeration of NVML.
[[nodiscard]] inline result::reading named(result::reading number, std::initializer_list<const char*> names) {
    if (!number.known()) return number;
    const auto at = static_cast<std::size_t>(std::get<std::int64_t>(number.value));
    number.value = at < names.size() ? std::string(names.begin()[at]) : "value " + std::to_string(at);
    return number;
}

/// Current and pending (or lowest and highest) of a pair.
template <class Call>
[[nodiscard]] std::pair<result::reading, result::reading> read_pair(const Call& call, const char* symbol,
                                                                    device_handle gpu) {
    if (!call) return {failed_call(code::function_not_found, symbol), failed_call(code::function_not_found, symbol)};
    unsigned first = 0, second = 0;
    const int answer = call(gpu, &first, &second);
    if (answer != code::success) return {failed_call(answer, symbol), failed_call(answer, symbol)};
    return {result::reading::of(static_cast<std::int64_t>(first)),
            result::reading::of(static_cast<std::int64_t>(second))};
}

[[nodiscard]] inline result::reading gsp_firmware(const nvml_api& api, device_handle gpu) {
    if (!api.gsp_version) return failed_call(code::function_not_found, "nvmlDeviceGetGspFirmwareVersion");
    char text[80] = {};
    const int answer = api.gsp_version(gpu, text);
    if (answer != code::success) return failed_call(answer, "nvmlDeviceGetGspFirmwareVersion");
    return result::reading::of(std::string(environment::detail::trimmed(text)));
}

/// NVLink: how many links are there, how many are up, and their version. Absent where there is none.
inline void read_nvlink(recorder& out, const nvml_api& api, device_handle gpu) {
    constexpr unsigned most = 18; // NVML_NVLINK_MAX_LINKS
    std::int64_t links = 0, active = 0;
    result::reading first = failed_call(code::not_supported, "nvmlDeviceGetNvLinkState");
    result::reading version = first;
    for (unsigned link = 0; link < most; ++link) {
        const auto state = read_number(api.nvlink_state, "nvmlDeviceGetNvLinkState", gpu, link);
        if (link == 0) first = state;
        if (!state.known()) continue;
        ++links;
        if (std::get<std::int64_t>(state.value) == 1) ++active;
        if (!version.known()) version = read_number(api.nvlink_version, "nvmlDeviceGetNvLinkVersion", gpu, link);
    }
    out.config("nvlink.links", 1, links > 0 ? result::reading::of(links) : first);
    out.config("nvlink.active_links", 1, links > 0 ? result::reading::of(active) : first);
    out.config("nvlink.version", 1, version);
    fabric_info fabric{};
    const int answer = api.fabric ? api.fabric(gpu, &fabric) : code::function_not_found;
    if (answer != code::success) {
        out.config("nvlink.fabric_state", 1, failed_call(answer, "nvmlDeviceGetGpuFabricInfo"));
        return;
    }
    out.config("nvlink.fabric_state", 1,
               named(result::reading::of(static_cast<std::int64_t>(fabric.state)),
                     {"not supported", "not started", "in progress", "completed"}));
    if (fabric.state == 3) {
        out.config("nvlink.fabric_status", 1, result::reading::of(code_name(fabric.status)));
    }
}

/// P2P and topology of this GPU to every other one: "0000:2b:00.0=nvlink-or-pcie level/p2p status".
[[nodiscard]] inline result::reading peers(const host& machine, device_handle gpu) {
    const nvml_api& api = *machine.nvml;
    const auto count = device_count(machine);
    if (!count.known()) return count;
    if (!api.common_ancestor) return failed_call(code::function_not_found, "nvmlDeviceGetTopologyCommonAncestor");
    const std::string self = bus_id_of(api, gpu);
    std::vector<std::string> found;
    for (unsigned i = 0; i < static_cast<unsigned>(std::get<std::int64_t>(count.value)); ++i) {
        device_handle other = nullptr;
        if (!api.handle_by_index || api.handle_by_index(i, &other) != code::success) continue;
        const std::string id = bus_id_of(api, other);
        if (id == self) continue;
        unsigned level = 0, p2p = 0;
        const auto far = api.common_ancestor(gpu, other, &level) == code::success
                             ? result::reading::of(static_cast<std::int64_t>(level / 10))
                             : result::reading::unsupported("");
        const std::string text =
            far.known() ? to_string(named(far, {"board", "switch", "switches", "host bridge", "node", "system"}).value)
                        : "?";
        const bool read = api.p2p_status && api.p2p_status(gpu, other, 0, &p2p) == code::success;
        found.push_back(id + "=" + text + "/" + (read ? (p2p == 0 ? "p2p" : "no p2p " + std::to_string(p2p)) : "?"));
    }
    if (found.empty()) return result::reading::absent("no other GPU");
    return result::reading::of(environment::detail::join(found, " "));
}

inline void read_limits(recorder& out, const nvml_api& api, device_handle gpu) {
    const auto [least, most] = read_pair(api.power_limit_range, "nvmlDeviceGetPowerManagementLimitConstraints", gpu);
    out.config("gpu.power_limit_min_w", 1, as_watts(least));
    out.config("gpu.power_limit_max_w", 1, as_watts(most));
    out.config("gpu.power_limit_default_w", 1,
               as_watts(read_number(api.power_default_limit, "nvmlDeviceGetPowerManagementDefaultLimit", gpu)));
    out.config("gpu.power_limit_w", 1,
               as_watts(read_number(api.power_limit, "nvmlDeviceGetPowerManagementLimit", gpu)));
    out.config("gpu.power_limit_enforced_w", 1,
               as_watts(read_number(api.power_enforced_limit, "nvmlDeviceGetEnforcedPowerLimit", gpu)));
    constexpr unsigned sm = 1, memory = 2; // nvmlClockType_t
    out.config("gpu.max_sm_clock_mhz", 1, read_number(api.max_clock, "nvmlDeviceGetMaxClockInfo", gpu, sm));
    out.config("gpu.max_memory_clock_mhz", 1, read_number(api.max_clock, "nvmlDeviceGetMaxClockInfo", gpu, memory));
    const char* application = "nvmlDeviceGetApplicationsClock";
    out.config("gpu.application_sm_clock_mhz", 1, read_number(api.application_clock, application, gpu, sm));
    out.config("gpu.application_memory_clock_mhz", 1, read_number(api.application_clock, application, gpu, memory));
    out.config("gpu.default_sm_clock_mhz", 1,
               read_number(api.default_application_clock, "nvmlDeviceGetDefaultApplicationsClock", gpu, sm));
    out.config("gpu.auto_boost", 1,
               as_flag(read_pair(api.auto_boost, "nvmlDeviceGetAutoBoostedClocksEnabled", gpu).first));
    clock_offset offset{clock_offset_version, sm, 0, 0, 0, 0};
    const int answer = api.clock_offsets ? api.clock_offsets(gpu, &offset) : code::function_not_found;
    out.config("gpu.sm_clock_offset_mhz", 1,
               answer == code::success ? result::reading::of(std::int64_t{offset.offset_mhz})
                                       : failed_call(answer, "nvmlDeviceGetClockOffsets"));
}

} // namespace detail

/// Configuration of a GPU that NVML can read: what may differ between two runs on it and explain a change.
inline void read_config(result::fingerprint& into, const host& machine, const device& gpu) {
    recorder out(into, "nvml");
    const nvml_api& api = *machine.nvml;
    const device_handle h = gpu.handle;
    out.config("gpu.name", 1, read_text(api.name, h, "nvmlDeviceGetName"));
    out.config("gpu.unit", 1, hashed(read_text(api.uuid, gpu.mig != nullptr ? gpu.mig : h, "nvmlDeviceGetUUID")));
    out.config("gpu.board", 1, hashed(read_text(api.uuid, h, "nvmlDeviceGetUUID")));
    out.config("gpu.serial", 1, hashed(read_text(api.serial, h, "nvmlDeviceGetSerial")));
    out.config("gpu.board_part_number", 1, read_text(api.board_part_number, h, "nvmlDeviceGetBoardPartNumber"));
    out.config("gpu.vbios", 1, read_text(api.vbios_version, h, "nvmlDeviceGetVbiosVersion"));
    out.config("gpu.inforom", 1, read_text(api.inforom_version, h, "nvmlDeviceGetInforomImageVersion"));
    out.config("gpu.module_id", 1, read_number(api.module_id, "nvmlDeviceGetModuleId", h));
    out.config("gpu.bus_width_bits", 1, read_number(api.bus_width, "nvmlDeviceGetMemoryBusWidth", h));
    out.config("gpu.gsp_firmware", 1, detail::gsp_firmware(api, h));
    out.config("gpu.gsp_enabled", 1, as_flag(detail::read_pair(api.gsp_mode, "nvmlDeviceGetGspFirmwareMode", h).first));
    const auto [ecc, ecc_pending] = detail::read_pair(api.ecc_mode, "nvmlDeviceGetEccMode", h);
    out.config("gpu.ecc", 1, as_flag(ecc));
    out.config("gpu.ecc_pending", 1, as_flag(ecc_pending));
    const auto [mig, mig_pending] = detail::read_pair(api.mig_mode, "nvmlDeviceGetMigMode", h);
    out.config("gpu.mig", 1, as_flag(mig));
    out.config("gpu.mig_pending", 1, as_flag(mig_pending));
    out.config("gpu.virtualization", 1,
               detail::named(read_number(api.virtualization_mode, "nvmlDeviceGetVirtualizationMode", h),
                             {"none", "passthrough", "vgpu", "host vgpu", "host vsga"}));
    out.config("gpu.compute_mode", 1,
               detail::named(read_number(api.compute_mode, "nvmlDeviceGetComputeMode", h),
                             {"default", "exclusive thread", "prohibited", "exclusive process"}));
    out.config("gpu.persistence", 1, as_flag(read_number(api.persistence_mode, "nvmlDeviceGetPersistenceMode", h)));
    out.config("gpu.display", 1, as_flag(read_number(api.display_active, "nvmlDeviceGetDisplayActive", h)));
    detail::read_limits(out, api, h);
    bar1_info bar1{};
    const int answer = api.bar1 ? api.bar1(h, &bar1) : code::function_not_found;
    out.config("gpu.bar1_bytes", 1,
               answer == code::success ? result::reading::of(static_cast<std::int64_t>(bar1.total))
                                       : failed_call(answer, "nvmlDeviceGetBAR1MemoryInfo"));
    out.config("pcie.max_generation", 1, read_number(api.link_max_generation, "nvmlDeviceGetMaxPcieLinkGeneration", h));
    out.config("pcie.max_width", 1, read_number(api.link_max_width, "nvmlDeviceGetMaxPcieLinkWidth", h));
    out.config("pcie.gpu_max_generation", 1,
               read_number(api.gpu_max_link_generation, "nvmlDeviceGetGpuMaxPcieLinkGeneration", h));
    detail::read_nvlink(out, api, h);
    out.config("gpu.peers", 1, detail::peers(machine, h));
}

} // namespace environment::nvidia

PLUMBLINE_NAMESPACE_END

#endif
