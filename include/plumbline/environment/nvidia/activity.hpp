// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_NVIDIA_ACTIVITY_HPP
#define PLUMBLINE_ENVIRONMENT_NVIDIA_ACTIVITY_HPP

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plumbline/environment/nvidia/device.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::nvidia {

/// A process that holds memory on a GPU.
struct gpu_process {
    unsigned pid = 0; ///< as the driver numbers it: in a container not the number the container uses
    std::optional<std::uint64_t> used_bytes;
};

/// What a process did on a GPU since an earlier look.
struct process_work {
    unsigned pid = 0;
    unsigned sm_percent = 0;
    unsigned memory_percent = 0;
};

/// One look at what works on a GPU. Empty is unknown, never zero.
struct activity {
    std::optional<std::vector<gpu_process>> processes; ///< compute, graphics and MPS clients
    std::optional<std::vector<process_work>> work;     ///< since the look that was passed to look()
    std::optional<std::uint64_t> used_bytes;
    std::optional<unsigned> utilization_percent; ///< of the whole GPU over the driver's last sample period
    std::uint64_t newest_sample_us = 0;          ///< where the next look continues
};

/// Whether somebody else worked on the GPU.
enum class foreign_load { no, yes, unknown };

/// The finding and what it rests on, in one line.
struct load_finding {
    foreign_load found = foreign_load::unknown;
    std::string why;
};

namespace detail {

[[nodiscard]] inline bool append_processes(const nvml_api::processes_query& call, device_handle gpu,
                                           std::vector<gpu_process>& into) {
    if (!call) return false;
    std::vector<process_info> list(64);
    auto count = static_cast<unsigned>(list.size());
    int answer = call(gpu, &count, list.data());
    if (answer == code::insufficient_size) {
        list.resize(count + 16); // some may start between the two calls
        count = static_cast<unsigned>(list.size());
        answer = call(gpu, &count, list.data());
    }
    if (answer != code::success) return false;
    for (unsigned i = 0; i < count && i < list.size(); ++i) {
        const bool counted = list[i].used_bytes != ~0ull;
        into.push_back({list[i].pid, counted ? std::optional<std::uint64_t>(list[i].used_bytes) : std::nullopt});
    }
    return true;
}

[[nodiscard]] inline std::optional<std::vector<process_work>>
work_since(const nvml_api& api, device_handle gpu, std::uint64_t since_us, std::uint64_t& newest_us) {
    if (!api.process_utilization) return std::nullopt;
    unsigned count = 0;
    int answer = api.process_utilization(gpu, nullptr, &count, since_us);
    std::vector<process_work> found;
    if (answer == code::not_found || (answer == code::success && count == 0)) return found; // nothing ran
    if (answer != code::insufficient_size && answer != code::success) return std::nullopt;
    std::vector<process_sample> samples(count + 16);
    count = static_cast<unsigned>(samples.size());
    answer = api.process_utilization(gpu, samples.data(), &count, since_us);
    if (answer == code::not_found) return found;
    if (answer != code::success) return std::nullopt;
    for (unsigned i = 0; i < count && i < samples.size(); ++i) {
        const process_sample& sample = samples[i];
        newest_us = std::max<std::uint64_t>(newest_us, sample.timestamp_us);
        if (sample.timestamp_us <= since_us) continue;
        const auto same = std::find_if(found.begin(), found.end(), [&](auto& p) { return p.pid == sample.pid; });
        if (same == found.end())
            found.push_back({sample.pid, sample.sm, sample.memory});
        else {
            same->sm_percent = std::max(same->sm_percent, sample.sm);
            same->memory_percent = std::max(same->memory_percent, sample.memory);
        }
    }
    return found;
}

} // namespace detail

/// Looks at a GPU. `earlier`, if given, is where reports of work continue. Never called while something is timed.
[[nodiscard]] inline activity look(const nvml_api& api, device_handle gpu, const activity* earlier = nullptr) {
    activity now;
    std::vector<gpu_process> processes;
    bool listed = detail::append_processes(api.compute_processes, gpu, processes);
    if (listed) {
        (void)detail::append_processes(api.graphics_processes, gpu, processes);
        (void)detail::append_processes(api.mps_processes, gpu, processes);
        // A process that computes and draws is in two lists.
        std::stable_sort(processes.begin(), processes.end(), [](auto& a, auto& b) { return a.pid < b.pid; });
        processes.erase(
            std::unique(processes.begin(), processes.end(), [](auto& a, auto& b) { return a.pid == b.pid; }),
            processes.end());
        now.processes = std::move(processes);
    }
    now.newest_sample_us = earlier != nullptr ? earlier->newest_sample_us : 0;
    now.work = detail::work_since(api, gpu, now.newest_sample_us, now.newest_sample_us);
    memory_info memory{};
    memory.version = memory_info_version;
    memory_info_v1 old{};
    if (api.memory && api.memory(gpu, &memory) == code::success)
        now.used_bytes = memory.used;
    else if (api.memory_v1 && api.memory_v1(gpu, &old) == code::success)
        now.used_bytes = old.used;
    utilization busy{};
    if (api.utilization_rates && api.utilization_rates(gpu, &busy) == code::success) {
        now.utilization_percent = busy.gpu;
    }
    return now;
}

/// What the caller knows about itself when it asks for foreign load.
struct own_share {
    std::set<unsigned> pids;                 ///< this process and its children
    std::optional<std::int64_t> bytes_grown; ///< how much device memory they took between the two looks
    /// Nothing of ours ran in the second before the first look, the driver's longest sample period, so utilisation
    /// seen there is somebody else's. Between two benchmarks of one process it is our own, and says nothing.
    bool idle_before = false;
};

/// Memory that may come and go without anybody's work: a context of a tool that lists GPUs.
inline constexpr std::int64_t ignored_growth_bytes = std::int64_t{512} << 20;

namespace detail {

/// Whether the driver numbers processes as we do: our own number is in a report or in the list of processes.
[[nodiscard]] inline bool knows_us(const activity& seen, const own_share& own) {
    const auto ours = [&own](const auto& entry) { return own.pids.count(entry.pid) != 0; };
    return (seen.work && std::any_of(seen.work->begin(), seen.work->end(), ours)) ||
           (seen.processes && std::any_of(seen.processes->begin(), seen.processes->end(), ours));
}

/// From reports of work per process. Where the driver does not know our number, numbers are those of another PID
/// namespace: one worker is then taken for ourselves, more than one cannot all be.
[[nodiscard]] inline std::optional<load_finding> from_work(const activity& after, const own_share& own) {
    if (!after.work) return std::nullopt;
    const bool known = knows_us(after, own);
    std::vector<const process_work*> busy;
    for (const process_work& w : *after.work) {
        if ((w.sm_percent > 0 || w.memory_percent > 0) && own.pids.count(w.pid) == 0) busy.push_back(&w);
    }
    // An empty report is no proof where reports of our own work are missing too: then memory has to decide.
    const auto ours = [&own](const process_work& w) { return own.pids.count(w.pid) != 0; };
    if (busy.empty() && std::none_of(after.work->begin(), after.work->end(), ours)) return std::nullopt;
    if (busy.empty()) return load_finding{foreign_load::no, "no other process worked on the GPU"};
    if (!known && busy.size() == 1) return std::nullopt;
    const auto most =
        *std::max_element(busy.begin(), busy.end(), [](auto* a, auto* b) { return a->sm_percent < b->sm_percent; });
    return load_finding{foreign_load::yes, "process " + std::to_string(most->pid) + " kept up to " +
                                               std::to_string(most->sm_percent) + " % of the SMs busy"};
}

/// From the lists of processes: one that came or left in between has worked in between.
[[nodiscard]] inline std::optional<load_finding> from_lists(const activity& before, const activity& after,
                                                            const own_share& own) {
    if (!before.processes || !after.processes) return std::nullopt;
    const auto foreign = [&](const std::vector<gpu_process>& list) {
        std::set<unsigned> pids;
        for (const gpu_process& p : list) {
            if (own.pids.count(p.pid) == 0) pids.insert(p.pid);
        }
        return pids;
    };
    if (!knows_us(after, own)) return std::nullopt;
    const auto then = foreign(*before.processes), now = foreign(*after.processes);
    for (const unsigned pid : now) {
        if (then.count(pid) == 0) {
            return load_finding{foreign_load::yes, "process " + std::to_string(pid) + " started using the GPU"};
        }
    }
    for (const unsigned pid : then) {
        if (now.count(pid) == 0) {
            return load_finding{foreign_load::yes, "process " + std::to_string(pid) + " stopped using the GPU"};
        }
    }
    if (now.empty()) return load_finding{foreign_load::no, "no other process is on the GPU"};
    return std::nullopt; // somebody sits there all the time: whether it works is not known from the list
}

} // namespace detail

/// Whether another process worked on the GPU between two looks. Asked in turn, the first that knows decides: work per
/// process, lists of processes, utilisation before we started, growth of memory in use beyond our own. N/A is unknown,
/// not zero.
[[nodiscard]] inline load_finding foreign_load_between(const activity& before, const activity& after,
                                                       const own_share& own) {
    if (auto work = detail::from_work(after, own)) return *std::move(work);
    if (auto lists = detail::from_lists(before, after, own)) return *std::move(lists);
    const bool looked_at_idle = own.idle_before && before.utilization_percent.has_value();
    if (looked_at_idle && *before.utilization_percent >= 5) {
        return {foreign_load::yes,
                "the GPU was " + std::to_string(*before.utilization_percent) + " % busy before this process used it"};
    }
    if (before.used_bytes && after.used_bytes && own.bytes_grown) {
        const auto grown = static_cast<std::int64_t>(*after.used_bytes) -
                           static_cast<std::int64_t>(*before.used_bytes) - *own.bytes_grown;
        if (grown > ignored_growth_bytes || grown < -ignored_growth_bytes) {
            const auto size = static_cast<double>(grown < 0 ? -grown : grown);
            return {foreign_load::yes, "memory in use changed by " + environment::detail::shown_bytes(size) +
                                           " that is not this process's"};
        }
        if (looked_at_idle) return {foreign_load::no, "memory in use and utilisation before show nobody else"};
    }
    return {foreign_load::unknown, "neither work per process nor own process in the list can be read here"};
}

} // namespace environment::nvidia

PLUMBLINE_NAMESPACE_END

#endif
