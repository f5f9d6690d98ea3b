// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_DEVICE_HPP
#define PLUMBLINE_CUDA_DEVICE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>

#include "plumbline/core/error.hpp"
#include "plumbline/core/hash.hpp"
#include "plumbline/cuda/error.hpp"
#include "plumbline/cuda/probe/runtime.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// What the backend and its fixtures need to know of a device.
struct device_info {
    int ordinal = 0;
    std::string model;
    std::string uuid; ///< "GPU-xxxxxxxx-xxxx-...", as nvidia-smi prints it; stored only as a hash
    int compute_major = 0;
    int compute_minor = 0;
    int sm_count = 0;
    std::size_t l2_bytes = 0;
    std::size_t memory_bytes = 0;

    /// Compute capability as one number: 90 for 9.0.
    [[nodiscard]] int capability() const noexcept { return compute_major * 10 + compute_minor; }
};

[[nodiscard]] inline int device_attribute(cudaDeviceAttr attribute, int ordinal) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, attribute, ordinal), "cudaDeviceGetAttribute",
          "device " + std::to_string(ordinal));
    return value;
}

/// Number of devices CUDA offers; throws environment_error with the reason when it cannot start or offers none.
[[nodiscard]] inline int device_count() {
    const probe::start found = probe::try_start();
    if (found.code != 0) {
        const auto why = static_cast<cudaError_t>(found.code);
        throw environment_error("cuda.device_count", std::string("CUDA cannot start: ") + cudaGetErrorName(why) + " (" +
                                                         cudaGetErrorString(why) + "); " +
                                                         (*remedy(why) != '\0' ? remedy(why) : "run nvidia-smi"));
    }
    return found.devices;
}

namespace detail {

inline std::string uuid_text(const cudaUUID_t& uuid) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text = "GPU-";
    for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

} // namespace detail

/// Reads device `ordinal`; throws environment_error when CUDA cannot start, usage_error when there is no such device.
[[nodiscard]] inline device_info read_device(int ordinal) {
    const int count = device_count();
    if (ordinal < 0 || ordinal >= count) {
        throw usage_error("there is no CUDA device " + std::to_string(ordinal) + "; this process sees " +
                          std::to_string(count) + " (0 to " + std::to_string(count - 1) +
                          ", see CUDA_VISIBLE_DEVICES)");
    }
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties",
          "device " + std::to_string(ordinal));
    device_info info;
    info.ordinal = ordinal;
    info.model = properties.name;
    info.uuid = detail::uuid_text(properties.uuid);
    info.compute_major = properties.major;
    info.compute_minor = properties.minor;
    info.sm_count = properties.multiProcessorCount;
    info.l2_bytes = static_cast<std::size_t>(properties.l2CacheSize);
    info.memory_bytes = properties.totalGlobalMem;
    return info;
}

/// The device as a baseline stores it.
[[nodiscard]] inline result::device describe(const device_info& info) {
    result::device stored;
    stored.backend = "cuda";
    stored.model = info.model;
    stored.uuid = short_hash(info.uuid);
    stored.properties["sm_count"] = std::int64_t{info.sm_count};
    stored.properties["l2_bytes"] = static_cast<std::int64_t>(info.l2_bytes);
    stored.properties["memory_bytes"] = static_cast<std::int64_t>(info.memory_bytes);
    stored.properties["compute_capability"] =
        std::to_string(info.compute_major) + '.' + std::to_string(info.compute_minor);
    return stored;
}

/// Number of buffer sets of `bytes_per_set` to rotate over, so that a launch finds nothing of its own in the cache:
/// together at least three times the L2, 8 to 64 sets, but no more than 2 GiB, and never fewer than 2.
[[nodiscard]] constexpr std::size_t cold_slots(std::size_t bytes_per_set, std::size_t l2_bytes) noexcept {
    constexpr std::size_t most = 64;
    // The time of a memory-bound kernel depends on where its buffers lie (32.4 or 30.0 us were seen for one product
    // from process to process with two sets); several sets average that.
    constexpr std::size_t least = 8;
    constexpr std::size_t most_bytes = std::size_t{2} << 30;
    const std::size_t each = std::max<std::size_t>(bytes_per_set, 1);
    const std::size_t wanted = std::clamp((3 * l2_bytes + each - 1) / each, least, most);
    return std::max<std::size_t>(2, std::min(wanted, most_bytes / each));
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
