// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_PRESENCE_HPP
#define PLUMBLINE_ENVIRONMENT_PRESENCE_HPP

#include <optional>
#include <string>
#include <vector>

#include "plumbline/environment/host.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// NVIDIA hardware as the operating system shows it, whether or not a driver is loaded.
struct nvidia_hardware {
    std::vector<std::string> pci_ids;      ///< bus ids of display and 3D controllers of vendor 0x10de
    std::vector<std::string> device_nodes; ///< /dev/nvidia0, /dev/nvidiactl, ...

    [[nodiscard]] bool present() const noexcept { return !pci_ids.empty() || !device_nodes.empty(); }
};

/// Looks for NVIDIA GPUs on the PCI bus and in /dev. Decides `--backend=auto`. Never throws.
[[nodiscard]] nvidia_hardware find_nvidia_hardware(const host& machine);

/// Why CUDA cannot start here.
struct cuda_diagnosis {
    std::string code;               ///< "no_driver", "version_mismatch", "container_without_gpu", ...
    std::string summary;            ///< one line: what is wrong
    std::vector<std::string> facts; ///< what was seen, one line each
    std::string remedy;             ///< one line: what to do

    /// summary, facts and remedy in one text for an error message.
    [[nodiscard]] std::string text() const;
};

/// Names the reason why CUDA cannot start, from what the machine shows and, where CUDA was tried, the error it gave
/// (`cuda_error`: a cudaError_t value; empty when the program has no CUDA backend).
[[nodiscard]] cuda_diagnosis diagnose_cuda(const host& machine, std::optional<int> cuda_error = std::nullopt,
                                           const std::string& cuda_error_name = {});

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
