// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_EPOCH_HPP
#define PLUMBLINE_ENVIRONMENT_EPOCH_HPP

#include <chrono>
#include <string>

#include <time.h>

#include "plumbline/environment/host.hpp"
#include "plumbline/environment/kernel.hpp"
#include "plumbline/environment/nvidia/device.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// The board that is measured, hashed: the UUID of the whole GPU, so that all MIG instances of a card are one board;
/// on the CPU backend the machine. "" where it cannot be read.
[[nodiscard]] inline std::string board_id(const host& machine) {
    if (machine.backend != "cuda") {
        const result::reading id = machine_id(machine);
        return id.known() ? to_string(id.value) : std::string();
    }
    const nvidia::found_device found = nvidia::find_device(machine);
    if (found.gpu) {
        const auto uuid = nvidia::read_text(machine.nvml->uuid, found.gpu->handle, "nvmlDeviceGetUUID");
        if (uuid.known()) return hashed_id(to_string(uuid.value));
    }
    return machine.gpu.rfind("GPU-", 0) == 0 ? hashed_id(machine.gpu) : std::string();
}

/// The epoch this process measures in: hashed boot id, UTC day of `now`, and the board. What cannot be read is "".
[[nodiscard]] inline result::epoch
current_epoch(const host& machine, std::chrono::system_clock::time_point now = std::chrono::system_clock::now()) {
    result::epoch epoch;
    const result::reading boot = boot_id(machine);
    if (boot.known()) epoch.boot = to_string(boot.value);
    epoch.board = board_id(machine);
    const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
    std::tm utc{};
    // Digits by hand: strftime would do, but follows the locale for some formats.
    if (::gmtime_r(&seconds, &utc) != nullptr) {
        const auto two = [](int n) { return std::string(n < 10 ? "0" : "") + std::to_string(n); };
        epoch.day = std::to_string(utc.tm_year + 1900) + "-" + two(utc.tm_mon + 1) + "-" + two(utc.tm_mday);
    }
    return epoch;
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
