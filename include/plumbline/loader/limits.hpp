// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_LIMITS_HPP
#define PLUMBLINE_LOADER_LIMITS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plumbline/environment/cgroup.hpp"
#include "plumbline/environment/cpu.hpp"
#include "plumbline/environment/host.hpp"
#include "plumbline/environment/memory.hpp"
#include "plumbline/environment/process.hpp"
#include "plumbline/environment/storage.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// What a machine and a container allow a loader. Empty where it could not be read, or where there is no limit.
struct machine_limits {
    std::optional<std::int64_t> logical_cpus;    ///< of the machine
    std::int64_t allowed_cpus = 1;               ///< by the affinity mask
    std::optional<double> quota_cpus;            ///< by the control group
    std::int64_t usable_cpus = 1;                ///< min(allowed, quota rounded up)
    std::optional<std::int64_t> shm_bytes;       ///< size of /dev/shm
    std::optional<std::int64_t> memlock_bytes;   ///< RLIMIT_MEMLOCK
    std::optional<std::int64_t> available_bytes; ///< memory that can be had, the page cache included
    std::int64_t numa_nodes = 1;
    std::string file_system; ///< of the data set
    bool rotational = false; ///< the data lie on a disk that turns
};

/// Reads the limits of a machine; `data` is the absolute path of the data set, or empty.
[[nodiscard]] inline machine_limits read_limits(const environment::host& machine, const std::string& data = {}) {
    result::fingerprint seen;
    environment::read_cpu(seen, machine);
    environment::read_numa(seen, machine);
    environment::read_memory(seen, machine);
    environment::read_process(seen, machine);
    environment::read_cgroup(seen, machine);
    if (!data.empty()) environment::read_data_path(seen, machine, data);
    const auto value = [&seen](const char* name) -> std::optional<scalar> {
        const result::attribute* const found = seen.find(name);
        return found != nullptr && found->read.known() ? std::optional<scalar>(found->read.value) : std::nullopt;
    };
    const auto count = [&value](const char* name) -> std::optional<std::int64_t> {
        const auto read = value(name);
        const auto* const whole = read ? std::get_if<std::int64_t>(&*read) : nullptr;
        return whole != nullptr ? std::optional<std::int64_t>(*whole) : std::nullopt;
    };
    machine_limits limits;
    limits.logical_cpus = count("cpu.logical");
    limits.usable_cpus = std::max<std::int64_t>(1, count("cpu.usable").value_or(1));
    const auto allowed = static_cast<std::int64_t>(environment::allowed_cpus(machine).size());
    limits.allowed_cpus = allowed > 0 ? allowed : limits.usable_cpus;
    if (const auto quota = value("cgroup.cpu_quota")) {
        if (const auto* const cpus = std::get_if<double>(&*quota)) limits.quota_cpus = *cpus;
    }
    limits.shm_bytes = count("memory.shm_bytes");
    limits.memlock_bytes = count("process.limit_memlock_bytes");
    limits.available_bytes = count("memory.available_bytes");
    limits.numa_nodes = count("numa.nodes").value_or(1);
    if (const auto type = value("data.file_system")) limits.file_system = to_string(*type);
    limits.rotational = count("data.rotational").value_or(0) == 1;
    return limits;
}

/// One limit that bears on a loader.
struct limit {
    std::string name; ///< "cpu_quota", "affinity", "oversubscribed", "memlock", "shm", "page_cache", "disk", "numa"
    std::string text; ///< for people, with the figures
};

/// What a loader asks of the machine.
struct demand {
    std::size_t workers = 0;
    std::size_t ring_bytes = 0; ///< all batches in flight
    std::size_t data_bytes = 0; ///< the data set on disk
    bool pinned = false;        ///< the ring is locked by this process (not by a driver, which has limits of its own)
    bool cold = false;          ///< files are read from storage, not from the page cache
};

namespace detail {

inline std::string short_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

inline std::string mebibytes(std::int64_t bytes) {
    return std::to_string(bytes >> 20) + " MiB";
}

inline void name_cpu_limits(const machine_limits& has, const demand& asks, std::vector<limit>& named) {
    const std::string machine = has.logical_cpus ? " of the machine's " + std::to_string(*has.logical_cpus) : "";
    if (has.quota_cpus && *has.quota_cpus < static_cast<double>(has.allowed_cpus)) {
        named.push_back({"cpu_quota", "the control group's CPU quota is " + short_number(*has.quota_cpus) +
                                          (*has.quota_cpus == 1 ? " CPU, " : " CPUs, ") +
                                          std::to_string(has.allowed_cpus) + " are in the affinity mask"});
    }
    if (has.logical_cpus && has.allowed_cpus < *has.logical_cpus) {
        named.push_back(
            {"affinity", "the affinity mask allows " + std::to_string(has.allowed_cpus) + machine + " CPUs"});
    }
    if (static_cast<std::int64_t>(asks.workers) > has.usable_cpus) {
        named.push_back({"oversubscribed", std::to_string(asks.workers) + " workers share " +
                                               std::to_string(has.usable_cpus) + " usable CPUs"});
    }
}

inline void name_storage_limits(const machine_limits& has, std::vector<limit>& named) {
    for (const char* remote : {"nfs", "nfs4", "cifs", "fuse", "lustre", "ceph", "9p", "beegfs", "gpfs"}) {
        if (has.file_system != remote) continue;
        named.push_back({"disk", "the data lie on " + has.file_system + ", which is reached over a network"});
    }
    // Virtual disks are often called rotational too, so this says only what was read.
    if (has.rotational) named.push_back({"disk", "the data lie on a disk that the kernel calls rotational"});
}

} // namespace detail

/// Names every limit that bears on a loader here, the tightest kind first: CPUs, memory, storage.
[[nodiscard]] inline std::vector<limit> name_limits(const machine_limits& has, const demand& asks) {
    std::vector<limit> named;
    detail::name_cpu_limits(has, asks, named);
    const auto ring = static_cast<std::int64_t>(asks.ring_bytes);
    const auto data = static_cast<std::int64_t>(asks.data_bytes);
    if (asks.pinned && has.memlock_bytes && *has.memlock_bytes < ring) {
        named.push_back({"memlock", "the limit on locked memory is " + detail::mebibytes(*has.memlock_bytes) +
                                        ", the batches in flight need " + detail::mebibytes(ring)});
    }
    if (has.shm_bytes && *has.shm_bytes < ring) {
        named.push_back({"shm", "/dev/shm has " + detail::mebibytes(*has.shm_bytes) + ", less than the " +
                                    detail::mebibytes(ring) +
                                    " in flight: no matter to threads, but worker processes (PyTorch) would die"});
    }
    if (has.available_bytes && *has.available_bytes < data) {
        named.push_back({"page_cache", "the data set of " + detail::mebibytes(data) + " does not fit into the " +
                                           detail::mebibytes(*has.available_bytes) + " of memory available"});
    }
    const bool reads_storage = asks.cold || (has.available_bytes && *has.available_bytes < data);
    if (reads_storage) detail::name_storage_limits(has, named);
    if (has.numa_nodes > 1) {
        named.push_back({"numa", "the machine has " + std::to_string(has.numa_nodes) +
                                     " memory nodes, and workers are not bound to the device's"});
    }
    return named;
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
