// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_HOST_HPP
#define PLUMBLINE_ENVIRONMENT_HOST_HPP

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "plumbline/core/scalar.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

namespace nvidia {
struct nvml_api;
}

/// Size of a mounted file system in bytes.
struct file_system_space {
    std::uint64_t total_bytes = 0;
    std::uint64_t free_bytes = 0;
};

/// A machine as the readers and checks see it: everything they look at comes through this struct, so that a test
/// can put a made-up machine in its place. `this_machine()` of collect.hpp gives the real one.
struct host {
    /// Folder that stands for "/": all of /proc, /sys, /dev, /etc and /run is read below it.
    std::filesystem::path root = "/";

    /// The environment block of the process as it was when the process started, all of it. Only allow-listed
    /// names ever leave it (variables.hpp).
    std::map<std::string, std::string> variables;

    /// NVML, or null where it cannot be used: `nvml_problem` then says why, and `nvml_code` what nvmlInit answered
    /// where libnvidia-ml.so.1 could be loaded at all.
    std::shared_ptr<const nvidia::nvml_api> nvml;
    std::string nvml_problem;
    std::optional<int> nvml_code;

    /// What is to be fingerprinted: "cuda" or "cpu", and for "cuda" the device, by PCI bus id
    /// ("00000000:1b:00.0") or UUID ("GPU-...", "MIG-..."). Empty: the first device that NVML knows.
    std::string backend = "cpu";
    std::string gpu;

    /// Absolute path of the data that are loaded (never recorded itself); empty where there are none.
    std::string data;

    /// What the program was built with, from PLUMBLINE_BUILD_FACTS of binary.hpp; empty where the program did not say.
    scalar_map build;

    /// Size of the file system a path (below root) lies on; empty where it cannot be asked.
    std::function<std::optional<file_system_space>(const std::filesystem::path&)> space_of;
};

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
