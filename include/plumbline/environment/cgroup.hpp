// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_CGROUP_HPP
#define PLUMBLINE_ENVIRONMENT_CGROUP_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// CPU time withheld from this process's control group so far.
struct cpu_throttling {
    std::int64_t periods = 0;   ///< enforcement periods that have passed
    std::int64_t throttled = 0; ///< of these, how many hit the quota
    double throttled_ms = 0;    ///< time that threads were stopped, summed over CPUs
};

namespace detail {

/// Where the control files of one controller lie.
struct cgroup_place {
    bool v2 = false;
    std::vector<std::string> folders; ///< from the process's own group up to the mount point
};

struct mount {
    std::string root, point, type, options;
};

/// /proc/self/mountinfo, see proc(5): "36 35 98:0 /root /point opts [fields] - type source super-options".
[[nodiscard]] inline std::vector<mount> mounts(const host& machine) {
    std::vector<mount> found;
    for (const std::string& line : split(read_file(machine, "/proc/self/mountinfo").text, '\n')) {
        const auto words = split(line, ' ');
        const auto dash = std::find(words.begin(), words.end(), "-");
        if (words.size() < 7 || words.end() - dash < 3) continue;
        found.push_back({words[3], words[4], dash[1], words.end() - dash > 3 ? dash[3] : ""});
    }
    return found;
}

/// The path of this process in the hierarchy of a controller; "" as controller asks for the unified hierarchy.
[[nodiscard]] inline std::optional<std::string> cgroup_path(const host& machine, const std::string& controller) {
    for (const std::string& line : split(read_file(machine, "/proc/self/cgroup").text, '\n')) {
        const auto first = line.find(':');
        const auto second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const auto names = split(controllers, ',');
        const bool match =
            controller.empty() ? controllers.empty() : std::find(names.begin(), names.end(), controller) != names.end();
        if (match) return line.substr(second + 1);
    }
    return std::nullopt;
}

/// Finds the folders of a controller: the v1 hierarchy that has it, else the unified one.
[[nodiscard]] inline cgroup_place find_cgroup(const host& machine, const std::string& controller) {
    const auto all = mounts(machine);
    const auto v1 = cgroup_path(machine, controller);
    const auto unified = cgroup_path(machine, "");
    cgroup_place place;
    place.v2 = !v1;
    if (!v1 && !unified) return place;
    std::string path = v1 ? *v1 : *unified;
    for (const mount& m : all) {
        const auto options = split(m.options, ',');
        const bool match =
            place.v2 ? m.type == "cgroup2"
                     : m.type == "cgroup" && std::find(options.begin(), options.end(), controller) != options.end();
        if (!match) continue;
        // A container may see only its own part of the hierarchy: the mount's root is then a prefix of the path.
        if (m.root != "/" && path.rfind(m.root, 0) == 0) path = path.substr(m.root.size());
        // A folder that is not there (the path is then the host's) is passed over on the way up to the mount point.
        std::string folder = m.point + (path == "/" ? "" : path);
        while (folder.size() >= m.point.size()) {
            place.folders.push_back(folder);
            const auto slash = folder.rfind('/');
            if (folder == m.point || slash == std::string::npos) break;
            folder.resize(slash);
        }
        break;
    }
    return place;
}

/// One limit in bytes or counts: the smallest over the process's group and its ancestors.
[[nodiscard]] inline result::reading cgroup_limit(const host& machine, const cgroup_place& place, const char* v1_name,
                                                  const char* v2_name) {
    const char* name = place.v2 ? v2_name : v1_name;
    result::reading best = result::reading::absent(std::string("cgroup: no ") + name);
    for (const std::string& folder : place.folders) {
        const auto text = read_text(machine, folder + "/" + name);
        if (!text.known()) {
            if (!best.known() && text.status == result::reading_status::denied) best = text;
            continue;
        }
        const auto value = integer(to_string(text.value));
        // v1 writes "unlimited" as the largest multiple of the page size.
        if (!value || *value >= std::int64_t{1} << 62) {
            if (!best.known()) best = result::reading::of(std::string("unlimited"));
            continue;
        }
        const auto* old = std::get_if<std::int64_t>(&best.value);
        if (!best.known() || old == nullptr || *value < *old) best = result::reading::of(*value);
    }
    return best;
}

/// Quota over period in CPUs, from one group's folder; empty where there is no limit there.
[[nodiscard]] inline std::optional<double> quota_of(const host& machine, const std::string& folder, bool v2,
                                                    bool& readable) {
    if (v2) {
        const auto text = read_text(machine, folder + "/cpu.max");
        if (!text.known()) return std::nullopt;
        readable = true;
        const auto words = split(to_string(text.value), ' ');
        const auto quota = words.size() == 2 ? number(words[0]) : std::nullopt;
        const auto period = words.size() == 2 ? number(words[1]) : std::nullopt;
        if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
        return *quota / *period;
    }
    const auto quota = read_integer(machine, folder + "/cpu.cfs_quota_us");
    const auto period = read_integer(machine, folder + "/cpu.cfs_period_us");
    if (!quota.known() || !period.known()) return std::nullopt;
    readable = true;
    const auto q = std::get<std::int64_t>(quota.value), p = std::get<std::int64_t>(period.value);
    if (q <= 0 || p <= 0) return std::nullopt;
    return static_cast<double>(q) / static_cast<double>(p);
}

} // namespace detail

/// CPU quota of this process in CPUs, the smallest over its group and all ancestors that can be seen; the text
/// "unlimited" where there is none.
[[nodiscard]] inline result::reading cpu_quota(const host& machine) {
    const auto place = detail::find_cgroup(machine, "cpu");
    std::optional<double> least;
    bool readable = false;
    for (const std::string& folder : place.folders) {
        const auto quota = detail::quota_of(machine, folder, place.v2, readable);
        if (quota && (!least || *quota < *least)) least = quota;
    }
    if (least) return result::reading::of(*least);
    if (readable) return result::reading::of(std::string("unlimited"));
    return result::reading::absent(place.folders.empty() ? "cgroup: not mounted" : "cgroup: no cpu controller here");
}

/// CPUs this process may run on, from its affinity mask (which a cpuset narrows too).
[[nodiscard]] inline std::vector<int> allowed_cpus(const host& machine) {
    return parse_id_list(field_of(read_file(machine, "/proc/self/status").text, "Cpus_allowed_list").value_or(""));
}

/// CPUs' worth of time this process can use: min(affinity, ceil(quota)); never below 1. A quota does not show in the
/// affinity mask, so programs that count CPUs by the mask start too many threads.
[[nodiscard]] inline result::reading usable_cpus(const host& machine) {
    const auto allowed = static_cast<std::int64_t>(allowed_cpus(machine).size());
    const result::reading quota = cpu_quota(machine);
    const double* limit = quota.known() ? std::get_if<double>(&quota.value) : nullptr;
    if (allowed == 0 && limit == nullptr) return result::reading::absent("/proc/self/status: no Cpus_allowed_list");
    std::int64_t usable = allowed;
    if (limit != nullptr) {
        // Bounded before it becomes an integer: a quota can be any number.
        const auto whole = static_cast<std::int64_t>(std::ceil(std::clamp(*limit, 1.0, 1e6)));
        usable = allowed == 0 ? whole : std::min(allowed, whole);
    }
    return result::reading::of(usable);
}

/// Reads how often the CPU quota stopped this process so far; empty where the group has no quota or cannot be read.
/// The difference of two calls says whether it happened between them.
[[nodiscard]] inline std::optional<cpu_throttling> read_throttling(const host& machine) {
    const auto place = detail::find_cgroup(machine, "cpu");
    for (const std::string& folder : place.folders) {
        const text_file file = read_file(machine, folder + "/cpu.stat");
        if (!file.known()) continue;
        cpu_throttling found;
        bool any = false;
        for (const std::string& line : detail::split(file.text, '\n')) {
            const auto words = detail::split(line, ' ');
            const auto value = words.size() == 2 ? detail::integer(words[1]) : std::nullopt;
            if (!value) continue;
            if (words[0] == "nr_periods") found.periods = *value, any = true;
            if (words[0] == "nr_throttled") found.throttled = *value;
            if (words[0] == "throttled_usec") found.throttled_ms = static_cast<double>(*value) * 1e-3;
            if (words[0] == "throttled_time") found.throttled_ms = static_cast<double>(*value) * 1e-6;
        }
        if (any) return found;
    }
    return std::nullopt;
}

/// Control group: version, quota, limits, usable CPUs, and what has been withheld so far.
inline void read_cgroup(result::fingerprint& into, const host& machine) {
    recorder out(into, "cgroup");
    const bool unified = detail::cgroup_path(machine, "").has_value();
    const bool v1 = detail::cgroup_path(machine, "cpu") || detail::cgroup_path(machine, "memory");
    out.config("cgroup.version", 4,
               unified || v1 ? result::reading::of(std::string(v1 ? (unified ? "hybrid" : "v1") : "v2"))
               : read_file(machine, "/proc/self/cgroup").known()
                   ? result::reading::unsupported("/proc/self/cgroup: no hierarchy")
                   : read_file(machine, "/proc/self/cgroup").why);
    // The path holds a container's id: it changes with every start, so it is state, and it is hashed.
    const auto path = detail::cgroup_path(machine, v1 ? "cpu" : "");
    out.state("cgroup.path", 4, path ? result::reading::of(hashed_id(*path)) : result::reading::absent("cgroup"));
    out.config("cgroup.cpu_quota", 4, cpu_quota(machine));
    const auto memory = detail::find_cgroup(machine, "memory");
    out.config("cgroup.memory_limit_bytes", 4,
               detail::cgroup_limit(machine, memory, "memory.limit_in_bytes", "memory.max"));
    out.config("cgroup.memory_high_bytes", 4,
               detail::cgroup_limit(machine, memory, "memory.soft_limit_in_bytes", "memory.high"));
    out.config("cgroup.pids_limit", 4,
               detail::cgroup_limit(machine, detail::find_cgroup(machine, "pids"), "pids.max", "pids.max"));
    const auto cpuset = detail::find_cgroup(machine, "cpuset");
    result::reading cpus = result::reading::absent("cgroup: no cpuset controller here");
    for (const std::string& folder : cpuset.folders) {
        cpus = read_text(machine, folder + (cpuset.v2 ? "/cpuset.cpus.effective" : "/cpuset.effective_cpus"));
        if (cpus.known()) break;
    }
    out.config("cgroup.cpuset", 4, cpus);
    out.config("cpu.usable", 4, usable_cpus(machine));
    const auto throttled = read_throttling(machine);
    const auto none = result::reading::absent("cgroup: no cpu.stat with nr_periods");
    out.state("cgroup.throttled_periods", 4, throttled ? result::reading::of(throttled->throttled) : none);
    out.state("cgroup.throttled_ms", 4, throttled ? result::reading::of(throttled->throttled_ms) : none);
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
