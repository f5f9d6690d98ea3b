// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_CPU_HPP
#define PLUMBLINE_ENVIRONMENT_CPU_HPP

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

namespace detail {

/// "performance", or "performance,powersave" where the CPUs do not agree. The reason of cpu0 where none has it.
[[nodiscard]] inline result::reading over_all_cpus(const host& machine, const std::string& file) {
    std::set<std::string> seen;
    result::reading first = result::reading::absent("/sys/devices/system/cpu/cpu*/" + file + ": ENOENT");
    for (const std::string& name : list_folder(machine, "/sys/devices/system/cpu")) {
        if (name.rfind("cpu", 0) != 0 || !integer(std::string_view(name).substr(3))) continue;
        const result::reading one = read_text(machine, "/sys/devices/system/cpu/" + name + "/" + file);
        if (one.known())
            seen.insert(std::get<std::string>(one.value));
        else if (name == "cpu0")
            first = one;
    }
    if (seen.empty()) return first;
    return result::reading::of(join({seen.begin(), seen.end()}, ","));
}

/// The idle states of cpu0 with exit latency in microseconds and whether they are switched off: "C1:2,C6:133(off)".
[[nodiscard]] inline result::reading idle_states(const host& machine) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cpuidle";
    std::vector<std::string> states;
    for (const std::string& name : list_folder(machine, folder)) {
        const auto label = read_text(machine, folder + "/" + name + "/name");
        const auto latency = read_text(machine, folder + "/" + name + "/latency");
        const auto off = read_text(machine, folder + "/" + name + "/disable");
        if (!label.known()) continue;
        states.push_back(to_string(label.value) + (latency.known() ? ":" + to_string(latency.value) : "") +
                         (off.known() && to_string(off.value) == "1" ? "(off)" : ""));
    }
    if (states.empty()) return result::reading::absent(folder + ": ENOENT");
    return result::reading::of(join(states, ","));
}

/// Whether the CPU may exceed its base clock; the two drivers say it in two places.
[[nodiscard]] inline result::reading turbo(const host& machine) {
    const auto no_turbo = read_integer(machine, "/sys/devices/system/cpu/intel_pstate/no_turbo");
    if (no_turbo.known()) return result::reading::of(std::get<std::int64_t>(no_turbo.value) == 0);
    const auto boost = read_integer(machine, "/sys/devices/system/cpu/cpufreq/boost");
    if (boost.known()) return result::reading::of(std::get<std::int64_t>(boost.value) != 0);
    return no_turbo.status == result::reading_status::denied ? no_turbo : boost;
}

/// Of the CPU's flags those that decide which code a math library picks.
[[nodiscard]] inline std::string math_flags(std::string_view flags) {
    static constexpr std::string_view wanted[] = {
        "amx_bf16",    "amx_fp16", "amx_int8", "amx_tile", "asimdhp", "avx", "avx2", "avx512_bf16", "avx512_fp16",
        "avx512_vnni", "avx512f",  "avx_vnni", "bf16",     "f16c",    "fma", "i8mm", "sve",         "sve2"};
    const auto present = split(flags, ' ');
    std::vector<std::string> found;
    for (const std::string_view flag : wanted) {
        if (std::find(present.begin(), present.end(), flag) != present.end()) found.emplace_back(flag);
    }
    return join(found, " ");
}

inline void read_cpuinfo(recorder& out, const host& machine) {
    const std::string path = "/proc/cpuinfo";
    const text_file file = read_file(machine, path);
    const auto field = [&](std::initializer_list<const char*> names) {
        if (!file.known()) return file.why;
        for (const char* name : names) {
            if (auto value = field_of(file.text, name)) return result::reading::of(*std::move(value));
        }
        return result::reading::absent(path + ": no '" + *names.begin() + "'");
    };
    std::set<std::string> sockets;
    std::set<std::pair<std::string, std::string>> cores;
    std::int64_t logical = 0;
    std::string socket = "0";
    for (const std::string& line : split(file.text, '\n')) {
        const auto colon = line.find(':');
        if (colon == std::string::npos) continue;
        const auto name = trimmed(std::string_view(line).substr(0, colon));
        const std::string value(trimmed(std::string_view(line).substr(colon + 1)));
        if (name == "processor") ++logical;
        if (name == "physical id") sockets.insert(socket = value);
        if (name == "core id") cores.emplace(socket, value);
    }
    const auto counted = [&](std::size_t n, const char* name) {
        if (!file.known()) return file.why;
        if (n == 0) return result::reading::absent(path + ": no '" + name + "'");
        return result::reading::of(static_cast<std::int64_t>(n));
    };
    // On the CPU backend the CPU is the device that is measured, so it is what makes two results comparable.
    const auto kind = machine.backend == "cpu" ? result::attribute_class::identity : result::attribute_class::config;
    out.add("cpu.model", kind, 1, field({"model name", "CPU part", "cpu model"}));
    out.config("cpu.vendor", 1, field({"vendor_id", "CPU implementer"}));
    out.config("cpu.family", 1, field({"cpu family", "CPU architecture"}));
    out.config("cpu.stepping", 1, field({"stepping", "CPU revision"}));
    out.config("cpu.microcode", 1, field({"microcode"}));
    result::reading flags = field({"flags", "Features"});
    if (flags.known()) {
        const std::string all = to_string(flags.value);
        const auto list = split(all, ' ');
        const bool guest = std::find(list.begin(), list.end(), "hypervisor") != list.end();
        out.config("cpu.hypervisor", 1, result::reading::of(guest));
        flags.value = math_flags(all);
    }
    out.config("cpu.math_flags", 1, flags);
    out.config("cpu.sockets", 1, counted(sockets.size(), "physical id"));
    out.config("cpu.cores", 1, counted(cores.size(), "core id"));
    out.config("cpu.logical", 1, counted(static_cast<std::size_t>(logical), "processor"));
    if (const auto mhz = field_of(file.text, "cpu MHz")) {
        const auto value = number(*mhz);
        out.state("cpu.clock_mhz", 1, value ? result::reading::of(*value) : result::reading::unsupported(path));
    }
}

} // namespace detail

/// CPU: model, topology, clock and idle policy, mitigations.
inline void read_cpu(result::fingerprint& into, const host& machine) {
    recorder proc(into, "proc");
    detail::read_cpuinfo(proc, machine);
    recorder sys(into, "sys");
    const std::string cpu = "/sys/devices/system/cpu/";
    sys.config("cpu.smt", 1, read_integer(machine, cpu + "smt/active"));
    sys.config("cpu.governor", 4, detail::over_all_cpus(machine, "cpufreq/scaling_governor"));
    sys.config("cpu.scaling_driver", 4, detail::over_all_cpus(machine, "cpufreq/scaling_driver"));
    sys.config("cpu.scaling_min_khz", 4, detail::over_all_cpus(machine, "cpufreq/scaling_min_freq"));
    sys.config("cpu.scaling_max_khz", 4, detail::over_all_cpus(machine, "cpufreq/scaling_max_freq"));
    sys.config("cpu.energy_preference", 4, detail::over_all_cpus(machine, "cpufreq/energy_performance_preference"));
    sys.config("cpu.turbo", 4, detail::turbo(machine));
    sys.config("cpu.idle_driver", 4, read_text(machine, cpu + "cpuidle/current_driver"));
    result::reading governor = read_text(machine, cpu + "cpuidle/current_governor");
    if (!governor.known()) governor = read_text(machine, cpu + "cpuidle/current_governor_ro");
    sys.config("cpu.idle_governor", 4, governor);
    sys.config("cpu.idle_states", 4, detail::idle_states(machine));
    for (const std::string& name : list_folder(machine, cpu + "vulnerabilities")) {
        sys.config("cpu.vulnerability." + name, 1, read_text(machine, cpu + "vulnerabilities/" + name));
    }
}

/// NUMA: nodes and the distances between them, one row a node.
inline void read_numa(result::fingerprint& into, const host& machine) {
    recorder sys(into, "sys");
    const std::string folder = "/sys/devices/system/node/";
    std::vector<std::string> rows;
    for (const std::string& name : list_folder(machine, folder)) {
        if (name.rfind("node", 0) != 0 || !detail::integer(std::string_view(name).substr(4))) continue;
        const auto row = read_text(machine, folder + name + "/distance");
        rows.push_back(row.known() ? to_string(row.value) : "?");
    }
    const auto missing = result::reading::absent(folder + "node*: ENOENT");
    sys.config("numa.nodes", 4, rows.empty() ? missing : result::reading::of(static_cast<std::int64_t>(rows.size())));
    sys.config("numa.distances", 4, rows.empty() ? missing : result::reading::of(detail::join(rows, "; ")));
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
