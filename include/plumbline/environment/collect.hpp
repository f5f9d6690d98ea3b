// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_COLLECT_HPP
#define PLUMBLINE_ENVIRONMENT_COLLECT_HPP

#include "plumbline/environment/host.hpp"
#include "plumbline/result/fingerprint.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// This machine: root "/", the environment block from /proc/self/environ, NVML where it can be loaded. `backend` is
/// "cuda" or "cpu"; `gpu` the PCI bus id or UUID of the device that is measured.
[[nodiscard]] host this_machine(const std::string& backend, const std::string& gpu = {});

/// Everything that can be read without a CUDA library: machine, process, container, mapped libraries, variables,
/// the binary, and with NVML the GPU. Call it after the libraries were used once, since cuDNN loads its parts late.
/// A backend adds its own readings (cuda/probe/). Never throws for something that cannot be read.
[[nodiscard]] result::fingerprint collect(const host& machine);

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
