// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_NVIDIA_NVML_HPP
#define PLUMBLINE_ENVIRONMENT_NVIDIA_NVML_HPP

#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>

#include "plumbline/result/reading.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// NVML as plumbline uses it, declared here because nvml.h is often not installed where the library is. Names follow
/// the C API without its prefix; layouts are those of NVML 11 to 13, which never change a released structure.
namespace nvidia {

/// nvmlReturn_t, the codes that are told apart.
namespace code {
inline constexpr int success = 0;
inline constexpr int not_supported = 3;
inline constexpr int no_permission = 4;
inline constexpr int not_found = 6;
inline constexpr int insufficient_size = 7;
inline constexpr int driver_not_loaded = 9;
inline constexpr int function_not_found = 13;
inline constexpr int gpu_is_lost = 15;
inline constexpr int version_mismatch = 18;
} // namespace code

/// Opaque nvmlDevice_t.
using device_handle = void*;

struct pci_info {
    char bus_id_legacy[16];
    unsigned domain, bus, device;
    unsigned pci_device_id;    ///< device id << 16 | vendor id
    unsigned pci_subsystem_id; ///< subsystem device id << 16 | subsystem vendor id
    char bus_id[32];
};

struct memory_info { ///< nvmlMemory_v2_t; `version` is set by the caller
    unsigned version;
    unsigned long long total, reserved, free, used;
};
inline constexpr unsigned memory_info_version = static_cast<unsigned>(sizeof(memory_info)) | 2u << 24;

struct memory_info_v1 {
    unsigned long long total, free, used;
};

struct bar1_info {
    unsigned long long total, free, used;
};

struct mig_attributes { ///< nvmlDeviceAttributes_t
    unsigned sm_count, copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
    unsigned gpu_slices, compute_slices;
    unsigned long long memory_mib;
};

struct utilization {
    unsigned gpu, memory; ///< percent over the last sample period
};

struct process_info { ///< nvmlProcessInfo_t of the _v3 calls
    unsigned pid;
    unsigned long long used_bytes; ///< all ones: not available
    unsigned gpu_instance, compute_instance;
};

struct process_sample { ///< nvmlProcessUtilizationSample_t
    unsigned pid;
    unsigned long long timestamp_us;
    unsigned sm, memory, encoder, decoder; ///< percent
};

struct violation_time {
    unsigned long long reference_us, violation_ns;
};

struct field_value { ///< nvmlFieldValue_t
    unsigned id, scope;
    long long timestamp_us, latency_us;
    unsigned type;
    int code;
    union {
        double d;
        unsigned ui;
        unsigned long ul;
        unsigned long long ull;
    } value;
};
inline constexpr unsigned field_memory_temperature = 82; ///< NVML_FI_DEV_MEMORY_TEMP

struct license_feature { ///< nvmlGridLicensableFeature_t
    int feature;
    unsigned state; ///< 1: licensed
    char info[128], product[128];
    unsigned enabled;
    struct {
        unsigned year;
        unsigned short month, day, hour, minute, second;
        unsigned char status;
    } expiry;
};
struct license_features { ///< nvmlGridLicensableFeatures_t
    int supported;
    unsigned count;
    license_feature features[3];
};

struct fabric_info { ///< nvmlGpuFabricInfo_t
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state; ///< 0 not supported, 1 not started, 2 in progress, 3 completed
};

struct confidential_state {
    unsigned environment, feature, dev_tools;
};

struct clock_offset { ///< nvmlClockOffset_v1_t
    unsigned version;
    unsigned type, pstate;
    int offset_mhz, min_mhz, max_mhz;
};
inline constexpr unsigned clock_offset_version = static_cast<unsigned>(sizeof(clock_offset)) | 1u << 24;

// The sizes that NVML's own header gives on a 64-bit machine: a wrong layout would be read as nonsense, not refused.
static_assert(sizeof(pci_info) == 68 && sizeof(memory_info) == 40 && sizeof(process_info) == 24);
static_assert(sizeof(process_sample) == 32 && sizeof(field_value) == 40 && sizeof(mig_attributes) == 40);
static_assert(sizeof(license_features) == 8 + 3 * 284 && sizeof(fabric_info) == 28 && sizeof(clock_offset) == 24);

/// nvmlClocksEventReasons bits that mean "slower than asked for".
namespace clock_reason {
inline constexpr unsigned long long idle = 0x1;
inline constexpr unsigned long long application_clocks = 0x2;
inline constexpr unsigned long long sw_power_cap = 0x4;
inline constexpr unsigned long long hw_slowdown = 0x8;
inline constexpr unsigned long long sync_boost = 0x10;
inline constexpr unsigned long long sw_thermal = 0x20;
inline constexpr unsigned long long hw_thermal = 0x40;
inline constexpr unsigned long long hw_power_brake = 0x80;
inline constexpr unsigned long long display_clock = 0x100;
} // namespace clock_reason

/// The functions of libnvidia-ml.so.1 that are used. An empty one is not in the library that was found. A test fills
/// in its own; std::function, so that a fake can hold state. NVML reads may stall the host for milliseconds: nothing
/// may call them while something is being timed.
struct nvml_api {
    template <class Signature>
    using function = std::function<Signature>;
    using text_query = function<int(device_handle, char*, unsigned)>;
    using unsigned_query = function<int(device_handle, unsigned*)>;
    using unsigned_pair_query = function<int(device_handle, unsigned*, unsigned*)>;
    using processes_query = function<int(device_handle, unsigned*, process_info*)>;

    function<int()> init, shutdown;
    function<int(char*, unsigned)> driver_version, nvml_version;
    function<int(int*)> cuda_driver_version;
    function<int(confidential_state*)> confidential_computing;
    function<int(unsigned*)> device_count;
    function<int(unsigned, device_handle*)> handle_by_index;
    function<int(const char*, device_handle*)> handle_by_pci, handle_by_uuid;
    text_query name, uuid, serial, board_part_number, vbios_version, inforom_version;
    function<int(device_handle, char*)> gsp_version;
    unsigned_pair_query gsp_mode, mig_mode, ecc_mode, power_limit_range;
    function<int(device_handle, pci_info*)> pci;
    unsigned_query module_id, power_limit, power_default_limit, power_enforced_limit, power_usage, virtualization_mode,
        compute_mode, persistence_mode, performance_state, display_mode, display_active, link_generation, link_width,
        link_max_generation, link_max_width, gpu_max_link_generation, pcie_replays, core_count, bus_width,
        is_mig_device, gpu_instance_id, compute_instance_id;
    function<int(device_handle, unsigned, unsigned*)> max_clock, clock, application_clock, default_application_clock,
        temperature, fan_speed, nvlink_state, nvlink_version;
    function<int(device_handle, device_handle*)> parent_of_mig;
    function<int(device_handle, unsigned, device_handle*)> mig_device;
    function<int(device_handle, mig_attributes*)> attributes;
    function<int(device_handle, license_features*)> license;
    function<int(device_handle, unsigned, unsigned, unsigned long long*)> total_ecc_errors;
    function<int(device_handle, unsigned*, unsigned*, unsigned*, unsigned*)> remapped_rows;
    function<int(device_handle, unsigned, unsigned*, unsigned long long*)> retired_pages;
    unsigned_pair_query auto_boost;
    function<int(device_handle, clock_offset*)> clock_offsets;
    function<int(device_handle, unsigned long long*)> energy, clock_reasons, clock_reasons_old;
    function<int(device_handle, int, field_value*)> field_values;
    function<int(device_handle, unsigned, violation_time*)> violation;
    function<int(device_handle, memory_info*)> memory;
    function<int(device_handle, memory_info_v1*)> memory_v1;
    function<int(device_handle, bar1_info*)> bar1;
    processes_query compute_processes, graphics_processes, mps_processes;
    function<int(device_handle, utilization*)> utilization_rates;
    function<int(device_handle, process_sample*, unsigned*, unsigned long long)> process_utilization;
    function<int(device_handle, fabric_info*)> fabric;
    function<int(device_handle, device_handle, unsigned*)> common_ancestor;
    function<int(device_handle, device_handle, unsigned, unsigned*)> p2p_status;
    function<int(device_handle, unsigned, unsigned long*)> cpu_affinity;
    function<int(device_handle, int*, int*)> compute_capability;

    /// Calls f(symbol name, function) for each member: the one list of names, used to load and to fake.
    template <class F>
    void each(F&& f) {
        system_functions(f);
        identity_functions(f);
        state_functions(f);
    }

private:
    template <class F>
    void system_functions(F& f) {
        f("nvmlInit_v2", init), f("nvmlShutdown", shutdown);
        f("nvmlSystemGetDriverVersion", driver_version), f("nvmlSystemGetNVMLVersion", nvml_version);
        f("nvmlSystemGetCudaDriverVersion_v2", cuda_driver_version);
        f("nvmlSystemGetConfComputeState", confidential_computing);
        f("nvmlDeviceGetCount_v2", device_count), f("nvmlDeviceGetHandleByIndex_v2", handle_by_index);
        f("nvmlDeviceGetHandleByPciBusId_v2", handle_by_pci), f("nvmlDeviceGetHandleByUUID", handle_by_uuid);
        f("nvmlDeviceGetTopologyCommonAncestor", common_ancestor), f("nvmlDeviceGetP2PStatus", p2p_status);
    }
    template <class F>
    void identity_functions(F& f) {
        f("nvmlDeviceGetName", name), f("nvmlDeviceGetUUID", uuid), f("nvmlDeviceGetSerial", serial);
        f("nvmlDeviceGetBoardPartNumber", board_part_number), f("nvmlDeviceGetVbiosVersion", vbios_version);
        f("nvmlDeviceGetInforomImageVersion", inforom_version), f("nvmlDeviceGetGspFirmwareVersion", gsp_version);
        f("nvmlDeviceGetGspFirmwareMode", gsp_mode), f("nvmlDeviceGetMigMode", mig_mode);
        f("nvmlDeviceGetEccMode", ecc_mode), f("nvmlDeviceGetPciInfo_v3", pci), f("nvmlDeviceGetModuleId", module_id);
        f("nvmlDeviceGetPowerManagementLimit", power_limit);
        f("nvmlDeviceGetPowerManagementDefaultLimit", power_default_limit);
        f("nvmlDeviceGetPowerManagementLimitConstraints", power_limit_range);
        f("nvmlDeviceGetEnforcedPowerLimit", power_enforced_limit);
        f("nvmlDeviceGetVirtualizationMode", virtualization_mode), f("nvmlDeviceGetComputeMode", compute_mode);
        f("nvmlDeviceGetPersistenceMode", persistence_mode), f("nvmlDeviceGetMaxClockInfo", max_clock);
        f("nvmlDeviceGetApplicationsClock", application_clock);
        f("nvmlDeviceGetDefaultApplicationsClock", default_application_clock);
        f("nvmlDeviceGetAutoBoostedClocksEnabled", auto_boost), f("nvmlDeviceGetClockOffsets", clock_offsets);
        f("nvmlDeviceGetNumGpuCores", core_count), f("nvmlDeviceGetMemoryBusWidth", bus_width);
        f("nvmlDeviceGetCudaComputeCapability", compute_capability), f("nvmlDeviceGetCpuAffinity", cpu_affinity);
        f("nvmlDeviceIsMigDeviceHandle", is_mig_device), f("nvmlDeviceGetAttributes_v2", attributes);
        f("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", parent_of_mig);
        f("nvmlDeviceGetMigDeviceHandleByIndex", mig_device), f("nvmlDeviceGetGpuInstanceId", gpu_instance_id);
        f("nvmlDeviceGetComputeInstanceId", compute_instance_id);
        f("nvmlDeviceGetGridLicensableFeatures_v4", license), f("nvmlDeviceGetDisplayMode", display_mode);
        f("nvmlDeviceGetMaxPcieLinkGeneration", link_max_generation);
        f("nvmlDeviceGetMaxPcieLinkWidth", link_max_width);
        f("nvmlDeviceGetGpuMaxPcieLinkGeneration", gpu_max_link_generation);
    }
    template <class F>
    void state_functions(F& f) {
        f("nvmlDeviceGetClockInfo", clock), f("nvmlDeviceGetTemperature", temperature);
        f("nvmlDeviceGetFanSpeed_v2", fan_speed), f("nvmlDeviceGetPowerUsage", power_usage);
        f("nvmlDeviceGetTotalEnergyConsumption", energy), f("nvmlDeviceGetPerformanceState", performance_state);
        f("nvmlDeviceGetCurrentClocksEventReasons", clock_reasons);
        f("nvmlDeviceGetCurrentClocksThrottleReasons", clock_reasons_old);
        f("nvmlDeviceGetFieldValues", field_values), f("nvmlDeviceGetViolationStatus", violation);
        f("nvmlDeviceGetMemoryInfo_v2", memory), f("nvmlDeviceGetMemoryInfo", memory_v1);
        f("nvmlDeviceGetBAR1MemoryInfo", bar1), f("nvmlDeviceGetDisplayActive", display_active);
        f("nvmlDeviceGetTotalEccErrors", total_ecc_errors), f("nvmlDeviceGetRemappedRows", remapped_rows);
        f("nvmlDeviceGetRetiredPages", retired_pages), f("nvmlDeviceGetPcieReplayCounter", pcie_replays);
        f("nvmlDeviceGetCurrPcieLinkGeneration", link_generation), f("nvmlDeviceGetCurrPcieLinkWidth", link_width);
        f("nvmlDeviceGetNvLinkState", nvlink_state), f("nvmlDeviceGetNvLinkVersion", nvlink_version);
        f("nvmlDeviceGetGpuFabricInfo", fabric), f("nvmlDeviceGetUtilizationRates", utilization_rates);
        f("nvmlDeviceGetComputeRunningProcesses_v3", compute_processes);
        f("nvmlDeviceGetGraphicsRunningProcesses_v3", graphics_processes);
        f("nvmlDeviceGetMPSComputeRunningProcesses_v3", mps_processes);
        f("nvmlDeviceGetProcessUtilization", process_utilization);
    }
};

/// The name of an NVML return code, for messages.
[[nodiscard]] inline std::string code_name(int value) {
    switch (value) {
    case code::success:
        return "success";
    case 1:
        return "uninitialized";
    case 2:
        return "invalid argument";
    case code::not_supported:
        return "not supported";
    case code::no_permission:
        return "no permission";
    case code::not_found:
        return "not found";
    case code::insufficient_size:
        return "insufficient size";
    case code::driver_not_loaded:
        return "driver not loaded";
    case code::function_not_found:
        return "function not found";
    case code::gpu_is_lost:
        return "GPU is lost";
    case 16:
        return "reset required";
    case code::version_mismatch:
        return "driver and library versions differ";
    default:
        return "code " + std::to_string(value);
    }
}

/// The reading a failed call stands for.
[[nodiscard]] inline result::reading failed_call(int value, const std::string& call) {
    const std::string why = call + ": nvml " + std::to_string(value) + " (" + code_name(value) + ")";
    if (value == code::no_permission) return result::reading::denied(why);
    if (value == code::not_found || value == code::driver_not_loaded) return result::reading::absent(why);
    return result::reading::unsupported(why);
}

} // namespace nvidia

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
