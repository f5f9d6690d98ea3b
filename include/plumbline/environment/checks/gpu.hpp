// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_CHECKS_GPU_HPP
#define PLUMBLINE_ENVIRONMENT_CHECKS_GPU_HPP

#include <string>
#include <vector>

#include "plumbline/environment/checks/support.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::checks {

/// Nobody else uses the GPU, and its memory is free, before this program's own work. The readings are those taken
/// before the first context was created.
[[nodiscard]] inline check_outcome gpu_is_free(const check_context& on) {
    const auto used = known_number(on, "gpu.memory_used_bytes"), total = known_number(on, "gpu.memory_gib");
    const auto busy = known_int(on, "gpu.utilization_percent"), processes = known_int(on, "gpu.processes");
    if (!used && !busy && !processes) return skipped(why_unknown(on, "gpu.memory_used_bytes"));
    constexpr double gib = 1024.0 * 1024 * 1024;
    const auto text = [](const char* name, const std::optional<std::int64_t>& n) {
        return std::string(name) + (n ? std::to_string(*n) : "unknown");
    };
    const std::string seen = "memory in use " + (used ? environment::detail::shown_bytes(*used) : "unknown") +
                             text(", busy % ", busy) + text(", processes ", processes);
    const std::string expected = "idle: under 1 GiB in use, no other process";
    const std::string remedy = "find them with nvidia-smi (on the host, if this is a container), and end or move them";
    if (busy.value_or(0) >= 5) return failed(seen, expected, remedy);
    if (used && total && *used > 0.5 * *total * gib) return failed(seen, expected, remedy);
    if (used.value_or(0) > gib || processes.value_or(0) > 0) return warned(seen, expected, remedy);
    return passed(seen, expected);
}

/// The driver stays loaded when no process uses the GPU.
[[nodiscard]] inline check_outcome persistence_on(const check_context& on) {
    const auto mode = known_flag(on, "gpu.persistence");
    if (!mode) return skipped(why_unknown(on, "gpu.persistence"));
    if (*mode) return passed("on", "on");
    return warned("off", "on",
                  "nvidia-smi -pm 1, or run nvidia-persistenced; from inside a container it may only look off");
}

/// Error correction is on, no change of it is pending, and the memory has no repairs waiting.
[[nodiscard]] inline check_outcome memory_healthy(const check_context& on) {
    const auto ecc = known_flag(on, "gpu.ecc"), pending = known_flag(on, "gpu.ecc_pending");
    const auto failed_rows = known_flag(on, "gpu.row_remap_failed"), waiting = known_flag(on, "gpu.row_remap_pending");
    const auto errors = known_int(on, "gpu.ecc_uncorrected");
    if (!ecc && !failed_rows && !errors) return skipped(why_unknown(on, "gpu.ecc"));
    const std::string expected = "ECC on, no uncorrected error, no repair pending";
    if (failed_rows.value_or(false)) {
        return failed("a row of the memory could not be remapped", expected,
                      "replace the GPU: its spare rows are used up");
    }
    if (errors.value_or(0) > 0) {
        return failed(std::to_string(*errors) + " uncorrected memory errors since the last boot", expected,
                      "reset the GPU, run dcgmi diag -r 3, and replace it if they come back");
    }
    if (waiting.value_or(false)) return warned("row remapping waits for a reset", expected, "reset the GPU or reboot");
    if (ecc && pending && *ecc != *pending) {
        return warned(std::string("ECC is ") + (*ecc ? "on" : "off") + ", and will change at the next boot", expected,
                      "reboot now, so that the baseline is of the mode to come");
    }
    if (ecc && !*ecc) return warned("ECC is off", expected, "nvidia-smi -e 1 and reboot, unless that is on purpose");
    return passed(std::string("ECC ") + (ecc ? "on" : "not offered") + ", no errors", expected);
}

/// MIG is as it will be at the next boot, and if it is on, there is an instance to work on.
[[nodiscard]] inline check_outcome mig_usable(const check_context& on) {
    const auto mode = known_flag(on, "gpu.mig"), pending = known_flag(on, "gpu.mig_pending");
    if (!mode) return skipped(why_unknown(on, "gpu.mig"));
    const std::string expected = "MIG off, or an instance of it given to this process";
    if (pending && *mode != *pending) {
        return warned(std::string("MIG is ") + (*mode ? "on" : "off") + ", and will change at the next reset", expected,
                      "reset the GPU now: afterwards it is another device to a comparison");
    }
    if (!*mode) return passed("off", expected);
    const auto profile = known_text(on, "gpu.mig_profile");
    if (!profile) {
        return failed("MIG is on, and there is no instance", expected,
                      "create one (nvidia-smi mig -cgi 0 -C), or switch MIG off (nvidia-smi -mig 0)");
    }
    return passed("instance " + *profile, expected);
}

/// Other processes may not, and this one may, create contexts on the GPU.
[[nodiscard]] inline check_outcome compute_mode_open(const check_context& on) {
    const auto mode = known_text(on, "gpu.compute_mode");
    if (!mode) return skipped(why_unknown(on, "gpu.compute_mode"));
    if (*mode == "prohibited") return failed(*mode, "default or exclusive process", "nvidia-smi -c DEFAULT");
    if (*mode == "exclusive thread") return warned(*mode, "default or exclusive process", "nvidia-smi -c DEFAULT");
    return passed(*mode, "default or exclusive process");
}

/// The power limit is the one the board was made for.
[[nodiscard]] inline check_outcome power_limit_default(const check_context& on) {
    const auto normal = known_number(on, "gpu.power_limit_default_w");
    auto enforced = known_number(on, "gpu.power_limit_enforced_w");
    if (!enforced) enforced = known_number(on, "gpu.power_limit_w");
    if (!normal) return skipped(why_unknown(on, "gpu.power_limit_default_w"));
    if (!enforced) return skipped(why_unknown(on, "gpu.power_limit_enforced_w"));
    const std::string seen = environment::detail::shown(*enforced) + " W",
                      expected = environment::detail::shown(*normal) + " W";
    if (*enforced >= 0.995 * *normal) return passed(seen, expected);
    return warned(seen, expected,
                  "nvidia-smi -pl " + environment::detail::shown(*normal) + ", unless the lower limit is on purpose");
}

/// Nothing holds the clocks down while the GPU idles.
[[nodiscard]] inline check_outcome not_throttled_at_idle(const check_context& on) {
    const auto reasons = known_text(on, "gpu.clock_reasons");
    if (!reasons) return skipped(why_unknown(on, "gpu.clock_reasons"));
    const std::string expected = "none, idle, or application_clocks";
    const auto has = [&](const char* reason) { return reasons->find(reason) != std::string::npos; };
    if (has("hw_slowdown") || has("hw_thermal") || has("hw_power_brake")) {
        return failed(*reasons, expected,
                      "look at cooling, power supplies and power cables: the board slows itself down");
    }
    if (has("sw_thermal") || has("sw_power_cap")) {
        return warned(*reasons, expected, "let the GPU cool down, look at airflow and at the power limit");
    }
    return passed(*reasons, expected);
}

/// No clock below the board's maximum was asked for.
[[nodiscard]] inline check_outcome clocks_unrestricted(const check_context& on) {
    const auto set = known_int(on, "gpu.application_sm_clock_mhz"), normal = known_int(on, "gpu.default_sm_clock_mhz");
    if (!set || !normal) {
        return skipped(why_unknown(on, set ? "gpu.default_sm_clock_mhz" : "gpu.application_sm_clock_mhz"));
    }
    const std::string seen = "application clock " + std::to_string(*set) + " MHz";
    const std::string expected = std::to_string(*normal) + " MHz, the default, or more";
    if (*set >= *normal) return passed(seen, expected);
    return warned(seen, expected, "nvidia-smi -rac, unless the lower clock is on purpose");
}

/// A virtual GPU has its licence: without one it slows down some minutes after boot (NVIDIA/gpu-operator#220).
[[nodiscard]] inline check_outcome vgpu_licensed(const check_context& on) {
    const auto mode = known_text(on, "gpu.virtualization");
    if (!mode) return skipped(why_unknown(on, "gpu.virtualization"));
    if (*mode != "vgpu") return skipped("no virtual GPU: virtualization " + *mode);
    const auto license = known_text(on, "gpu.vgpu_license");
    if (!license) return skipped(why_unknown(on, "gpu.vgpu_license"));
    if (*license == "licensed") return passed(*license, "licensed");
    return failed(*license, "licensed",
                  "configure the licence server in gridd.conf or the client token, and restart nvidia-gridd");
}

/// Every NVLink of the GPU is up, and the fabric has attached where there is one.
[[nodiscard]] inline check_outcome nvlink_complete(const check_context& on) {
    const auto links = known_int(on, "nvlink.links"), active = known_int(on, "nvlink.active_links");
    if (!links || !active) return skipped(why_unknown(on, "nvlink.links"));
    const auto fabric = known_text(on, "nvlink.fabric_state"), status = known_text(on, "nvlink.fabric_status");
    const std::string seen = std::to_string(*active) + " of " + std::to_string(*links) + " links up" +
                             (fabric ? ", fabric " + *fabric : "") + (status ? " (" + *status + ")" : "");
    const std::string expected = "all links up, fabric completed where there is one";
    if (fabric && (*fabric == "not started" || *fabric == "in progress")) {
        return warned(seen, expected, "start nvidia-fabricmanager and look at its log");
    }
    if (status && *status != "success") return warned(seen, expected, "look at the log of nvidia-fabricmanager");
    // A lone GPU of a kind made for NVLink has all links down, and that is nothing to worry about.
    if (*active == 0 && known_int(on, "gpu.count").value_or(1) == 1) return passed(seen + ", a single GPU", expected);
    if (*active == *links) return passed(seen, expected);
    return warned(seen, expected,
                  "nvidia-smi nvlink -s and dmesg | grep -i nvlink: reset the GPU, or have it seated anew");
}

/// The PCIe link runs at its full generation and width while data moves. An idle link legally drops, so only a
/// reading under load counts.
[[nodiscard]] inline check_outcome pcie_at_full_speed(const check_context& on) {
    if (!on.link_under_load) return skipped("needs a copy to run; not part of this check run");
    const auto link = on.link_under_load();
    if (!link || link->max_generation <= 0 || link->max_width <= 0 || link->generation <= 0 || link->width <= 0) {
        return skipped("the link could not be read while data moved");
    }
    const auto text = [](int generation, int width) {
        return "generation " + std::to_string(generation) + " x" + std::to_string(width);
    };
    const std::string seen = text(link->generation, link->width);
    const std::string expected = text(link->max_generation, link->max_width);
    if (link->generation >= link->max_generation && link->width >= link->max_width) return passed(seen, expected);
    const std::string remedy = "seat the board anew, look at risers, cables and the slot's setting in the firmware";
    // Each generation doubles the rate of a lane. Half the rate or less is a broken link, not a matter of taste.
    double share = static_cast<double>(link->width) / link->max_width;
    for (int lost = link->generation; lost < link->max_generation; ++lost) share /= 2;
    return share <= 0.5 ? failed(seen, expected, remedy) : warned(seen, expected, remedy);
}

/// Checks of the GPU's own state and settings.
[[nodiscard]] inline std::vector<check> of_gpu() {
    constexpr auto stop = consequence::precondition;
    return {{"gpu.free", 1, stop, extent::quick, gpu_is_free},
            {"gpu.persistence", 1, stop, extent::quick, persistence_on},
            {"gpu.memory_health", 1, stop, extent::quick, memory_healthy},
            {"gpu.mig", 1, stop, extent::quick, mig_usable},
            {"gpu.compute_mode", 1, stop, extent::quick, compute_mode_open},
            {"gpu.power_limit", 1, stop, extent::quick, power_limit_default},
            {"gpu.throttling_at_idle", 1, stop, extent::quick, not_throttled_at_idle},
            {"gpu.clocks", 1, stop, extent::quick, clocks_unrestricted},
            {"gpu.vgpu_license", 1, stop, extent::quick, vgpu_licensed},
            {"gpu.nvlink", 1, stop, extent::quick, nvlink_complete},
            {"pcie.link_under_load", 1, consequence::fault, extent::quick, pcie_at_full_speed}};
}

} // namespace environment::checks

PLUMBLINE_NAMESPACE_END

#endif
