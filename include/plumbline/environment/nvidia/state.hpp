// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_NVIDIA_STATE_HPP
#define PLUMBLINE_ENVIRONMENT_NVIDIA_STATE_HPP

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/environment/nvidia/activity.hpp"
#include "plumbline/environment/nvidia/device.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::nvidia {

/// The clock event reasons in words: "sw_power_cap hw_thermal", or "none".
[[nodiscard]] inline std::string clock_reason_names(unsigned long long reasons) {
    static constexpr std::pair<unsigned long long, const char*> names[] = {
        {clock_reason::idle, "idle"},
        {clock_reason::application_clocks, "application_clocks"},
        {clock_reason::sw_power_cap, "sw_power_cap"},
        {clock_reason::hw_slowdown, "hw_slowdown"},
        {clock_reason::sync_boost, "sync_boost"},
        {clock_reason::sw_thermal, "sw_thermal"},
        {clock_reason::hw_thermal, "hw_thermal"},
        {clock_reason::hw_power_brake, "hw_power_brake"},
        {clock_reason::display_clock, "display_clock"}};
    std::vector<std::string> found;
    for (const auto& [bit, name] : names) {
        if ((reasons & bit) != 0) found.emplace_back(name);
    }
    return found.empty() ? "none" : environment::detail::join(found, " ");
}

/// The clock event reasons of this moment as NVML's bits; the call was renamed, and older drivers know the old name.
[[nodiscard]] inline result::reading clock_reasons(const nvml_api& api, device_handle gpu) {
    unsigned long long bits = 0;
    int answer = api.clock_reasons ? api.clock_reasons(gpu, &bits) : code::function_not_found;
    if (answer != code::success && api.clock_reasons_old) answer = api.clock_reasons_old(gpu, &bits);
    if (answer != code::success) return failed_call(answer, "nvmlDeviceGetCurrentClocksEventReasons");
    return result::reading::of(static_cast<std::int64_t>(bits));
}

namespace detail {

/// Pending repairs of the memory: rows being remapped, pages retired, errors that could not be corrected.
inline void read_memory_health(recorder& out, const nvml_api& api, device_handle gpu) {
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    int answer = api.remapped_rows ? api.remapped_rows(gpu, &corrected, &uncorrected, &pending, &failed)
                                   : code::function_not_found;
    const auto why = failed_call(answer, "nvmlDeviceGetRemappedRows");
    const auto rows = [&](unsigned n) {
        return answer == code::success ? result::reading::of(static_cast<std::int64_t>(n)) : why;
    };
    out.state("gpu.rows_remapped_corrected", 1, rows(corrected));
    out.state("gpu.rows_remapped_uncorrected", 1, rows(uncorrected));
    out.state("gpu.row_remap_pending", 1, as_flag(rows(pending)));
    out.state("gpu.row_remap_failed", 1, as_flag(rows(failed)));
    constexpr unsigned double_bit = 1; // NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR
    unsigned pages = 0;
    answer = api.retired_pages ? api.retired_pages(gpu, double_bit, &pages, nullptr) : code::function_not_found;
    if (answer == code::insufficient_size) answer = code::success; // it has told the number, which is what we want
    out.state("gpu.pages_retired", 1,
              answer == code::success ? result::reading::of(static_cast<std::int64_t>(pages))
                                      : failed_call(answer, "nvmlDeviceGetRetiredPages"));
    constexpr unsigned since_boot = 0; // NVML_VOLATILE_ECC
    for (const auto& [type, name] : {std::pair{0u, "gpu.ecc_corrected"}, std::pair{1u, "gpu.ecc_uncorrected"}}) {
        unsigned long long errors = 0;
        answer = api.total_ecc_errors ? api.total_ecc_errors(gpu, type, since_boot, &errors) : code::function_not_found;
        out.state(name, 1,
                  answer == code::success ? result::reading::of(static_cast<std::int64_t>(errors))
                                          : failed_call(answer, "nvmlDeviceGetTotalEccErrors"));
    }
}

[[nodiscard]] inline result::reading memory_temperature(const nvml_api& api, device_handle gpu) {
    field_value field{};
    field.id = field_memory_temperature;
    int answer = api.field_values ? api.field_values(gpu, 1, &field) : code::function_not_found;
    if (answer == code::success) answer = field.code;
    if (answer != code::success) return failed_call(answer, "nvmlDeviceGetFieldValues(memory temperature)");
    return result::reading::of(static_cast<std::int64_t>(field.value.ui));
}

/// "licensed", "unlicensed", or not a vGPU at all.
[[nodiscard]] inline result::reading vgpu_license(const nvml_api& api, device_handle gpu) {
    license_features license{};
    const int answer = api.license ? api.license(gpu, &license) : code::function_not_found;
    if (answer != code::success) return failed_call(answer, "nvmlDeviceGetGridLicensableFeatures_v4");
    if (license.supported == 0) return result::reading::absent("no licence is needed on this GPU");
    for (unsigned i = 0; i < license.count && i < 3; ++i) {
        if (license.features[i].state == 1) return result::reading::of(std::string("licensed"));
    }
    return result::reading::of(std::string("unlicensed"));
}

inline void read_activity(recorder& out, const nvml_api& api, device_handle gpu) {
    const activity now = look(api, gpu);
    const auto unknown = result::reading::unsupported("NVML does not say");
    out.state("gpu.memory_used_bytes", 1,
              now.used_bytes ? result::reading::of(static_cast<std::int64_t>(*now.used_bytes)) : unknown);
    out.state("gpu.utilization_percent", 1,
              now.utilization_percent ? result::reading::of(std::int64_t{*now.utilization_percent}) : unknown);
    out.state("gpu.processes", 1,
              now.processes ? result::reading::of(static_cast<std::int64_t>(now.processes->size())) : unknown);
}

} // namespace detail

/// The momentary state of a GPU. Taken outside of timed sections: reads can stall the host
/// (NVIDIA/open-gpu-kernel-modules#1248).
inline void read_state(result::fingerprint& into, const host& machine, const device& gpu) {
    recorder out(into, "nvml");
    const nvml_api& api = *machine.nvml;
    const device_handle h = gpu.handle;
    constexpr unsigned sm = 1, memory = 2, core_sensor = 0, first_fan = 0;
    out.state("gpu.sm_clock_mhz", 1, read_number(api.clock, "nvmlDeviceGetClockInfo", h, sm));
    out.state("gpu.memory_clock_mhz", 1, read_number(api.clock, "nvmlDeviceGetClockInfo", h, memory));
    out.state("gpu.performance_state", 1, read_number(api.performance_state, "nvmlDeviceGetPerformanceState", h));
    out.state("gpu.temperature_c", 1, read_number(api.temperature, "nvmlDeviceGetTemperature", h, core_sensor));
    out.state("gpu.memory_temperature_c", 1, detail::memory_temperature(api, h));
    out.state("gpu.fan_percent", 1, read_number(api.fan_speed, "nvmlDeviceGetFanSpeed_v2", h, first_fan));
    out.state("gpu.power_w", 1, as_watts(read_number(api.power_usage, "nvmlDeviceGetPowerUsage", h)));
    unsigned long long millijoules = 0;
    int answer = api.energy ? api.energy(h, &millijoules) : code::function_not_found;
    out.state("gpu.energy_j", 1,
              answer == code::success ? result::reading::of(static_cast<double>(millijoules) * 1e-3)
                                      : failed_call(answer, "nvmlDeviceGetTotalEnergyConsumption"));
    result::reading reasons = clock_reasons(api, h);
    if (reasons.known()) {
        reasons.value = clock_reason_names(static_cast<unsigned long long>(std::get<std::int64_t>(reasons.value)));
    }
    out.state("gpu.clock_reasons", 1, reasons);
    for (const auto& [policy, name] :
         {std::pair{0u, "gpu.power_violation_ns"}, std::pair{1u, "gpu.thermal_violation_ns"}}) {
        violation_time time{};
        answer = api.violation ? api.violation(h, policy, &time) : code::function_not_found;
        out.state(name, 1,
                  answer == code::success ? result::reading::of(static_cast<std::int64_t>(time.violation_ns))
                                          : failed_call(answer, "nvmlDeviceGetViolationStatus"));
    }
    detail::read_activity(out, api, h);
    detail::read_memory_health(out, api, h);
    out.state("gpu.vgpu_license", 1, detail::vgpu_license(api, h));
    // An idle link legally drops to a lower generation: only a reading under load says what it can do.
    out.state("pcie.generation", 1, read_number(api.link_generation, "nvmlDeviceGetCurrPcieLinkGeneration", h));
    out.state("pcie.width", 1, read_number(api.link_width, "nvmlDeviceGetCurrPcieLinkWidth", h));
    out.state("pcie.replays", 1, read_number(api.pcie_replays, "nvmlDeviceGetPcieReplayCounter", h));
}

} // namespace environment::nvidia

PLUMBLINE_NAMESPACE_END

#endif
