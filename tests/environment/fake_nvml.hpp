// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_ENVIRONMENT_FAKE_NVML_HPP
#define PLUMBLINE_TESTS_ENVIRONMENT_FAKE_NVML_HPP

#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/environment/nvidia/device.hpp"
#include "plumbline/environment/nvidia/load.hpp"

namespace plumbline_tests {

namespace nvidia = plumbline::environment::nvidia;

/// A made-up GPU: an H200 unless a test says otherwise. Empty optionals answer "not supported".
struct fake_gpu {
    std::string name = "NVIDIA H200";
    std::string uuid = "GPU-11111111-2222-3333-4444-555555555555";
    std::string serial = "1650123456789";
    std::string bus_id = "00000000:1B:00.0";
    unsigned pci_device_id = 0x233510de, pci_subsystem_id = 0x18be10de;
    unsigned cores = 16896;
    int major = 9, minor = 0;
    unsigned long long memory_total = 150754820096ull; // 140.4 GiB, what an H200 reports
    unsigned long long memory_used = 0;
    unsigned sm_clock = 345, max_sm_clock = 1980, application_clock = 1980, default_application_clock = 1980;
    unsigned temperature = 31;
    unsigned power_mw = 76000, limit_mw = 700000, default_limit_mw = 700000;
    std::optional<bool> ecc = true, ecc_pending = true;
    std::optional<bool> mig = false, mig_pending = false;
    std::optional<nvidia::mig_attributes> slice; ///< this handle is a MIG instance
    int parent = -1;                             ///< index of the GPU it is a part of
    std::vector<int> instances;                  ///< indices of the MIG instances
    unsigned virtualization = 0;
    std::optional<bool> licensed; ///< empty: needs no licence
    unsigned compute_mode = 0;
    bool persistence = true;
    unsigned long long clock_reasons = nvidia::clock_reason::idle;
    unsigned link_generation = 5, link_width = 16, link_max_generation = 5, link_max_width = 16;
    unsigned nvlinks = 18, nvlinks_active = 18;
    unsigned fabric_state = 3;
    int fabric_status = 0;
    unsigned busy = 0;
    std::optional<std::vector<nvidia::process_info>> processes = std::vector<nvidia::process_info>{};
    std::optional<std::vector<nvidia::process_sample>> work = std::vector<nvidia::process_sample>{};
    std::optional<bool> row_remap_pending = false, row_remap_failed = false;
    unsigned long long uncorrected = 0;
};

/// An NVML that answers from a list of fake GPUs and counts the calls made to it. Only a count of zero proves that
/// nobody called; the counts live as long as the object.
class fake_nvml {
public:
    explicit fake_nvml(std::vector<fake_gpu> list = {fake_gpu{}}) : gpus(std::move(list)) {}

    std::vector<fake_gpu> gpus; ///< visible ones first; MIG instances behind them
    unsigned visible = ~0u;     ///< how many of them nvmlDeviceGetCount tells; all that are no instances
    std::string driver = "580.65.06";
    int init_answer = nvidia::code::success;
    std::map<std::string, int> failing;              ///< symbol -> code it answers
    std::function<void(const std::string&)> on_call; ///< told of every call

    int calls = 0;
    bool shut_down = false;

    /// The function table, and through it NVML started as the library would be.
    [[nodiscard]] nvidia::loaded_nvml start() { return nvidia::start_nvml(table()); }

    [[nodiscard]] nvidia::nvml_api table() {
        nvidia::nvml_api api;
        system(api);
        identity(api);
        settings(api);
        momentary(api);
        health(api);
        guard(api);
        return api;
    }

private:
    using handle = nvidia::device_handle;

    fake_gpu& at(handle h) { return gpus.at(reinterpret_cast<std::size_t>(h) - 1); }
    static handle handle_of(std::size_t index) { return reinterpret_cast<handle>(index + 1); }

    static int put(const std::string& text, char* into, unsigned size) {
        std::snprintf(into, size, "%s", text.c_str());
        return nvidia::code::success;
    }
    static int give(const std::optional<bool>& value, unsigned* into) {
        if (!value) return nvidia::code::not_supported;
        *into = *value ? 1 : 0;
        return nvidia::code::success;
    }

    /// Wraps every function that was filled in: counts the call, and lets a test make it fail.
    void guard(nvidia::nvml_api& api) {
        api.each([this](const char* symbol, auto& function) {
            if (!function) return;
            wrap(symbol, function);
        });
    }
    template <class... Arguments>
    void wrap(const std::string& symbol, std::function<int(Arguments...)>& function) {
        function = [this, symbol, inner = std::move(function)](Arguments... arguments) {
            ++calls;
            if (on_call) on_call(symbol);
            const auto planned = failing.find(symbol);
            return planned != failing.end() ? planned->second : inner(arguments...);
        };
    }

    void system(nvidia::nvml_api& api) {
        api.init = [this] { return init_answer; };
        api.shutdown = [this] {
            shut_down = true;
            return 0;
        };
        api.driver_version = [this](char* into, unsigned size) { return put(driver, into, size); };
        api.nvml_version = [this](char* into, unsigned size) { return put("13." + driver, into, size); };
        api.cuda_driver_version = [](int* into) { return *into = 13000, 0; };
        api.confidential_computing = [](nvidia::confidential_state* into) { return *into = {}, 0; };
        api.device_count = [this](unsigned* into) {
            unsigned whole = 0;
            for (const fake_gpu& gpu : gpus) whole += gpu.slice ? 0 : 1;
            *into = visible != ~0u ? visible : whole;
            return 0;
        };
        api.handle_by_index = [this](unsigned i, handle* into) {
            if (i >= gpus.size()) return 2;
            *into = handle_of(i);
            return 0;
        };
        api.handle_by_pci = [this](const char* id, handle* into) {
            for (std::size_t i = 0; i < gpus.size(); ++i) {
                if (!gpus[i].slice && nvidia::sysfs_bus_id(gpus[i].bus_id) == nvidia::sysfs_bus_id(id)) {
                    *into = handle_of(i);
                    return 0;
                }
            }
            return nvidia::code::not_found;
        };
        api.handle_by_uuid = [this](const char* id, handle* into) {
            for (std::size_t i = 0; i < gpus.size(); ++i) {
                if (gpus[i].uuid == id) {
                    *into = handle_of(i);
                    return 0;
                }
            }
            return nvidia::code::not_found;
        };
        api.common_ancestor = [](handle, handle, unsigned* into) { return *into = 50, 0; };
        api.p2p_status = [](handle, handle, unsigned, unsigned* into) { return *into = 0, 0; };
    }

    void identity(nvidia::nvml_api& api) {
        api.name = [this](handle h, char* into, unsigned size) { return put(at(h).name, into, size); };
        api.uuid = [this](handle h, char* into, unsigned size) { return put(at(h).uuid, into, size); };
        api.serial = [this](handle h, char* into, unsigned size) { return put(at(h).serial, into, size); };
        api.board_part_number = [](handle, char* into, unsigned size) { return put("900-2G520", into, size); };
        api.vbios_version = [](handle, char* into, unsigned size) { return put("96.00.BC.00.05", into, size); };
        api.pci = [this](handle h, nvidia::pci_info* into) {
            *into = {};
            into->pci_device_id = at(h).pci_device_id;
            into->pci_subsystem_id = at(h).pci_subsystem_id;
            return put(at(h).bus_id, into->bus_id, sizeof into->bus_id);
        };
        api.core_count = [this](handle h, unsigned* into) { return *into = at(h).cores, 0; };
        api.compute_capability = [this](handle h, int* major, int* minor) {
            return *major = at(h).major, *minor = at(h).minor, 0;
        };
        api.is_mig_device = [this](handle h, unsigned* into) { return *into = at(h).slice ? 1 : 0, 0; };
        api.attributes = [this](handle h, nvidia::mig_attributes* into) {
            if (!at(h).slice) return nvidia::code::not_supported;
            *into = *at(h).slice;
            return 0;
        };
        api.parent_of_mig = [this](handle h, handle* into) {
            if (at(h).parent < 0) return nvidia::code::not_supported;
            *into = handle_of(static_cast<std::size_t>(at(h).parent));
            return 0;
        };
        api.mig_device = [this](handle h, unsigned i, handle* into) {
            if (i >= at(h).instances.size()) return nvidia::code::not_found;
            *into = handle_of(static_cast<std::size_t>(at(h).instances[i]));
            return 0;
        };
    }

    void settings(nvidia::nvml_api& api) {
        api.mig_mode = [this](handle h, unsigned* now, unsigned* later) {
            (void)give(at(h).mig_pending, later);
            return give(at(h).mig, now);
        };
        api.ecc_mode = [this](handle h, unsigned* now, unsigned* later) {
            (void)give(at(h).ecc_pending, later);
            return give(at(h).ecc, now);
        };
        api.power_limit = [this](handle h, unsigned* into) { return *into = at(h).limit_mw, 0; };
        api.power_enforced_limit = [this](handle h, unsigned* into) { return *into = at(h).limit_mw, 0; };
        api.power_default_limit = [this](handle h, unsigned* into) { return *into = at(h).default_limit_mw, 0; };
        api.power_limit_range = [this](handle h, unsigned* least, unsigned* most) {
            return *least = 200000, *most = at(h).default_limit_mw, 0;
        };
        api.max_clock = [this](handle h, unsigned type, unsigned* into) {
            return *into = type == 1 ? at(h).max_sm_clock : 3201, 0;
        };
        api.application_clock = [this](handle h, unsigned type, unsigned* into) {
            return *into = type == 1 ? at(h).application_clock : 3201, 0;
        };
        api.default_application_clock = [this](handle h, unsigned, unsigned* into) {
            return *into = at(h).default_application_clock, 0;
        };
        api.virtualization_mode = [this](handle h, unsigned* into) { return *into = at(h).virtualization, 0; };
        api.compute_mode = [this](handle h, unsigned* into) { return *into = at(h).compute_mode, 0; };
        api.persistence_mode = [this](handle h, unsigned* into) { return *into = at(h).persistence ? 1 : 0, 0; };
        api.license = [this](handle h, nvidia::license_features* into) {
            *into = {};
            if (!at(h).licensed) return 0;
            into->supported = 1;
            into->count = 1;
            into->features[0].state = *at(h).licensed ? 1 : 0;
            return 0;
        };
        api.link_max_generation = [this](handle h, unsigned* into) { return *into = at(h).link_max_generation, 0; };
        api.link_max_width = [this](handle h, unsigned* into) { return *into = at(h).link_max_width, 0; };
        api.nvlink_state = [this](handle h, unsigned link, unsigned* into) {
            if (link >= at(h).nvlinks) return nvidia::code::not_supported;
            return *into = link < at(h).nvlinks_active ? 1 : 0, 0;
        };
        api.nvlink_version = [](handle, unsigned, unsigned* into) { return *into = 7, 0; };
        api.fabric = [this](handle h, nvidia::fabric_info* into) {
            *into = {};
            into->state = static_cast<unsigned char>(at(h).fabric_state);
            into->status = at(h).fabric_status;
            return 0;
        };
        api.bar1 = [](handle, nvidia::bar1_info* into) { return *into = {274877906944ull, 0, 0}, 0; };
    }

    void momentary(nvidia::nvml_api& api) {
        api.clock = [this](handle h, unsigned type, unsigned* into) {
            return *into = type == 1 ? at(h).sm_clock : 3201, 0;
        };
        api.temperature = [this](handle h, unsigned, unsigned* into) { return *into = at(h).temperature, 0; };
        api.power_usage = [this](handle h, unsigned* into) { return *into = at(h).power_mw, 0; };
        api.clock_reasons = [this](handle h, unsigned long long* into) { return *into = at(h).clock_reasons, 0; };
        api.link_generation = [this](handle h, unsigned* into) { return *into = at(h).link_generation, 0; };
        api.link_width = [this](handle h, unsigned* into) { return *into = at(h).link_width, 0; };
        api.memory = [this](handle h, nvidia::memory_info* into) {
            if (into->version != nvidia::memory_info_version) return 25;
            into->total = at(h).memory_total;
            into->used = at(h).memory_used;
            return 0;
        };
        api.utilization_rates = [this](handle h, nvidia::utilization* into) { return *into = {at(h).busy, 0}, 0; };
        api.compute_processes = [this](handle h, unsigned* count, nvidia::process_info* into) {
            if (!at(h).processes) return nvidia::code::no_permission;
            const auto n = static_cast<unsigned>(at(h).processes->size());
            const bool fits = *count >= n;
            for (unsigned i = 0; fits && i < n; ++i) into[i] = (*at(h).processes)[i];
            *count = n;
            return fits ? 0 : nvidia::code::insufficient_size;
        };
        api.process_utilization = [this](handle h, nvidia::process_sample* into, unsigned* count,
                                         unsigned long long since) {
            if (!at(h).work) return nvidia::code::not_supported;
            std::vector<nvidia::process_sample> newer;
            for (const auto& sample : *at(h).work) {
                if (sample.timestamp_us > since) newer.push_back(sample);
            }
            if (newer.empty()) return nvidia::code::not_found;
            const auto n = static_cast<unsigned>(newer.size());
            const bool fits = into != nullptr && *count >= n;
            for (unsigned i = 0; fits && i < n; ++i) into[i] = newer[i];
            *count = n;
            return fits ? 0 : nvidia::code::insufficient_size;
        };
    }

    void health(nvidia::nvml_api& api) {
        api.remapped_rows = [this](handle h, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                                   unsigned* failed) {
            if (!at(h).row_remap_failed) return nvidia::code::not_supported;
            *corrected = *uncorrected = 0;
            (void)give(at(h).row_remap_pending, pending);
            return give(at(h).row_remap_failed, failed);
        };
        api.total_ecc_errors = [this](handle h, unsigned type, unsigned, unsigned long long* into) {
            return *into = type == 1 ? at(h).uncorrected : 0, 0;
        };
    }
};

} // namespace plumbline_tests

#endif
