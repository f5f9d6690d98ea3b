// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_BACKEND_CHOICE_HPP
#define PLUMBLINE_RUN_BACKEND_CHOICE_HPP

#include <string>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/environment/presence.hpp"
#include "plumbline/run/driver.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// The backend of a run, and what a person must be told about the choice ("" when there is nothing to tell).
struct backend_choice {
    const driver* chosen = nullptr; ///< never null
    std::string remark;
};

namespace detail {

[[nodiscard]] inline const driver* find_driver(const std::vector<driver>& drivers, const std::string& name) {
    for (const driver& each : drivers) {
        if (each.name == name) return &each;
    }
    return nullptr;
}

[[nodiscard]] inline std::string names_of(const std::vector<driver>& drivers) {
    std::string names;
    for (const driver& each : drivers) names += (names.empty() ? "" : ", ") + each.name;
    return names.empty() ? "none" : names;
}

[[nodiscard]] inline const driver& named_backend(const std::vector<driver>& drivers, const std::string& name,
                                                 const environment::host& machine) {
    const driver* found = find_driver(drivers, name);
    const bool cuda = name == "cuda";
    if (cuda && !environment::find_nvidia_hardware(machine).present()) {
        throw environment_error("backend", "--backend=cuda: " + environment::diagnose_cuda(machine).text());
    }
    if (found != nullptr) return *found;
    if (cuda) {
        throw environment_error("backend",
                                "--backend=cuda: this program was built without CUDA (it has: " + names_of(drivers) +
                                    "); install the CUDA toolkit and cuDNN and build again");
    }
    if (name == "cpu") {
        throw environment_error("backend", "--backend=cpu: this program was built without oneDNN (it has: " +
                                               names_of(drivers) + "); install libdnnl-dev and build again");
    }
    throw usage_error("no backend is called '" + name + "'; this program has auto and " + names_of(drivers));
}

} // namespace detail

/// Decides the backend. "auto": NVIDIA hardware on the PCI bus or in /dev means cuda, and then a program that cannot
/// use it is an environment_error (exit code 6), never a run on the CPU; no such hardware means cpu, with a remark.
/// Throws usage_error for a backend that does not exist.
[[nodiscard]] inline backend_choice choose_backend(const std::vector<driver>& drivers, const std::string& wanted,
                                                   const environment::host& machine) {
    if (wanted != "auto") return {&detail::named_backend(drivers, wanted, machine), {}};
    const environment::nvidia_hardware hardware = environment::find_nvidia_hardware(machine);
    if (hardware.present()) {
        if (const driver* cuda = detail::find_driver(drivers, "cuda")) return {cuda, {}};
        const std::string where = hardware.pci_ids.empty() ? hardware.device_nodes.front() : hardware.pci_ids.front();
        throw environment_error("backend", "there is NVIDIA hardware here (" + where +
                                               "), but this program was built without CUDA; install the CUDA toolkit "
                                               "and cuDNN and build again, or ask for --backend=cpu");
    }
    if (const driver* cpu = detail::find_driver(drivers, "cpu")) {
        return {cpu, "no NVIDIA hardware here: measuring the CPU (--backend=cuda would say what is missing)"};
    }
    throw environment_error("backend", "no NVIDIA hardware here, and this program was built without the CPU backend "
                                       "(it has: " +
                                           detail::names_of(drivers) + "); install libdnnl-dev and build again");
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
