// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_CHECKS_DRIVER_HPP
#define PLUMBLINE_ENVIRONMENT_CHECKS_DRIVER_HPP

#include <string>
#include <vector>

#include "plumbline/environment/checks/support.hpp"
#include "plumbline/environment/presence.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment::checks {

/// CUDA starts where NVIDIA hardware is, or was asked for.
[[nodiscard]] inline check_outcome cuda_starts(const check_context& on) {
    const nvidia_hardware hardware = find_nvidia_hardware(*on.machine);
    if (!on.cuda_expected && !hardware.present()) return skipped("no NVIDIA GPU here, and none is asked for");
    if (on.cuda_error == 0) return passed("CUDA started", "CUDA starts");
    if (!on.cuda_expected) return skipped("CUDA is not used");
    const cuda_diagnosis why = diagnose_cuda(*on.machine, on.cuda_error, on.cuda_error_name);
    return failed(why.summary + " [" + why.code + "; " + environment::detail::join(why.facts, "; ") + "]",
                  "CUDA starts", why.remedy);
}

/// A container that was promised a GPU really got device nodes and the driver's library.
[[nodiscard]] inline check_outcome container_has_gpu(const check_context& on) {
    const environment::detail::cuda_facts facts = environment::detail::gather_cuda_facts(*on.machine);
    if (facts.runtime.empty()) return skipped("not in a container");
    const std::string missing = environment::detail::missing_in_container(facts);
    const bool promised = on.cuda_expected || (facts.visible && missing.find("NVIDIA_VISIBLE") == std::string::npos);
    if (!promised) return skipped("no GPU was promised to this container");
    const std::string expected = "/dev/nvidia0 and libcuda.so.1 in the container";
    // The variable is how one runtime is told; with nodes and library in place another way was used.
    if (!facts.gpu_nodes.empty() && !facts.libcuda.empty()) {
        return passed(environment::detail::join(facts.gpu_nodes, " ") + ", " + facts.libcuda, expected);
    }
    return failed(
        "missing: " + missing, expected,
        "start the container with --gpus all (Kubernetes: request nvidia.com/gpu; NVIDIA_VISIBLE_DEVICES=all)");
}

/// The driver and CUDA list the same devices, apart from those that CUDA_VISIBLE_DEVICES hides.
[[nodiscard]] inline check_outcome device_lists_agree(const check_context& on) {
    const auto driver = known_int(on, "gpu.count");
    if (!on.cuda_devices) return skipped("CUDA was not asked for its devices");
    if (!driver) return skipped(why_unknown(on, "gpu.count"));
    const auto visible = variable(on, "CUDA_VISIBLE_DEVICES");
    const std::string seen =
        "NVML " + std::to_string(*driver) + ", CUDA " + std::to_string(*on.cuda_devices) +
        (visible ? ", CUDA_VISIBLE_DEVICES=" + environment::detail::without_uuids(*visible) : std::string());
    auto wanted = visible ? static_cast<std::int64_t>(environment::detail::split(*visible, ',').size()) : *driver;
    // With MIG, CUDA offers one instance, whatever the number of GPUs.
    if (known_flag(on, "gpu.mig").value_or(false)) wanted = 1;
    const std::string expected = "CUDA sees " + std::to_string(wanted);
    if (*on.cuda_devices == wanted && wanted > 0) return passed(seen, expected);
    return failed(seen, expected,
                  visible ? "correct or unset CUDA_VISIBLE_DEVICES"
                          : "look for lost devices: nvidia-smi -L, dmesg | grep -i xid; in a container restart it");
}

/// The kernel module and the library of the driver have the same version.
[[nodiscard]] inline check_outcome driver_versions_agree(const check_context& on) {
    const std::string expected = "kernel module and library of one version";
    const std::string remedy = "reboot, or reload the module (rmmod nvidia_uvm nvidia; modprobe nvidia); "
                               "in a container, restart it";
    const auto module = known_text(on, "driver.module_version");
    auto library = known_text(on, "driver.library_version");
    if (on.machine->nvml_code == nvidia::code::version_mismatch) {
        return failed("NVML says that they differ; kernel module " + module.value_or("unknown") + ", library " +
                          library.value_or("unknown"),
                      expected, remedy);
    }
    if (!library) library = known_text(on, "driver.version");
    if (!module) return skipped(why_unknown(on, "driver.module_version"));
    if (!library) return skipped(why_unknown(on, "driver.library_version"));
    const std::string seen = "kernel module " + *module + ", library " + *library;
    return *module == *library ? passed(seen, expected) : failed(seen, expected, remedy);
}

/// The driver is new enough for the CUDA runtime: of the same major version at least, else with the compatibility
/// package (CUDA Compatibility, "minor version compatibility").
[[nodiscard]] inline check_outcome driver_supports_runtime(const check_context& on) {
    const auto runtime = known_int(on, "cuda.runtime_version"), driver = known_int(on, "cuda.driver_version");
    if (!runtime) return skipped(why_unknown(on, "cuda.runtime_version"));
    if (!driver) return skipped(why_unknown(on, "cuda.driver_version"));
    const std::string seen =
        "driver for CUDA " + cuda_version_text(*driver) + ", runtime " + cuda_version_text(*runtime);
    const std::string expected = "driver for CUDA " + cuda_version_text(*runtime) + " or newer";
    const std::string remedy = "update the driver, or build with CUDA " + cuda_version_text(*driver);
    if (*driver == 0) return failed("no driver is loaded; runtime " + cuda_version_text(*runtime), expected, remedy);
    if (known_flag(on, "driver.forward_compatibility").value_or(false)) {
        return warned(seen + ", through the cuda-compat libcuda", expected,
                      "fine for a while; the driver of this version is better tested: " + remedy);
    }
    if (*driver >= *runtime) return passed(seen, expected);
    if (*driver / 1000 < *runtime / 1000) return failed(seen, expected, remedy);
    return warned(seen, expected, "kernels that need compiling from PTX will not start: " + remedy);
}

/// The parts of cuDNN are of one version and were made for the CUDA major version that is used.
[[nodiscard]] inline check_outcome cudnn_consistent(const check_context& on) {
    const auto parts = known_text(on, "cudnn.sublibraries");
    if (!parts) return skipped(why_unknown(on, "cudnn.sublibraries"));
    const std::string expected = "all parts of cuDNN of one version, made for this CUDA major version";
    if (*parts != "agree") {
        return failed(*parts, expected, "remove the other cuDNN from LD_LIBRARY_PATH, or install one version only");
    }
    const auto made_for = known_int(on, "cudnn.cudart_version"), runtime = known_int(on, "cuda.runtime_version");
    if (!made_for || !runtime) return passed("the parts agree", expected);
    const std::string seen = "the parts agree; cuDNN made for CUDA " + cuda_version_text(*made_for) + ", runtime " +
                             cuda_version_text(*runtime);
    if (*made_for / 1000 == *runtime / 1000) return passed(seen, expected);
    return failed(seen, expected, "install the cuDNN build for CUDA " + std::to_string(*runtime / 1000));
}

/// No library is mapped twice from different files.
[[nodiscard]] inline check_outcome libraries_single(const check_context& on) {
    const auto conflicts = known_text(on, "process.library_conflicts");
    if (!conflicts) return skipped(why_unknown(on, "process.library_conflicts"));
    const std::string expected = "one copy of each library, all of cuDNN from one folder";
    if (*conflicts == "none") return passed("no conflict", expected);
    const std::string remedy = "remove the second one from LD_LIBRARY_PATH, or from the Python environment in use";
    // Parts of cuDNN from two installations end in wrong answers or errors later; two copies of another library work.
    if (conflicts->find("cuDNN from different folders") != std::string::npos)
        return failed(*conflicts, expected, remedy);
    return warned(*conflicts, expected, remedy);
}

/// Kernels in this program are machine code for this GPU; the driver need not compile them first.
[[nodiscard]] inline check_outcome device_code_matches(const check_context& on) {
    const auto code = known_text(on, "cuda.device_code");
    const std::string expected = "machine code for this GPU in the program";
    if (on.cuda_error_name == "cudaErrorNoKernelImageForDevice") {
        return failed("this program holds no code for this GPU", expected,
                      "build with -DCMAKE_CUDA_ARCHITECTURES=native on this machine");
    }
    if (!code) return skipped(why_unknown(on, "cuda.device_code"));
    if (code->rfind("machine code", 0) == 0) return passed(*code, expected);
    if (code->rfind("none", 0) == 0) {
        return failed(*code, expected, "build with -DCMAKE_CUDA_ARCHITECTURES=native on this machine");
    }
    return warned(*code, expected,
                  "build with -DCMAKE_CUDA_ARCHITECTURES=native: what the driver compiles changes with the driver");
}

/// Kernels compiled by the driver can be kept for the next start.
[[nodiscard]] inline check_outcome jit_cache_usable(const check_context& on) {
    const auto writable = known_flag(on, "cuda.jit_cache_writable");
    if (!writable) return skipped(why_unknown(on, "cuda.jit_cache_writable"));
    const std::string expected = "the driver's cache of compiled kernels can be written";
    if (*writable) return passed("writable", expected);
    return warned("not writable, or switched off by CUDA_CACHE_DISABLE", expected,
                  "point CUDA_CACHE_PATH to a folder that lasts: without it every start compiles again");
}

/// Checks of the driver and the CUDA libraries.
[[nodiscard]] inline std::vector<check> of_driver() {
    constexpr auto stop = consequence::precondition;
    return {{"container.gpu_mapped", 1, stop, extent::quick, container_has_gpu},
            {"cuda.starts", 1, stop, extent::quick, cuda_starts},
            {"cuda.device_lists_agree", 1, stop, extent::quick, device_lists_agree},
            {"driver.versions_agree", 1, stop, extent::quick, driver_versions_agree},
            {"driver.supports_runtime", 1, stop, extent::quick, driver_supports_runtime},
            {"cudnn.consistent", 2, stop, extent::quick, cudnn_consistent},
            {"libraries.single", 2, stop, extent::quick, libraries_single},
            {"cuda.device_code", 2, stop, extent::quick, device_code_matches},
            {"cuda.jit_cache", 1, stop, extent::quick, jit_cache_usable}};
}

} // namespace environment::checks

PLUMBLINE_NAMESPACE_END

#endif
