// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_NVIDIA_WATCH_HPP
#define PLUMBLINE_ENVIRONMENT_NVIDIA_WATCH_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "plumbline/environment/nvidia/activity.hpp"
#include "plumbline/environment/nvidia/state.hpp"
#include "plumbline/result/result.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::nvidia {

/// Watches one GPU from outside of timed sections: its momentary state, and whether somebody else worked on it since
/// the last look. Two ways to use it:
/// - In the process that measures, as the hooks of measure::options: `mark` after each benchmark, `readings` for a
///   series of states. Foreign work is found where the driver reports work per process.
/// - In a parent that does not touch the GPU, around each child: everything that is left when the child has ended is
///   somebody else's, so memory and utilisation count too: own_share{{}, 0, true}. Wait a second after the child's end,
///   since utilisation is that of the driver's last sample period.
/// The host must outlive it. Without NVML every finding is unknown and there are no readings.
class watch {
public:
    explicit watch(const host& machine, own_share own = {}) : machine_(&machine), own_(std::move(own)) {
        gpu_ = find_device(machine).gpu;
        if (gpu_) last_ = look(*machine.nvml, gpu_->handle);
    }

    /// Adds a process of ours: the child that was just started.
    void add_own(unsigned pid) { own_.pids.insert(pid); }

    /// What happened since the last call, or since construction.
    [[nodiscard]] load_finding since_last() {
        if (!gpu_) return {foreign_load::unknown, "NVML cannot be asked"};
        activity now = look(*machine_->nvml, gpu_->handle, &last_);
        load_finding found = foreign_load_between(last_, now, own_);
        last_ = std::move(now);
        return found;
    }

    /// Marks what was measured since the last call with result::flag::foreign_load if somebody else worked meanwhile.
    void mark(result::session_result& measured) {
        const load_finding found = since_last();
        if (found.found != foreign_load::yes) return;
        measured.flags.emplace_back(result::flag::foreign_load);
        measured.state["foreign_load"] = found.why;
    }

    /// The state of this moment as far as it can be read: "sm_clock_mhz", "memory_clock_mhz", "temperature_c",
    /// "memory_temperature_c", "power_w", "clock_reasons", "memory_used_bytes", "pcie_replays", "energy_j".
    [[nodiscard]] scalar_map readings() const {
        scalar_map found;
        if (!gpu_) return found;
        result::fingerprint state;
        read_state(state, *machine_, *gpu_);
        for (const char* name :
             {"gpu.sm_clock_mhz", "gpu.memory_clock_mhz", "gpu.temperature_c", "gpu.memory_temperature_c",
              "gpu.power_w", "gpu.clock_reasons", "gpu.memory_used_bytes", "gpu.energy_j", "pcie.replays"}) {
            const result::attribute* entry = state.find(name);
            if (entry == nullptr || !entry->read.known()) continue;
            const std::string text(name);
            found[text.rfind("gpu.", 0) == 0 ? text.substr(4) : "pcie_replays"] = entry->read.value;
        }
        return found;
    }

private:
    const host* machine_;
    own_share own_;
    std::optional<device> gpu_;
    activity last_;
};

} // namespace environment::nvidia

PLUMBLINE_NAMESPACE_END

#endif
