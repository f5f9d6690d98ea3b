// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_KERNEL_HPP
#define PLUMBLINE_ENVIRONMENT_KERNEL_HPP

#include <string>
#include <vector>

#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

namespace detail {

/// Of the kernel command line only what changes performance: it may also hold addresses, keys and passwords.
[[nodiscard]] inline result::reading kernel_parameters(const host& machine) {
    static constexpr std::string_view wanted[] = {"amd_iommu",
                                                  "amd_pstate",
                                                  "clocksource",
                                                  "cgroup_disable",
                                                  "cgroup_enable",
                                                  "cpufreq.",
                                                  "cpuidle.",
                                                  "default_hugepagesz",
                                                  "hugepages",
                                                  "hugepagesz",
                                                  "idle",
                                                  "intel_idle.",
                                                  "intel_iommu",
                                                  "intel_pstate",
                                                  "iommu",
                                                  "iommu.",
                                                  "irqaffinity",
                                                  "isolcpus",
                                                  "kvm.",
                                                  "mitigations",
                                                  "nmi_watchdog",
                                                  "no_hz",
                                                  "nohz",
                                                  "nohz_full",
                                                  "nopti",
                                                  "noretpoline",
                                                  "nosmt",
                                                  "numa",
                                                  "numa_balancing",
                                                  "nvidia",
                                                  "nvidia.",
                                                  "nvidia-drm.",
                                                  "nvidia-uvm.",
                                                  "nvidia_drm.",
                                                  "nvidia_uvm.",
                                                  "pci",
                                                  "pcie_acs_override",
                                                  "pcie_aspm",
                                                  "pcie_aspm.",
                                                  "preempt",
                                                  "processor.",
                                                  "rcu_nocbs",
                                                  "rcu_nocb_poll",
                                                  "skew_tick",
                                                  "spec_store_bypass_disable",
                                                  "spectre_v2",
                                                  "swiotlb",
                                                  "systemd.unified_cgroup_hierarchy",
                                                  "transparent_hugepage",
                                                  "tsc",
                                                  "vfio-pci."};
    const text_file file = read_file(machine, "/proc/cmdline");
    if (!file.known()) return file.why;
    std::vector<std::string> kept;
    for (const std::string& word : split(file.text, ' ')) {
        const auto name = std::string_view(word).substr(0, word.find('='));
        for (const std::string_view pattern : wanted) {
            const bool prefix = pattern.back() == '.';
            if (prefix ? name.substr(0, pattern.size()) == pattern : name == pattern) kept.push_back(word);
        }
    }
    std::sort(kept.begin(), kept.end());
    return result::reading::of(kept.empty() ? std::string("none of interest") : join(kept, " "));
}

/// One field of /etc/os-release, without its quotes.
[[nodiscard]] inline result::reading os_release(const host& machine, const std::string& name) {
    text_file file = read_file(machine, "/etc/os-release");
    if (!file.known()) file = read_file(machine, "/usr/lib/os-release");
    if (!file.known()) return file.why;
    for (const std::string& line : split(file.text, '\n')) {
        if (line.rfind(name + "=", 0) != 0) continue;
        std::string value = line.substr(name.size() + 1);
        if (value.size() >= 2 && (value.front() == '"' || value.front() == '\''))
            value = value.substr(1, value.size() - 2);
        return result::reading::of(value);
    }
    return result::reading::absent("/etc/os-release: no " + name);
}

[[nodiscard]] inline result::reading counted_folder(const host& machine, const std::string& path) {
    if (!exists(machine, path)) return result::reading::absent(path + ": ENOENT");
    return result::reading::of(static_cast<std::int64_t>(list_folder(machine, path).size()));
}

} // namespace detail

/// The boot id of the kernel, hashed: the same until the next boot.
[[nodiscard]] inline result::reading boot_id(const host& machine) {
    return hashed(read_text(machine, "/proc/sys/kernel/random/boot_id"));
}

/// The machine, hashed: /etc/machine-id where there is one, else the host name.
[[nodiscard]] inline result::reading machine_id(const host& machine) {
    const result::reading id = read_text(machine, "/etc/machine-id");
    if (id.known() && to_string(id.value) != "uninitialized") return hashed(id);
    return hashed(read_text(machine, "/proc/sys/kernel/hostname"));
}

/// Kernel, operating system, firmware and identity of the machine.
inline void read_kernel(result::fingerprint& into, const host& machine) {
    recorder proc(into, "proc");
    proc.config("kernel.release", 1, read_text(machine, "/proc/sys/kernel/osrelease"));
    proc.config("kernel.version", 1, read_text(machine, "/proc/sys/kernel/version"));
    proc.config("kernel.parameters", 1, detail::kernel_parameters(machine));
    proc.config("kernel.numa_balancing", 4, read_integer(machine, "/proc/sys/kernel/numa_balancing"));
    proc.state("kernel.boot", 1, boot_id(machine));
    proc.state("machine.host_name", 1, hashed(read_text(machine, "/proc/sys/kernel/hostname")));
    recorder sys(into, "sys");
    sys.config("kernel.clock_source", 4,
               read_text(machine, "/sys/devices/system/clocksource/clocksource0/current_clocksource"));
    sys.config("kernel.aspm_policy", 1, read_choice(machine, "/sys/module/pcie_aspm/parameters/policy"));
    sys.config("kernel.iommu_groups", 1, detail::counted_folder(machine, "/sys/kernel/iommu_groups"));
    sys.config("kernel.iommu_units", 1, detail::counted_folder(machine, "/sys/class/iommu"));
    sys.config("machine.hypervisor", 1, read_text(machine, "/sys/hypervisor/type"));
    const std::string dmi = "/sys/class/dmi/id/";
    sys.config("machine.vendor", 1, read_text(machine, dmi + "sys_vendor"));
    sys.config("machine.product", 1, read_text(machine, dmi + "product_name"));
    sys.config("machine.board", 1, read_text(machine, dmi + "board_name"));
    sys.config("machine.bios_version", 1, read_text(machine, dmi + "bios_version"));
    sys.config("machine.bios_date", 1, read_text(machine, dmi + "bios_date"));
    recorder etc(into, "etc");
    etc.config("machine.id", 1, machine_id(machine));
    etc.config("os.name", 1, detail::os_release(machine, "PRETTY_NAME"));
    etc.config("os.version", 1, detail::os_release(machine, "VERSION_ID"));
    // NCCL takes settings from files as well as from variables; which ones is no more than their hash here.
    etc.config("nccl.config_file", 1, hashed(read_text(machine, "/etc/nccl.conf")));
    const auto home = machine.variables.find("HOME");
    result::reading user_file = result::reading::absent("HOME: not set");
    if (home != machine.variables.end()) {
        user_file = hashed(read_text(machine, home->second + "/.nccl.conf"));
        // The reason names the file; whose home it is in is nobody's business.
        if (user_file.reason.rfind(home->second + "/", 0) == 0) user_file.reason.replace(0, home->second.size(), "~");
    }
    etc.config("nccl.user_config_file", 1, user_file);
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
