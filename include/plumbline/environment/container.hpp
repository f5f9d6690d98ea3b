// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_CONTAINER_HPP
#define PLUMBLINE_ENVIRONMENT_CONTAINER_HPP

#include <string>

#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// The container runtime this process runs under, or "" on the bare operating system. A marker file, the variable
/// that runtimes set, and the control group of process 1 are asked in turn.
[[nodiscard]] inline std::string container_runtime(const host& machine) {
    const auto variable = [&](const char* name) {
        const auto at = machine.variables.find(name);
        return at == machine.variables.end() ? std::string() : at->second;
    };
    if (!variable("KUBERNETES_SERVICE_HOST").empty()) return "kubernetes";
    if (exists(machine, "/.dockerenv")) return "docker";
    if (exists(machine, "/run/.containerenv")) return "podman";
    if (exists(machine, "/.singularity.d") || !variable("APPTAINER_CONTAINER").empty()) return "apptainer";
    if (const std::string named = variable("container"); !named.empty()) return named;
    const std::string first = read_file(machine, "/proc/1/cgroup").text;
    for (const char* name : {"kubepods", "docker", "containerd", "libpod", "lxc"}) {
        if (first.find(name) != std::string::npos) return std::string(name) == "kubepods" ? "kubernetes" : name;
    }
    return {};
}

/// Container and scheduler: runtime, image where an image says so, GPU nodes handed in, job (hashed).
inline void read_container(result::fingerprint& into, const host& machine) {
    recorder out(into, "container");
    const std::string runtime = container_runtime(machine);
    out.config("container.runtime", 1, result::reading::of(runtime.empty() ? std::string("none") : runtime));
    const auto variable = [&](const char* name, const char* what) {
        const auto at = machine.variables.find(name);
        return at == machine.variables.end() ? result::reading::absent(what) : result::reading::of(at->second);
    };
    // Name and digest of an image cannot be seen from inside: somebody has to say them.
    out.config("container.image", 1, variable("PLUMBLINE_IMAGE", "not visible from inside: set PLUMBLINE_IMAGE"));
    std::vector<std::string> nodes;
    for (const std::string& name : list_folder(machine, "/dev")) {
        if (name.rfind("nvidia", 0) == 0) nodes.push_back(name);
    }
    out.config("container.gpu_nodes", 1,
               nodes.empty() ? result::reading::absent("/dev/nvidia*: none")
                             : result::reading::of(detail::join(nodes, " ")));
    // Ids of a job change with every job: state, so that the provenance of an unchanged machine stays the same.
    out.state("scheduler.slurm_job", 1, hashed(variable("SLURM_JOB_ID", "SLURM_JOB_ID: not set")));
    out.state("scheduler.pod", 1,
              runtime == "kubernetes" ? hashed(variable("HOSTNAME", "HOSTNAME: not set"))
                                      : result::reading::absent("not in Kubernetes"));
    out.config("scheduler.node", 1, hashed(variable("SLURMD_NODENAME", "SLURMD_NODENAME: not set")));
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
