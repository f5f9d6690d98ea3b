// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_COLLECT_HPP
#define PLUMBLINE_ENVIRONMENT_COLLECT_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <sys/statvfs.h>

#include "plumbline/environment/binary.hpp"
#include "plumbline/environment/cgroup.hpp"
#include "plumbline/environment/container.hpp"
#include "plumbline/environment/cpu.hpp"
#include "plumbline/environment/host.hpp"
#include "plumbline/environment/jit_cache.hpp"
#include "plumbline/environment/kernel.hpp"
#include "plumbline/environment/libraries.hpp"
#include "plumbline/environment/memory.hpp"
#include "plumbline/environment/nvidia/gpu.hpp"
#include "plumbline/environment/nvidia/load.hpp"
#include "plumbline/environment/process.hpp"
#include "plumbline/environment/storage.hpp"
#include "plumbline/environment/variables.hpp"
#include "plumbline/result/fingerprint.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// Size of the file system that a path lies on, from statvfs.
[[nodiscard]] inline std::optional<file_system_space> space_of_path(const std::filesystem::path& path) {
    struct statvfs answer {};
    if (::statvfs(path.c_str(), &answer) != 0) return std::nullopt;
    return file_system_space{std::uint64_t{answer.f_blocks} * answer.f_frsize,
                             std::uint64_t{answer.f_bavail} * answer.f_frsize};
}

/// This machine without its GPUs, for readers of files alone: nothing of NVIDIA's is loaded.
[[nodiscard]] inline host this_machine_without_gpus() {
    host machine;
    machine.space_of = space_of_path;
    machine.variables = read_environment_block(machine);
    return machine;
}

/// This machine: root "/", the environment block from /proc/self/environ, NVML where it can be loaded. `backend` is
/// "cuda" or "cpu"; `gpu` the PCI bus id or UUID of the device that is measured. For facts of the build the program
/// adds `machine.build = PLUMBLINE_BUILD_FACTS;` (binary.hpp).
[[nodiscard]] inline host this_machine(const std::string& backend, const std::string& gpu = {}) {
    host machine = this_machine_without_gpus();
    machine.backend = backend;
    machine.gpu = gpu;
    nvidia::loaded_nvml nvml = nvidia::load_nvml();
    machine.nvml = std::move(nvml.api);
    machine.nvml_problem = std::move(nvml.problem);
    machine.nvml_code = nvml.code;
    return machine;
}

/// Everything that can be read without a CUDA library: machine, process, container, mapped libraries, variables,
/// the binary, and with NVML the GPU. Call it after the libraries were used once, since cuDNN loads its parts late.
/// A backend adds its own readings (cuda/probe/). Never throws for something that cannot be read.
[[nodiscard]] inline result::fingerprint collect(const host& machine) {
    result::fingerprint found;
    recorder(found, "plumbline").identity("backend", 1, result::reading::of(machine.backend));
    read_cpu(found, machine);
    read_numa(found, machine);
    read_kernel(found, machine);
    read_memory(found, machine);
    read_process(found, machine);
    read_cgroup(found, machine);
    read_container(found, machine);
    read_libraries(found, machine);
    read_variables(found, machine);
    read_binary(found, machine);
    read_jit_cache(found, machine);
    if (!machine.data.empty()) read_data_path(found, machine, machine.data);
    nvidia::read_gpu(found, machine);
    return found;
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
