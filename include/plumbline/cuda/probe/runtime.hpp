// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_PROBE_RUNTIME_HPP
#define PLUMBLINE_CUDA_PROBE_RUNTIME_HPP

#include <cstdint>
#include <optional>
#include <string>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "plumbline/environment/nvidia/identity.hpp"
#include "plumbline/environment/reader.hpp"
#include "plumbline/result/fingerprint.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::probe {

/// Whether CUDA starts in this process, as environment::check_context wants it.
struct start {
    int code = 0;     ///< cudaError_t
    std::string name; ///< "cudaErrorInsufficientDriver"
    int devices = 0;
};

/// Asks for the devices, which starts the driver but creates no context. Never throws.
[[nodiscard]] inline start try_start() {
    start found;
    const cudaError_t status = cudaGetDeviceCount(&found.devices);
    if (status != cudaSuccess) {
        static_cast<void>(cudaGetLastError()); // so that the next check does not report this one again
        found.devices = 0;
    }
    const cudaError_t answer = status == cudaSuccess && found.devices == 0 ? cudaErrorNoDevice : status;
    found.code = static_cast<int>(answer);
    found.name = cudaGetErrorName(answer);
    return found;
}

/// The reading a failed call of the runtime stands for.
[[nodiscard]] inline result::reading failed_call(cudaError_t status, const std::string& api) {
    static_cast<void>(cudaGetLastError());
    const std::string why = api + ": " + cudaGetErrorName(status);
    switch (status) {
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
        return result::reading::absent(why);
    case cudaErrorNotPermitted:
        return result::reading::denied(why);
    default:
        return result::reading::unsupported(why);
    }
}

/// Name under which NVML and /sys know a device ("0000:1b:00.0"): what environment::host::gpu takes.
[[nodiscard]] inline result::reading pci_bus_id(int ordinal) {
    char text[32] = {};
    const cudaError_t status = cudaDeviceGetPCIBusId(text, static_cast<int>(sizeof text), ordinal);
    if (status != cudaSuccess) return failed_call(status, "cudaDeviceGetPCIBusId");
    return result::reading::of(std::string(text));
}

namespace detail {

/// A function of the driver API, asked of the runtime so that no program links libcuda.
template <class Function>
[[nodiscard]] cudaError_t driver_function(const char* symbol, Function& into) {
    void* address = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    const cudaError_t status = cudaGetDriverEntryPointByVersion(symbol, &address, 12000, cudaEnableDefault, &found);
#else
    const cudaError_t status = cudaGetDriverEntryPoint(symbol, &address, cudaEnableDefault, &found);
#endif
    if (status != cudaSuccess) return status;
    if (found != cudaDriverEntryPointSuccess || address == nullptr) return cudaErrorSymbolNotFound;
    into = reinterpret_cast<Function>(address);
    return cudaSuccess;
}

/// "lazy" or "eager", as the driver really does it: CUDA_MODULE_LOADING is only a wish.
[[nodiscard]] inline result::reading module_loading() {
    decltype(&cuModuleGetLoadingMode) call = nullptr;
    const cudaError_t status = driver_function("cuModuleGetLoadingMode", call);
    if (status != cudaSuccess) return failed_call(status, "cuModuleGetLoadingMode");
    CUmoduleLoadingMode mode{};
    const CUresult answer = call(&mode);
    if (answer != CUDA_SUCCESS) {
        return result::reading::unsupported("cuModuleGetLoadingMode: CUresult " + std::to_string(answer));
    }
    return result::reading::of(std::string(mode == CU_MODULE_LAZY_LOADING ? "lazy" : "eager"));
}

[[nodiscard]] inline result::reading attribute(cudaDeviceAttr which, int ordinal, const char* name) {
    int value = 0;
    const cudaError_t status = cudaDeviceGetAttribute(&value, which, ordinal);
    if (status != cudaSuccess) return failed_call(status, std::string("cudaDeviceGetAttribute(") + name + ")");
    return result::reading::of(std::int64_t{value});
}

[[nodiscard]] inline result::reading flag(cudaDeviceAttr which, int ordinal, const char* name) {
    result::reading read = attribute(which, ordinal, name);
    if (read.known()) read.value = std::get<std::int64_t>(read.value) != 0;
    return read;
}

/// Puts an identity attribute where nothing better is known: NVML's reading, which needs no CUDA, comes first, so
/// that a fingerprint taken without CUDA has the same hash.
inline void identity_if_unknown(environment::recorder& out, const std::string& name, result::reading read) {
    const result::attribute* known = out.fingerprint().find(name);
    if (known == nullptr || !known->read.known()) out.identity(name, 1, std::move(read));
}

} // namespace detail

/// CUDA itself: versions compiled with, linked to and offered by the driver; number of devices; how modules load.
/// Creates no context.
inline void read_runtime(result::fingerprint& into) {
    environment::recorder out(into, "cudart");
    out.config("cuda.compiled_version", 2, result::reading::of(std::int64_t{CUDART_VERSION}));
    int version = 0;
    cudaError_t status = cudaRuntimeGetVersion(&version);
    out.config("cuda.runtime_version", 2,
               status == cudaSuccess ? result::reading::of(std::int64_t{version})
                                     : failed_call(status, "cudaRuntimeGetVersion"));
    version = 0;
    status = cudaDriverGetVersion(&version); // 0 and success where there is no driver
    out.config("cuda.driver_version", 1,
               status != cudaSuccess ? failed_call(status, "cudaDriverGetVersion")
               : version == 0        ? result::reading::absent("cudaDriverGetVersion: no driver is loaded")
                                     : result::reading::of(std::int64_t{version}));
    const start begun = try_start();
    out.config("cuda.devices", 1,
               begun.code == 0 ? result::reading::of(std::int64_t{begun.devices})
                               : failed_call(static_cast<cudaError_t>(begun.code), "cudaGetDeviceCount"));
    out.config("cuda.module_loading", 2,
               begun.code == 0 ? detail::module_loading()
                               : failed_call(static_cast<cudaError_t>(begun.code), "cuModuleGetLoadingMode"));
}

/// One device as the runtime sees it. Creates no context, so it disturbs nobody's cold start.
inline void read_device(result::fingerprint& into, int ordinal) {
    environment::recorder out(into, "cudart");
    const auto number = [&](cudaDeviceAttr which, const char* name) { return detail::attribute(which, ordinal, name); };
    const auto flag = [&](cudaDeviceAttr which, const char* name) { return detail::flag(which, ordinal, name); };
    const auto major = number(cudaDevAttrComputeCapabilityMajor, "ComputeCapabilityMajor");
    const auto minor = number(cudaDevAttrComputeCapabilityMinor, "ComputeCapabilityMinor");
    result::reading capability = major.known() ? minor : major;
    if (major.known() && minor.known()) {
        capability.value = static_cast<double>(std::get<std::int64_t>(major.value)) +
                           static_cast<double>(std::get<std::int64_t>(minor.value)) / 10;
    }
    out.config("gpu.compute_capability", 1, capability);
    detail::identity_if_unknown(out, "gpu.sm_count", number(cudaDevAttrMultiProcessorCount, "MultiProcessorCount"));
#if CUDART_VERSION >= 13000
    for (const auto& [which, name] : {std::pair{cudaDevAttrGpuPciDeviceId, "gpu.pci_device_id"},
                                      std::pair{cudaDevAttrGpuPciSubsystemId, "gpu.pci_subsystem_id"}}) {
        result::reading id = number(which, name);
        if (id.known()) {
            const auto bits = static_cast<unsigned>(std::get<std::int64_t>(id.value));
            id.value = environment::nvidia::detail::pci_pair(bits);
        }
        detail::identity_if_unknown(out, name, id);
    }
#endif
    out.config("gpu.l2_bytes", 1, number(cudaDevAttrL2CacheSize, "L2CacheSize"));
    out.config("gpu.cuda_bus_width_bits", 1, number(cudaDevAttrGlobalMemoryBusWidth, "GlobalMemoryBusWidth"));
    out.config("gpu.cuda_max_clock_khz", 1, number(cudaDevAttrClockRate, "ClockRate"));
    out.config("gpu.cuda_memory_clock_khz", 1, number(cudaDevAttrMemoryClockRate, "MemoryClockRate"));
    out.config("gpu.copy_engines", 1, number(cudaDevAttrAsyncEngineCount, "AsyncEngineCount"));
    out.config("gpu.cuda_ecc", 1, flag(cudaDevAttrEccEnabled, "EccEnabled"));
    out.config("gpu.integrated", 1, flag(cudaDevAttrIntegrated, "Integrated"));
    out.config("gpu.pageable_access", 1, flag(cudaDevAttrPageableMemoryAccess, "PageableMemoryAccess"));
    out.config("gpu.host_atomics", 1, flag(cudaDevAttrHostNativeAtomicSupported, "HostNativeAtomicSupported"));
    out.config("gpu.kernel_timeout", 1, flag(cudaDevAttrKernelExecTimeout, "KernelExecTimeout"));
#if CUDART_VERSION >= 12040
    out.config("cuda.mps", 1, flag(cudaDevAttrMpsEnabled, "MpsEnabled"));
    out.config("gpu.host_numa_node", 4, number(cudaDevAttrHostNumaId, "HostNumaId"));
#endif
}

/// What needs a context: flags and limits of the current device. Call it after the work, in the process that did it.
inline void read_context(result::fingerprint& into) {
    environment::recorder out(into, "cudart");
    unsigned flags = 0;
    cudaError_t status = cudaGetDeviceFlags(&flags);
    out.config("cuda.device_flags", 2,
               status == cudaSuccess ? result::reading::of(std::int64_t{flags})
                                     : failed_call(status, "cudaGetDeviceFlags"));
    for (const auto& [limit, name] : {std::pair{cudaLimitStackSize, "cuda.limit_stack_bytes"},
                                      std::pair{cudaLimitMallocHeapSize, "cuda.limit_heap_bytes"},
                                      std::pair{cudaLimitMaxL2FetchGranularity, "cuda.limit_l2_fetch_bytes"},
                                      std::pair{cudaLimitPersistingL2CacheSize, "cuda.limit_persisting_l2_bytes"}}) {
        std::size_t value = 0;
        status = cudaDeviceGetLimit(&value, limit);
        out.config(name, 2,
                   status == cudaSuccess ? result::reading::of(static_cast<std::int64_t>(value))
                                         : failed_call(status, "cudaDeviceGetLimit"));
    }
    std::size_t free_bytes = 0, total_bytes = 0;
    status = cudaMemGetInfo(&free_bytes, &total_bytes);
    out.state("gpu.memory_free_bytes", 1,
              status == cudaSuccess ? result::reading::of(static_cast<std::int64_t>(free_bytes))
                                    : failed_call(status, "cudaMemGetInfo"));
    // For machines without NVML only; to GiB the two agree, because what the driver reserves is less than half of one.
    result::reading gib = failed_call(status, "cudaMemGetInfo");
    if (status == cudaSuccess) gib = result::reading::of(static_cast<std::int64_t>((total_bytes + (1u << 29)) >> 30));
    detail::identity_if_unknown(out, "gpu.memory_gib", gib);
}

} // namespace cuda::probe

PLUMBLINE_NAMESPACE_END

#endif
